// Package imagetest makes container images for tests: of entries, or of programs of this
// machine with their libraries; and a registry to pull them from.
package imagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
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
// programs and libraries among them load, and the accounts. What a link leads to is in its place.
func OfMachine(t testing.TB, paths ...string) v1.Image {
	t.Helper()
	const libraries = `find -H "$@" -type f '(' -perm -u+x -o -name '*.so*' ')' -exec ldd {} +`
	paths = append(paths, "/etc/passwd", "/etc/group", "/etc/nsswitch.conf")
	// It fails for what is static.
	out, _ := exec.Command("sh", append([]string{"-c", libraries, "sh"}, paths...)...).Output()
	for _, m := range library.FindAllSubmatch(out, -1) {
		paths = append(paths, string(m[1]))
	}
	slices.Sort(paths)
	options := []string{"-C", "/", "-c", "--dereference", "--hard-dereference", "--exclude=__pycache__"}
	b, err := exec.Command("tar", append(options, slices.Compact(paths)...)...).Output()
	must(t, err)
	return OfTars(t, v1.Config{}, b)
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
