package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func here(path string) Dir { return Dir{testbed.LocalFiles{}, path} }

func TestUsage(t *testing.T) {
	a, b, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(size int, path ...string) string {
		t.Helper()
		file := filepath.Join(path...)
		must(os.WriteFile(file, []byte(strings.Repeat("x", size)), 0o600))
		return file
	}
	must(os.MkdirAll(filepath.Join(a, "d", "e"), 0o755))
	must(os.Mkdir(filepath.Join(a, Probe), 0o755))
	files := []string{
		write(10_000, a, "one"),
		write(0, a, "d", "empty"),
		write(123, a, "d", "e", "three"),
		write(77, b, "four"),
	}
	sparse := filepath.Join(a, "sparse")
	f, err := os.Create(sparse)
	must(err)
	must(f.Truncate(1 << 30))
	must(f.Close())
	must(os.Link(files[0], filepath.Join(b, "one again")))
	write(1000, elsewhere, "not ours")
	must(os.Symlink(elsewhere, filepath.Join(a, "link to a directory")))
	write(1000, a, Probe, "attribute of the probe")
	write(len(ProbeContent), b, Probe)

	got, err := Usage(here(a), here(b))
	must(err)
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
	// Whatever the file system's block size is: at least what the files hold,
	// far from what a hole pretends or a hard link counted twice.
	if got.Disk < 10_000+123+77 || got.Disk > 1<<20 || got.Disk%512 != 0 {
		t.Errorf("%d bytes on disk", got.Disk)
	}
	before := got.Disk
	must(os.Remove(files[0])) // its other name still holds it
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
