package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
)

// programDir is where plimsoll is in its container image, which has nothing else but licences.
const programDir = "/usr/local/bin"

// addImage adds an architecture to a container image: its static program, and what belongs to it.
func addImage(index v1.ImageIndex, arch, program string, notices []entry, when time.Time) (v1.ImageIndex, error) {
	files := []entry{{name: programDir[1:] + "/plimsoll", path: program, mode: 0o755}}
	for _, n := range notices {
		n.name = "usr/share/doc/plimsoll/" + n.name
		files = append(files, n)
	}
	var layer bytes.Buffer
	if err := pack(&layer, "", files, when); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil }
	l, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: when}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{programDir + "/plimsoll"}, Env: []string{"PATH=" + programDir},
			User: "65532:65532", WorkingDir: "/",
		},
	})
	if err == nil {
		img, err = mutate.Append(img, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: when}}})
	}
	if err != nil {
		return nil, err
	}
	return mutate.AppendManifests(index, mutate.IndexAddendum{
		Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
	}), nil
}

// writeImage writes a container image as an OCI layout in a tar file, which skopeo, podman, docker
// and containerd read.
func writeImage(path, tag string, index v1.ImageIndex, when time.Time) error {
	dir, err := os.MkdirTemp("", "plimsoll-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = l.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
	}
	var files []entry
	if err == nil {
		err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(dir, p)
			files = append(files, entry{name: name, path: p})
			return err
		})
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error { return pack(w, "", files, when) })
}
