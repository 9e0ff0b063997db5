package workload

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree writes files; a name that ends with a slash is a directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		put(t, path, text)
	}
	return dir
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func directory(t testing.TB, root string, copies int) *Directory {
	t.Helper()
	d, err := ReadDirectory(context.Background(), root, copies)
	if err != nil {
		t.Fatal(err)
	}
	return d
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
	if err := os.Symlink("b.txt", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(root, "a", "circle")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := directory(t, root, 1)
	// By whole paths: a.d comes before a/b/z.
	if diff := cmp.Diff([]string{"a.d", "a/b/z", "a/c.txt", "b.txt"}, names(d)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a/circle", "link", "pipe"}, slices.Sorted(slices.Values(d.Left()))); diff != "" {
		t.Error(diff)
	}
	if got := string(contentOf(t, d, 2)); got != "ccc" {
		t.Errorf("a/c.txt holds %q", got)
	}
	through := filepath.Join(t.TempDir(), "through")
	if err := os.Symlink(root, through); err != nil {
		t.Fatal(err)
	}
	if l := directory(t, through, 1); l.Fingerprint() != d.Fingerprint() || string(contentOf(t, l, 3)) != "bb" {
		t.Error("the tree through a link is another one")
	}
}

// As in the study: the same bytes, a number before the extension, all of one
// copy before the next.
func TestDirectoryCopies(t *testing.T) {
	d := directory(t, tree(t, map[string]string{"b": "bb", "a/c.txt": "ccc"}), 2)
	if diff := cmp.Diff([]string{"a/c-00000000.txt", "b-00000000", "a/c-00000001.txt", "b-00000001"}, names(d)); diff != "" {
		t.Error(diff)
	}
	for i := range d.Len() {
		if want := []string{"ccc", "bb"}[i%2]; string(contentOf(t, d, i)) != want || check(t, d, i, []byte(want), 1) != nil {
			t.Errorf("object %d is not %q", i, want)
		}
	}
	if one := directory(t, d.root, 1); one.Fingerprint() == d.Fingerprint() {
		t.Error("one copy and two have one fingerprint")
	}
}

// Check finds a flipped byte anywhere.
func TestDirectoryCheck(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 2000)
	d := directory(t, tree(t, map[string]string{"x": text, "empty": ""}), 1)
	for at := 0; at < len(text); at += 97 {
		bad := []byte(text)
		bad[at] ^= 1
		var m *Mismatch
		if err := check(t, d, 1, bad, 1000); !errors.As(err, &m) || m.At != int64(at) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
	if err := check(t, d, 1, []byte(text), 1000); err != nil {
		t.Error(err)
	}
	if err := check(t, d, 1, []byte(text[1:]), 1000); err == nil {
		t.Error("shifted content passes")
	}
	if err := check(t, d, 0, nil, 1000); err != nil {
		t.Error(err)
	}
}

// A file that changes while the set is in use is never stored as what it was.
func TestDirectoryChanges(t *testing.T) {
	root := tree(t, map[string]string{"a": "aaaa", "b": "bbbb", "c": "cccc"})
	d := directory(t, root, 1)
	put(t, filepath.Join(root, "a"), "aaaaa")
	if err := os.Chtimes(filepath.Join(root, "b"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "c")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a has changed since the data set was read: it had 4 bytes and now has 5", "b has changed since the data set was read: it was written at 1970", "it is gone"} {
		var changed *ChangedError
		if _, err := d.Open(i); !errors.As(err, &changed) || !strings.Contains(err.Error(), want) {
			t.Errorf("open: %v, want %s", err, want)
		}
		if _, err := d.Check(i); !errors.As(err, &changed) {
			t.Errorf("check: %v", err)
		}
	}
}

func TestDirectoryErrors(t *testing.T) {
	bg := context.Background()
	root := tree(t, map[string]string{"file": "x", "empty/": ""})
	for path, want := range map[string]string{"file": "is not a directory", "nowhere": "no such file", "empty": "has no regular file"} {
		if _, err := ReadDirectory(bg, filepath.Join(root, path), 1); err == nil || !strings.Contains(err.Error(), want) {
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

// What cannot be read is named, all of it, and nothing is swallowed.
func TestDirectoryUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	root := tree(t, map[string]string{"a/secret": "x", "closed/in": "x", "fine": "x"})
	if err := os.Chmod(filepath.Join(root, "a", "secret"), 0); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(root, "closed")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(closed, 0o755)
	_, err := ReadDirectory(context.Background(), root, 1)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "closed") || strings.Contains(err.Error(), "fine") {
		t.Errorf("error %v", err)
	}
	if err := os.Chmod(closed, 0o755); err != nil {
		t.Fatal(err)
	}
	d := directory(t, root, 1)
	for i := range d.Len() {
		r, err := d.Open(i)
		if err == nil {
			r.Close()
		}
		if secret := d.Object(i).Name == "a/secret"; secret != errors.Is(err, fs.ErrPermission) || secret && !strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", d.Object(i).Name, err)
		}
	}
}

func TestManifest(t *testing.T) {
	m := Manifest{{"a\nb", 5, -3}, {"a\"\t.txt", 0, 1_700_000_000_123_456_789}, {"ü/z", 1 << 40, 0}}
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadManifest(&b)
	if diff := cmp.Diff(m, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	path := filepath.Join(t.TempDir(), "manifest.zst")
	if err := m.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err = ReadManifestFile(path)
	if diff := cmp.Diff(m, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, string(whole[:len(whole)-3]))
	if got, err := ReadManifestFile(path); err == nil {
		t.Errorf("a manifest cut short is read as %v", got)
	}
	for _, text := range []string{"", "plimsoll manifest 2\n", manifestHead + "\n5\t6\n", manifestHead + "\nx\t6\t\"a\"\n", manifestHead + "\n5\t6\ta\n"} {
		if got, err := ReadManifest(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestManifestDiff(t *testing.T) {
	m := Manifest{{"a", 1, 1}, {"b", 2, 2}, {"c", 3, 3}, {"d", 4, 4}}
	for _, c := range []struct {
		later Manifest
		want  string
	}{
		{m, "no file added, removed or changed"},
		{Manifest{{"a", 1, 1}, {"b", 2, 2}, {"c", 3, 3}, {"d", 4, 4}, {"e", 1, 1}}, "1 file added (first: e)"},
		{Manifest{{"b", 2, 2}, {"c", 3, 3}, {"d", 4, 4}}, "1 file removed (first: a)"},
		{Manifest{{"a", 1, 1}, {"b", 2, 9}, {"c", 4, 3}, {"d", 4, 4}}, "2 files changed (first: b); b has its 2 bytes, and was written at 1970-01-01T00:00:00.000000009Z, not 1970-01-01T00:00:00.000000002Z"},
		{Manifest{{"0", 1, 1}, {"a", 1, 2}, {"b", 2, 2}, {"bb", 2, 2}, {"bc", 2, 2}, {"d", 5, 4}}, "3 files added, 1 removed, 2 changed (first: 0); a has its 1 bytes, and was written at 1970-01-01T00:00:00.000000002Z, not 1970-01-01T00:00:00.000000001Z"},
		{Manifest{{"a", 1, 1}, {"b", 7, 2}, {"c", 3, 3}, {"d", 4, 4}}, "1 file changed (first: b); b has 7 bytes and had 2"},
		{nil, "4 files removed (first: a)"},
	} {
		got := m.Diff(c.later)
		if got.String() != c.want || got.None() != (len(c.want) == len("no file added, removed or changed") && strings.HasPrefix(c.want, "no file")) {
			t.Errorf("%v: %q, want %q", c.later, got, c.want)
		}
	}
}

// Where only times differ, that is told, with the way back.
func TestOnlyTimesDiffer(t *testing.T) {
	m := Manifest{{"a", 1, 1}, {"b c", 2, 1_000_000_000}}
	if c := m.Diff(Manifest{{"a", 1, 1}, {"b c", 2, 9}}); !c.OnlyTimes() || c.Touch() != `touch -d 1970-01-01T00:00:01Z "b c"` {
		t.Errorf("%+v: %s", c, c.Touch())
	}
	for _, later := range []Manifest{m, {{"a", 1, 9}}, {{"a", 2, 9}, {"b c", 2, 9}}} {
		if c := m.Diff(later); c.OnlyTimes() {
			t.Errorf("%v: %+v", later, c)
		}
	}
}
