// Package imagetest makes container images for tests, from entries or from programs of this machine
// with their libraries, and provides a registry to pull them from.
package imagetest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"log"
	"net/http/httptest"
	"os"
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

// Entry is an entry of a layer.
type Entry struct {
	Name, Content, Link string
	Type                byte // 0: a file, or a directory if the name ends with a slash
	Mode                int64
}

// Image returns an image of these layers, the lowest first.
func Image(t testing.TB, config v1.Config, layers ...[]Entry) v1.Image {
	t.Helper()
	var tars [][]byte
	for _, entries := range layers {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range entries {
			h := &tar.Header{Name: e.Name, Typeflag: e.Type, Linkname: e.Link, Mode: cmp.Or(e.Mode, 0o755),
				Size: int64(len(e.Content))}
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

// OfTars returns an image whose layers are these archives.
func OfTars(t testing.TB, config v1.Config, tars ...[]byte) v1.Image {
	t.Helper()
	file := &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: config,
		RootFS: v1.RootFS{Type: "layers"}}
	img, err := mutate.ConfigFile(empty.Image, file)
	must(t, err)
	for _, b := range tars {
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
		layer, err := tarball.LayerFromOpener(open,
			tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
		must(t, err)
		img, err = mutate.AppendLayers(img, layer)
		must(t, err)
	}
	return img
}

var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// OfMachine returns an image with those of the files and directories that exist on this machine,
// the libraries that its programs and libraries load, and the user accounts. Links are replaced by
// their targets.
func OfMachine(t testing.TB, paths ...string) v1.Image {
	t.Helper()
	const libraries = `find -H "$@" -type f '(' -perm -u+x -o -name '*.so*' ')' -exec ldd {} +`
	paths = append(paths, "/etc/passwd", "/etc/group", "/etc/nsswitch.conf")
	// It fails for static programs.
	out, _ := exec.Command("sh", append([]string{"-c", libraries, "sh"}, paths...)...).Output()
	for _, m := range library.FindAllSubmatch(out, -1) {
		paths = append(paths, string(m[1]))
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
	slices.Sort(paths)
	options := []string{"-C", "/", "-c", "--dereference", "--hard-dereference", "--exclude=__pycache__"}
	b, err := exec.Command("tar", append(options, slices.Compact(paths)...)...).Output()
	must(t, err)
	return OfTars(t, v1.Config{}, b)
}

// Registry starts a registry for the test and returns its address.
func Registry(t testing.TB) (host string) {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// Push pushes an image to a registry and returns its reference.
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
