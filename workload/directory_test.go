package workload

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
	for i, want := range []string{"a has changed since the data set was read: it had 4 bytes and now has 5",
		"b has changed since the data set was read: it was written at 1970", "no such file"} {
		if _, err := d.Open(i); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open: %v, want %s", err, want)
		}
	}
}

func TestDirectoryErrors(t *testing.T) {
	bg := context.Background()
	root := tree(t, map[string]string{"file": "x", "empty/": ""})
	for path, want := range map[string]string{"file": "is not a directory", "nowhere": "no such file",
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
