package disk

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// wantInjective checks that different names get different file names, which can be found again.
func wantInjective(t *testing.T, names []string, encode func(string) string) {
	t.Helper()
	seen := map[string]string{}
	for _, name := range names {
		file := encode(name)
		if other, dup := seen[file]; dup {
			t.Errorf("%q and %q are both %s", name, other, file)
		}
		seen[file] = name
		if back := Name(file); back != name && !strings.HasPrefix(file, "=sha256=") {
			t.Errorf("%q became %q, then %q", name, file, back)
		}
	}
}

func TestFileNameIsInjectiveAndSafe(t *testing.T) {
	wantInjective(t, []string{
		"", "a", "A", "a.b", ".a", "..", "a/b", "a=b", "a=3Db", "=", "%41", "\x00", "\xff", "é", Probe,
		strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("/", 200), "=sha256=" +
			strings.Repeat("0", 64),
	}, func(name string) string {
		file := FileName(name)
		if err := Valid(file); err != nil || len(file) > 255 {
			t.Errorf("%q: file name of %d bytes, %v", name, len(file), err)
		}
		return file
	})
}

func TestWriteIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	for name, r := range map[string]io.Reader{
		"short":  strings.NewReader("1234"),
		"long":   strings.NewReader("123456"),
		"broken": io.MultiReader(strings.NewReader("12345"), iotest.ErrReader(broken)),
	} {
		if _, err := here(dir).Seed(t.Context(), name, 5, r); err == nil {
			t.Errorf("a %s reader is written", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := here(dir).Seed(ended, "cancelled", 1, strings.NewReader("1"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// A partly written object is never visible during a replacement.
	for _, text := range []string{"first", "other"} {
		_, err := here(dir).Seed(t.Context(), "o", 5, strings.NewReader(text))
		must(t, err)
		if b, err := os.ReadFile(filepath.Join(dir, "o")); err != nil || string(b) != text {
			t.Errorf("read %q, %v", b, err)
		}
	}
}

func TestPathNameKeepsSlashes(t *testing.T) {
	seen := map[string]string{}
	for name, want := range map[string]string{
		"run/dir/file.txt": "run/dir/file.txt", "a b/ü": "a=20b/=C3=BC", "plain": "plain",
		"run/.hidden": "run/=2Ehidden", "a=2Fb": "a=3D2Fb",
		"/run/file": "=2Frun=2Ffile", "run//file": "run=2F=2Ffile", "run/": "run=2F", "run/../x": "run=2F..=2Fx",
		"../x": "=2E.=2Fx", "./x": "=2E=2Fx", "run/.": "run=2F.", "/": "=2F",
	} {
		got := PathName(name)
		if got != want || NameOfPath(got) != name || ValidPath(got) != nil {
			t.Errorf("%q became %q, want %q; back %q; %v", name, got, want, NameOfPath(got), ValidPath(got))
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
	}
	for _, name := range []string{strings.Repeat("dir/", 300) + "file", strings.Repeat("x", 300) + "/file"} {
		got := PathName(name)
		if len(got) > 800 || ValidPath(got) != nil || got == PathName(name+"2") {
			t.Errorf("%q became %q", name, got)
		}
	}
	for _, bad := range []string{"", "/a", "a/", "a//b", "a/../b", "a/.b"} {
		if ValidPath(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func here(path string) Dir { return Dir{testbed.LocalFiles{}, path} }

func TestUsage(t *testing.T) {
	a, b, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(size int, path ...string) string {
		t.Helper()
		file := filepath.Join(path...)
		must(t, os.WriteFile(file, []byte(strings.Repeat("x", size)), 0o600))
		return file
	}
	must(t, os.MkdirAll(filepath.Join(a, "d", "e"), 0o755))
	must(t, os.Mkdir(filepath.Join(a, Probe), 0o755))
	files := []string{
		write(10_000, a, "one"),
		write(0, a, "d", "empty"),
		write(123, a, "d", "e", "three"),
		write(77, b, "four"),
	}
	sparse := filepath.Join(a, "sparse")
	f, err := os.Create(sparse)
	must(t, err)
	must(t, f.Truncate(1<<30))
	must(t, f.Close())
	must(t, os.Link(files[0], filepath.Join(b, "one again")))
	write(1000, elsewhere, "not ours")
	must(t, os.Symlink(elsewhere, filepath.Join(a, "link to a directory")))
	write(1000, a, Probe, "attribute of the probe")
	write(len(ProbeContent), b, Probe)

	got, err := Usage(here(a), here(b))
	must(t, err)
	want := system.Holdings{
		Objects:  -1,
		Absolute: 10_000 + 123 + 77 + 1<<30,
		Entries:  9,  // d, e, four files, sparse, a second name, a link
		Inodes:   10, // a, b, d, e, four files, sparse, a link
		Disk:     got.Disk,
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Whatever the block size of the file system: at least the size of the files, and far less than
	// a hole or a hard link counted twice would add.
	if got.Disk < 10_000+123+77 || got.Disk > 1<<20 || got.Disk%512 != 0 {
		t.Errorf("%d bytes on disk", got.Disk)
	}
	before := got.Disk
	must(t, os.Remove(files[0])) // it still exists under its other name
	if got, err = Usage(here(a), here(b)); err != nil || got.Disk != before || got.Entries != want.Entries-1 ||
		got.Inodes != want.Inodes {
		t.Errorf("without one of two names: %+v, %v", got, err)
	}
	if got, err := Usage(); err != nil || got != (system.Holdings{Objects: -1}) {
		t.Errorf("nothing: %+v, %v", got, err)
	}
	if _, err := Usage(here(a), here(filepath.Join(a, "none"))); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a directory that is not there: %v", err)
	}
}
