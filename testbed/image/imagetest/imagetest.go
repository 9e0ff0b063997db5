// Package imagetest makes container images for tests: of entries, or of programs of this
// machine with their libraries; and a registry to pull them from.
package imagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Entry is one of a layer.
type Entry struct {
	Name, Content, Link string
	Type                byte // 0: a file, or a directory when the name ends with a slash
	Mode                int64
}

// Image is one of these layers, the lowest first.
func Image(t testing.TB, config v1.Config, layers ...[]Entry) v1.Image {
	t.Helper()
	var tars [][]byte
	for _, entries := range layers {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range entries {
			h := &tar.Header{Name: e.Name, Typeflag: e.Type, Linkname: e.Link, Mode: e.Mode,
				Size: int64(len(e.Content))}
			if e.Mode == 0 {
				h.Mode = 0o755
			}
			if e.Type == 0 && strings.HasSuffix(e.Name, "/") {
				h.Typeflag = tar.TypeDir
			}
			must(t, w.WriteHeader(h))
			_, err := io.WriteString(w, e.Content)
			must(t, err)
		}
		must(t, w.Close())
		tars = append(tars, b.Bytes())
	}
	return OfTars(t, config, tars...)
}

// OfTars is an image whose layers are these archives.
func OfTars(t testing.TB, config v1.Config, tars ...[]byte) v1.Image {
	t.Helper()
	img := empty.Image
	for _, b := range tars {
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
		layer, err := tarball.LayerFromOpener(open,
			tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
		must(t, err)
		img, err = mutate.AppendLayers(img, layer)
		must(t, err)
	}
	file, err := img.ConfigFile()
	must(t, err)
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	img, err = mutate.ConfigFile(img, file)
	must(t, err)
	return img
}

var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// OfMachine is an image with files and directories of this machine, the libraries that
// programs and libraries among them load, and the accounts.
func OfMachine(t testing.TB, paths ...string) v1.Image {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	have := map[string]bool{}
	var add func(path string)
	add = func(path string) {
		path = filepath.Clean(path)
		if have[path] || path == "/" {
			return
		}
		have[path] = true
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		must(t, err)
		if real := filepath.Join(dir, filepath.Base(path)); real != path {
			add(filepath.Dir(path)) // the link on the way
			add(real)
			return
		}
		info, err := os.Lstat(path)
		must(t, err)
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			link, err = os.Readlink(path)
			must(t, err)
			to := link
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			if target, err := os.Stat(to); err == nil && target.Mode().IsRegular() {
				add(to)
			}
		} else if !info.IsDir() && !info.Mode().IsRegular() {
			return
		}
		h, err := tar.FileInfoHeader(info, link)
		must(t, err)
		h.Name = path[1:]
		var content []byte
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
			must(t, err)
			h.Size = int64(len(content))
		}
		must(t, w.WriteHeader(h))
		_, err = w.Write(content)
		must(t, err)
		if bytes.HasPrefix(content, []byte("\x7fELF")) {
			out, _ := exec.Command("ldd", path).Output() // fails for what is static
			for _, m := range library.FindAllSubmatch(out, -1) {
				add(string(m[1]))
			}
		}
	}
	for _, p := range append(paths, "/etc/passwd", "/etc/group", "/etc/nsswitch.conf") {
		if info, err := os.Lstat(p); err != nil || !info.IsDir() {
			add(p)
			continue
		}
		must(t, filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "__pycache__" {
				return filepath.SkipDir
			}
			if err == nil {
				add(path)
			}
			return err
		}))
	}
	must(t, w.Close())
	return OfTars(t, v1.Config{}, b.Bytes())
}

// Registry is a registry of the test's own; its address.
func Registry(t testing.TB) (host string) {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// Push puts an image into a registry and returns its reference.
func Push(t testing.TB, host string, img v1.Image) (reference string) {
	t.Helper()
	must(t, crane.Push(img, host+"/a/test:1", crane.Insecure))
	return host + "/a/test:1"
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
