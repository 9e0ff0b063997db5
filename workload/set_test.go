package workload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func synthetic(sizes Sizes, seed uint64, copies int) *Synthetic {
	return NewSynthetic(sizes, nil, seed, copies)
}

func contentOf(t testing.TB, s Set, i int) []byte {
	t.Helper()
	r, err := s.Open(i)
	must(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	must(t, err)
	if int64(len(b)) != s.Object(i).Size {
		t.Fatalf("object %d has %d bytes of %d", i, len(b), s.Object(i).Size)
	}
	return b
}

// Copies of seeded content have different names, the same sizes and fresh bytes.
func TestSyntheticCopies(t *testing.T) {
	s := synthetic(NewSpread(4, 1, Bucket{1, 100, 1000}), 1, 3)
	names, contents := map[string]bool{}, map[string]bool{}
	for i := range s.Len() {
		o := s.Object(i)
		names[o.Name] = true
		contents[string(contentOf(t, s, i))] = true
		if o.Size != s.Object(i%4).Size {
			t.Errorf("object %d has %d bytes, the one it copies %d", i, o.Size, s.Object(i%4).Size)
		}
	}
	if s.Len() != 12 || len(names) != 12 || len(contents) != 12 {
		t.Errorf("%d objects, %d names, %d contents", s.Len(), len(names), len(contents))
	}
	if got := s.Object(5).Name; got != "00000001-00000001.bin" {
		t.Errorf("the second object of the second copy is %q", got)
	}
}

func TestCopyName(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.txt": "a/b-00000007.txt", "a.d/b": "a.d/b-00000007", ".profile": ".profile-00000007",
		"a/.x":     "a/.x-00000007",
		"x.tar.gz": "x.tar-00000007.gz", "a.": "a-00000007.", "..b": "..b-00000007",
	} {
		if got := (Object{Name: name}).copy(7, 8).Name; got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// Check finds every wrong bit, wherever it is and however the bytes are divided.
func TestCheckFindsOneBit(t *testing.T) {
	s := synthetic(Fixed{2, 3*checkChunk + 100}, 1, 1)
	good := contentOf(t, s, 1)
	fails := func(p []byte, piece, at int, want error) {
		t.Helper()
		if err := check(t, s, 1, p, piece); err != want {
			t.Fatalf("in pieces of %d: %v; byte %d: %v", piece, err, at, want)
		}
	}
	for _, piece := range []int{1 << 20, 4096, 1000, 7} {
		if err := check(t, s, 1, good, piece); err != nil {
			t.Errorf("in pieces of %d: %v", piece, err)
		}
		for at := 0; at < len(good); at += 1 + at%97 + len(good)/300 {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			fails(bad, piece, at, errDiffers)
		}
	}
	fails(append(bytes.Clone(good), 0), 1000, len(good), errDiffers)
	fails(good[:len(good)-1], 1000, len(good)-1, ErrMissing)
	if check(t, s, 0, good, 1000) == nil {
		t.Error("another object passes")
	}
}

// check writes p in pieces and returns the first error; it must not change p.
func check(t *testing.T, s Set, i int, p []byte, piece int) error {
	t.Helper()
	before := bytes.Clone(p)
	w, err := Check(s, i)
	must(t, err)
	for off := 0; off < len(p) && err == nil; off += piece {
		q := p[off:min(off+piece, len(p))]
		var n int
		if n, err = w.Write(q); err == nil && n != len(q) {
			t.Fatalf("wrote %d of %d without an error", n, len(q))
		}
	}
	if !bytes.Equal(p, before) {
		t.Fatal("Write has changed what it was given")
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return err
}

// The fingerprint shows all differences, and does not depend on the process.
func TestFingerprint(t *testing.T) {
	seen := map[string]string{}
	for what, s := range map[string]*Synthetic{
		"base":   synthetic(Fixed{10, 5}, 1, 1),
		"count":  synthetic(Fixed{11, 5}, 1, 1),
		"size":   synthetic(Fixed{10, 6}, 1, 1),
		"spread": synthetic(NewSpread(10, 1, Bucket{1, 5, 6}), 1, 1),
		"seed":   synthetic(Fixed{10, 5}, 2, 1),
		"copies": synthetic(Fixed{10, 5}, 1, 2),
	} {
		f := s.Fingerprint()
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s have one fingerprint", what, other)
		}
		if len(f) != 64 || f != s.Fingerprint() {
			t.Errorf("%s: fingerprint %q", what, f)
		}
		seen[f] = what
	}
}

// tree writes files; names that end with a slash are directories.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		put(t, path, text)
	}
	return dir
}

func put(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func directory(t testing.TB, root string, copies int) *Directory {
	t.Helper()
	d, err := ReadDirectory(context.Background(), root, copies)
	must(t, err)
	return d.(*Directory)
}

func names(s Set) []string {
	var all []string
	for i := range s.Len() {
		all = append(all, s.Object(i).Name)
	}
	return all
}

func TestDirectory(t *testing.T) {
	root := tree(t, map[string]string{"b.txt": "bb", "a/c.txt": "ccc", "a.d": "", "a/b/z": "z", "empty/": ""})
	must(t, os.Symlink("b.txt", filepath.Join(root, "link")))
	must(t, os.Symlink("..", filepath.Join(root, "a", "circle")))
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644))
	d := directory(t, root, 1)
	// Sorted by whole paths: a.d comes before a/b/z.
	if diff := cmp.Diff([]string{"a.d", "a/b/z", "a/c.txt", "b.txt"}, names(d)); diff != "" {
		t.Error(diff)
	}
	if got := string(contentOf(t, d, 2)); got != "ccc" {
		t.Errorf("a/c.txt holds %q", got)
	}
	through := filepath.Join(t.TempDir(), "through")
	must(t, os.Symlink(root, through))
	if l := directory(t, through, 1); l.Fingerprint() != d.Fingerprint() || string(contentOf(t, l, 3)) != "bb" {
		t.Error("the tree through a link is another one")
	}
}

// As in the study: the same bytes, a number before the extension, and all files of one copy before
// the next copy.
func TestDirectoryCopies(t *testing.T) {
	d := directory(t, tree(t, map[string]string{"b": "bb", "a/c.txt": "ccc"}), 2)
	if diff := cmp.Diff([]string{"a/c-00000000.txt", "b-00000000", "a/c-00000001.txt", "b-00000001"},
		names(d)); diff != "" {
		t.Error(diff)
	}
	for i := range d.Len() {
		if want := []string{"ccc", "bb"}[i%2]; string(contentOf(t, d, i)) != want ||
			check(t, d, i, []byte(want), 1) != nil {
			t.Errorf("object %d is not %q", i, want)
		}
	}
	if one := directory(t, d.root, 1); one.Fingerprint() == d.Fingerprint() {
		t.Error("one copy and two have one fingerprint")
	}
}

// A file that changes while the set is in use is never stored as its earlier version.
func TestDirectoryChanges(t *testing.T) {
	root := tree(t, map[string]string{"a": "aaaa", "b": "bbbb", "c": "cccc"})
	d := directory(t, root, 1)
	put(t, filepath.Join(root, "a"), "aaaaa")
	must(t, os.Chtimes(filepath.Join(root, "b"), time.Time{}, time.Unix(1, 0)))
	must(t, os.Remove(filepath.Join(root, "c")))
	for i, want := range []string{"a has changed since the data set was read: it had 4 bytes, written at 20",
		"and now has 4, written at 1970-01-01", "no such file"} {
		if _, err := d.Open(i); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open: %v, want %s", err, want)
		}
	}
}

func TestDirectoryErrors(t *testing.T) {
	bg := context.Background()
	root := tree(t, map[string]string{"file": "x", "empty/": ""})
	for path, want := range map[string]string{"file": "not a directory", "nowhere": "no such file",
		"empty": "has no regular file"} {
		if _, err := ReadDirectory(bg, filepath.Join(root, path), 1); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	put(t, filepath.Join(root, "bad\xff"), "x")
	if _, err := ReadDirectory(bg, root, 1); err == nil || !strings.Contains(err.Error(), `"bad\xff"`) {
		t.Errorf("a name that is not UTF-8: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := ReadDirectory(ctx, root, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Unreadable files are named, and no error is suppressed.
func TestDirectoryUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	root := tree(t, map[string]string{"a/secret": "x", "closed/in": "x", "fine": "x"})
	must(t, os.Chmod(filepath.Join(root, "a", "secret"), 0))
	closed := filepath.Join(root, "closed")
	must(t, os.Chmod(closed, 0))
	defer os.Chmod(closed, 0o755)
	_, err := ReadDirectory(context.Background(), root, 1)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "closed") ||
		strings.Contains(err.Error(), "fine") {
		t.Errorf("error %v", err)
	}
	must(t, os.Chmod(closed, 0o755))
	d := directory(t, root, 1)
	for i := range d.Len() {
		r, err := d.Open(i)
		if err == nil {
			r.Close()
		}
		if secret := d.Object(i).Name == "a/secret"; secret != errors.Is(err, fs.ErrPermission) || secret &&
			!strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", d.Object(i).Name, err)
		}
	}
}
