package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file of an archive, with the content of the file at path or, without a path, data.
type entry struct {
	name string
	path string
	data []byte
	mode int64 // 0: 0o644
}

// writeArchive writes a compressed archive of files in one folder.
func writeArchive(path, folder string, files []entry, when time.Time) {
	var b bytes.Buffer
	zip := must(gzip.NewWriterLevel(&b, gzip.BestCompression))
	pack(zip, folder+"/", files, when)
	check(zip.Close())
	check(os.WriteFile(path, b.Bytes(), 0o644))
}

// pack writes a tar archive of files, sorted, all with the same time and without an owner: equal
// content gives equal bytes.
func pack(w io.Writer, prefix string, files []entry, when time.Time) {
	files = slices.SortedFunc(slices.Values(files), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	archive := tar.NewWriter(w)
	for _, f := range files {
		data := f.data
		if f.path != "" {
			data = must(os.ReadFile(f.path))
		}
		head := &tar.Header{Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: prefix + f.name,
			Size: int64(len(data)), Mode: cmp.Or(f.mode, 0o644), ModTime: when}
		check(archive.WriteHeader(head))
		must(archive.Write(data))
	}
	check(archive.Close())
}

// writeSums writes the SHA-256 of files in the format of sha256sum -c.
func writeSums(path string, files []string) {
	var b bytes.Buffer
	for _, f := range slices.Sorted(slices.Values(files)) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(must(os.ReadFile(f))), filepath.Base(f))
	}
	check(os.WriteFile(path, b.Bytes(), 0o644))
}

// programDir is the directory of plimsoll in its container image, which otherwise contains only
// licences.
const programDir = "/usr/local/bin"

// addImage adds an architecture to a container image: its static program and accompanying files.
func addImage(index v1.ImageIndex, arch, program string, notices []entry, when time.Time) v1.ImageIndex {
	files := []entry{{name: programDir[1:] + "/plimsoll", path: program, mode: 0o755}}
	for _, n := range notices {
		n.name = "usr/share/doc/plimsoll/" + n.name
		files = append(files, n)
	}
	var layer bytes.Buffer
	pack(&layer, "", files, when)
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil }
	l := must(tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression)))
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img := must(mutate.ConfigFile(base, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: when}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{programDir + "/plimsoll"}, Env: []string{"PATH=" + programDir},
			User: "65532:65532", WorkingDir: "/",
		},
	}))
	img = must(mutate.Append(img, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: when}}}))
	return mutate.AppendManifests(index, mutate.IndexAddendum{
		Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
	})
}

// writeImage writes a container image as an OCI layout in a tar file, which skopeo, podman, docker
// and containerd can read.
func writeImage(path, tag string, index v1.ImageIndex, when time.Time) {
	dir := must(os.MkdirTemp("", "plimsoll-image-"))
	defer os.RemoveAll(dir)
	l := must(layout.Write(dir, empty.Index))
	check(l.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})))
	var files []entry
	check(fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, entry{name: name, path: filepath.Join(dir, name)})
		}
		return err
	}))
	w := must(os.Create(path))
	defer w.Close()
	pack(w, "", files, when)
	check(w.Sync())
}
