package image

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
)

// proxy forwards to a registry what fault does not answer itself.
func proxy(t *testing.T, host string, fault func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fault(w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func newStore(t *testing.T) Store {
	t.Helper()
	return Store{Dir: filepath.Join(t.TempDir(), "images"), Stall: 300 * time.Millisecond}
}

// random does not compress.
func program(t *testing.T) v1.Image {
	t.Helper()
	var noise strings.Builder
	for i := range 200_000 {
		noise.WriteByte(byte(i * i % 251 * (i >> 8)))
	}
	config := v1.Config{Env: []string{"PATH=/opt", "MODE=it's on"}, Entrypoint: []string{"/srv/daemon"}}
	return imagetest.Image(t, config, []entry{
		file("opt/tool", "#!/usr/bin/python3\n"), file("srv/daemon", "x"),
		{Name: "opt/data", Content: "x", Mode: 0o644}, file("noise", noise.String()),
	})
}

// wantEmpty holds that nothing but what an image needs is in the store.
func wantEmpty(t *testing.T, s Store) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	must(t, err)
	for _, l := range left {
		if filepath.Base(l) != "lock" {
			t.Errorf("left: %s", l)
		}
	}
}

func TestPull(t *testing.T) {
	img := program(t)
	digest, err := img.Digest()
	must(t, err)
	host := imagetest.Registry(t)
	ref := imagetest.Push(t, host, img)
	s := newStore(t)
	if _, err := s.Find(ref); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), ref) {
		t.Errorf("before: %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(s.Dir, "unpacking-dead", "root"), 0o755))
	size, err := s.Size(t.Context(), ref)
	must(t, err)
	var done, total int64
	pulled, err := s.Pull(t.Context(), ref, func(d, of int64) { done, total = d, of })
	if err != nil || pulled.Digest != digest.String() ||
		size == 0 || pulled.Size != size || done != size || total != size {
		t.Fatalf("%v, %v: %d of %d bytes, want %d", pulled, err, done, total, size)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, "unpacking-*")); len(left) > 0 {
		t.Errorf("what a dead process left is there: %v", left)
	}
	byDigest := host + "/a/test@" + digest.String()
	for _, again := range []string{ref, byDigest} { // which needs no registry
		found, err := s.Find(again)
		want := strings.Split(again, "@")[0] + "@" + digest.String()
		if err != nil || found.Digest != digest.String() || found.String() != want {
			t.Errorf("find %s: %v, %v", again, found, err)
		}
	}
	other := host + "/a/test@sha256:" + strings.Repeat("0", 64)
	if _, err := s.Find(other); !errors.Is(err, ErrAbsent) {
		t.Errorf("by another digest: %v", err)
	}
	wantPrograms(t, pulled)
	must(t, s.Alias("kubo", pulled))
	if found, err := s.Installed("kubo"); err != nil || found.Digest != pulled.Digest {
		t.Errorf("by its alias: %v, %v", found, err)
	}
	if _, err := s.Installed("codex"); !errors.Is(err, ErrAbsent) {
		t.Errorf("no such alias: %v", err)
	}
}

// wantPrograms holds that the commands of an image's programs are found, and lead back to it.
func wantPrograms(t *testing.T, pulled Image) {
	t.Helper()
	for names, want := range map[string]string{
		"none tool": "/opt/tool", "daemon": "/srv/daemon", "/opt/tool": "/opt/tool",
	} {
		path, err := pulled.Program(strings.Fields(names)...)
		must(t, err)
		if !strings.HasSuffix(path, "/run"+want) {
			t.Errorf("program %s: %s", names, path)
		}
		script, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(script), `'MODE=it'\''s on' '--' '`+want+`' "$@"`) {
			t.Errorf("%s, %v", script, err)
		}
		of, program, ok := Of(path)
		if !ok || of.Digest != pulled.Digest || program != want {
			t.Errorf("of %s: %v %s %v", path, of, program, ok)
		}
	}
	_, err := pulled.Program("data", "gone")
	wantError(t, err, "no program data, gone")
	if _, _, ok := Of("/usr/bin/env"); ok {
		t.Error("a program of the machine is of an image")
	}
}

func TestFaultsOfRegistries(t *testing.T) {
	host := imagetest.Registry(t)
	img := program(t)
	imagetest.Push(t, host, img)
	layer, content := layerOf(t, img, 0)
	blob, size := layer.String(), len(content)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	send := func(b []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) }
	}
	part := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Transfer-Encoding", "chunked") // else its length says that it is cut
		_, _ = w.Write(make([]byte, 100))
		w.(http.Flusher).Flush()
	}
	silence := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, tt := range map[string]struct {
		path   string // what the paths end with whose requests are answered so
		answer http.HandlerFunc
		err    string
	}{
		"401":               {"", status(401), "log in"},
		"403":               {"", status(403), "log in"},
		"404":               {"", status(404), "has no such image"},
		"429":               {"", status(429), "429"},
		"500":               {"", status(500), "500"},
		"not a registry":    {"", send([]byte("hello")), "image "},
		"silence":           {"", silence, "i/o timeout"},
		"401 for a layer":   {blob, status(401), "log in"},
		"500 for a layer":   {blob, status(500), "500"},
		"another layer":     {blob, send(make([]byte, size)), "error verifying"},
		"too long a layer":  {blob, send(make([]byte, 2*size)), "error verifying"},
		"too short a layer": {blob, part, "error verifying"},
		"silence in a layer": {blob, func(w http.ResponseWriter, r *http.Request) { part(w, r); silence(w, r) },
			"i/o timeout"},
		"a layer cut off": {blob, func(w http.ResponseWriter, r *http.Request) {
			part(w, r)
			panic(http.ErrAbortHandler)
		}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			ref := proxy(t, host, func(w http.ResponseWriter, r *http.Request) bool {
				faulty := strings.HasSuffix(r.URL.Path, tt.path)
				if faulty {
					tt.answer(w, r)
				}
				return faulty
			}) + "/a/test:1"
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := s.Pull(ctx, ref, nil)
			wantError(t, err, "image "+ref+": ", tt.err)
			must(t, ctx.Err())
			wantEmpty(t, s)
		})
	}
	_, err := newStore(t).Size(t.Context(), "127.0.0.1:1/a/test:1")
	wantError(t, err, "connection refused")
}

// A layer that has come is not fetched again by the next attempt, unless it is bad by then.
func TestResume(t *testing.T) {
	img := imagetest.Image(t, v1.Config{}, []entry{file("a", "first")}, []entry{file("b", "second")})
	host := imagetest.Registry(t)
	imagetest.Push(t, host, img)
	first, _ := layerOf(t, img, 0)
	second, _ := layerOf(t, img, 1)
	s, asked, whole := newStore(t), 0, false
	ref := proxy(t, host, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, first.String()) {
			asked++
		}
		refused := !whole && strings.HasSuffix(r.URL.Path, second.String())
		if refused {
			w.WriteHeader(http.StatusForbidden)
		}
		return refused
	}) + "/a/test:1"
	kept := filepath.Join(s.parts(), first.Hex)
	var done, total int64
	pull := func(want int) error {
		t.Helper()
		_, err := s.Pull(t.Context(), ref, func(d, of int64) { done, total = d, of })
		if asked != want {
			t.Errorf("the first layer was asked for %d times, want %d", asked, want)
		}
		return err
	}
	for range 2 {
		wantError(t, pull(1), "log in")
	}
	must(t, os.WriteFile(kept, []byte("spoiled"), 0o644))
	whole = true
	if err := pull(2); err != nil || done != total || total == 0 {
		t.Errorf("%d of %d bytes: %v", done, total, err)
	}
	if _, err := os.Stat(s.parts()); err == nil {
		t.Error("what was downloaded is kept")
	}
}

// A tag stays what it was when it was pulled, until it is pulled anew.
func TestTags(t *testing.T) {
	host := imagetest.Registry(t)
	s := newStore(t)
	for _, img := range []v1.Image{imagetest.Image(t, v1.Config{}, []entry{file("old", "x")}), program(t)} {
		ref := imagetest.Push(t, host, img)
		before, missing := s.Find(ref)
		pulled, err := s.Pull(t.Context(), ref, nil)
		must(t, err)
		digest, _ := img.Digest()
		if found, err := s.Find(ref); pulled.Digest != digest.String() || found.Digest != pulled.Digest || err != nil {
			t.Errorf("pulled %v, found %v (%v), want %s", pulled, found, err, digest)
		}
		if missing == nil && before.Digest == digest.String() {
			t.Error("it was another image before that was pulled")
		}
	}
}

// layerOf is a layer of an image as it is transferred.
func layerOf(t *testing.T, img v1.Image, number int) (v1.Hash, []byte) {
	t.Helper()
	layers, err := img.Layers()
	must(t, err)
	digest, err := layers[number].Digest()
	must(t, err)
	r, err := layers[number].Compressed()
	must(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	must(t, err)
	return digest, b
}

// swapped is an image whose layer has other content than its configuration says.
type swapped struct {
	v1.Image
	layers []v1.Layer
}

func (s swapped) Layers() ([]v1.Layer, error) { return s.layers, nil }

func of(img v1.Image) func() (v1.Image, error) { return func() (v1.Image, error) { return img, nil } }

func TestNothingHalfUnpackedStays(t *testing.T) {
	img := program(t)
	other, err := imagetest.Image(t, v1.Config{}, []entry{{Name: "evil", Content: "x"}}).Layers()
	must(t, err)
	config, err := img.ConfigFile()
	must(t, err)
	config = config.DeepCopy()
	config.Architecture = "pdp11"
	foreign, err := mutate.ConfigFile(img, config)
	must(t, err)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for want, c := range map[string]struct {
		ctx context.Context
		img v1.Image
	}{
		"wrong digest": {t.Context(), swapped{img, other}},
		"2 layers":     {t.Context(), swapped{img, append(other, other...)}},
		"canceled":     {cancelled, img},
		"linux/pdp11":  {t.Context(), foreign},
	} {
		s := newStore(t)
		_, err := s.add(c.ctx, "x", of(c.img))
		wantError(t, err, want)
		wantEmpty(t, s)
	}
}

func TestFullDisk(t *testing.T) {
	s := newStore(t)
	must(t, os.MkdirAll(s.Dir, 0o755))
	if err := unix.Mount("tmpfs", s.Dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(s.Dir, unix.MNT_DETACH) })
	_, err := s.add(t.Context(), "x", of(program(t)))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "noise") {
		t.Errorf("%v", err)
	}
	wantEmpty(t, s)
}

func TestLoad(t *testing.T) {
	img := program(t)
	digest, _ := img.Digest()
	dir, file := filepath.Join(t.TempDir(), "layout"), filepath.Join(t.TempDir(), "saved.tar")
	at, err := layout.Write(dir, empty.Index)
	must(t, err)
	must(t, at.AppendImage(img))
	ref, _ := name.NewTag("kept:1")
	must(t, tarball.WriteToFile(file, ref, img))
	nested := filepath.Join(t.TempDir(), "nested") // as buildx writes it, with an image for another machine
	at, err = layout.Write(nested, empty.Index)
	must(t, err)
	foreign := mutate.IndexAddendum{Add: empty.Image,
		Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "pdp11"}}}
	must(t, at.AppendIndex(mutate.AppendManifests(empty.Index, foreign, mutate.IndexAddendum{Add: img})))
	for _, from := range []string{dir, file, nested} {
		s := newStore(t)
		loaded, err := s.Load(t.Context(), "kept:1", from)
		must(t, err)
		if from != file && loaded.Digest != digest.String() {
			t.Errorf("digest %s, want %s", loaded.Digest, digest)
		}
		if found, err := s.Find("docker.io/library/kept:1"); err != nil || found.Digest != loaded.Digest {
			t.Errorf("find: %v, %v", found, err)
		}
		if left, _ := filepath.Glob(filepath.Join(s.Dir, unpacking+"*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if _, err := newStore(t).Load(t.Context(), "kept@"+digest.String(), dir); err == nil {
		t.Error("a file goes by another image's digest")
	}
	// One byte of a layer.
	layer, _ := layerOf(t, img, 0)
	blob := filepath.Join(dir, "blobs", "sha256", layer.Hex)
	b, err := os.ReadFile(blob)
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(blob, b, 0o644))
	s := newStore(t)
	archive := filepath.Join(t.TempDir(), "layout.tar")
	must(t, exec.Command("tar", "-C", dir, "-cf", archive, ".").Run())
	_, err = s.Load(t.Context(), "kept:1", archive)
	wantError(t, err, "tar -xf "+archive)
	for _, from := range []string{dir, t.TempDir(), filepath.Join(dir, "none"), blob} {
		_, err := s.Load(t.Context(), "kept:1", from)
		wantError(t, err, "image kept:1: ")
	}
	wantEmpty(t, s)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks that there is an error, and that it has some words.
func wantError(t testing.TB, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want %q", err, word)
		}
	}
}
