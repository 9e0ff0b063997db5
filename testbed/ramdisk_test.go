package testbed

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// A RAM disk holds so much and no more, processes on hosts see it, and nothing of
// it is left when it is removed, or with the testbed.
func TestRAMDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("plimsoll", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	must(t, unix.Unmount(dir, 0))
	t.Setenv("TMPDIR", dir)
	tb := newTestbed(t, Options{})
	h := addHost(t, tb, "a")
	const size = 4 << 20
	d, err := (here{tb}).RAMDisk("store", size)
	must(t, err)
	if on, err := Here().Filesystem(d.Path); err != nil || !on.Memory || !(on.Free > size/2) || on.Free > size {
		t.Errorf("it is on %+v (%v)", on, err)
	}
	if on, err := Here().Filesystem("/proc"); err != nil || on.Memory {
		t.Errorf("/proc is on %+v (%v)", on, err)
	}
	p := start(t, h, Command{Name: "writer", Args: []string{"/bin/sh", "-c", `echo here > "$0/file"`, d.Path}})
	<-p.Done()
	if b, err := os.ReadFile(filepath.Join(d.Path, "file")); err != nil || string(b) != "here\n" {
		t.Errorf("the process's file: %q, %v", b, err)
	}
	must(t, os.WriteFile(filepath.Join(d.Path, "most"), make([]byte, size/2), 0o600))
	if err := os.WriteFile(filepath.Join(d.Path, "more"), make([]byte, size), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("more than it holds: %v", err)
	}
	open, err := os.Open(filepath.Join(d.Path, "most")) // as a daemon may that does not end
	must(t, err)
	defer open.Close()
	must(t, d.Remove())
	must(t, d.Remove())
	other, err := (here{tb}).RAMDisk("other", 1<<20)
	must(t, err)
	must(t, tb.Close(t.Context()))
	must(t, other.Remove())
	for _, d := range []RAMDisk{d, other} {
		if _, err := os.Lstat(d.Path); !os.IsNotExist(err) || mounted(t, d.Path) {
			t.Errorf("%s is left: %v", d.Path, err)
		}
	}
}

func mounted(t *testing.T, dir string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	return bytes.Contains(b, []byte(dir))
}

// One for which there is not enough memory is refused before anything is made.
func TestRAMDiskOfTooMuch(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	tb := newTestbed(t, Options{Plain: true})
	free, err := Here().AvailableMemory()
	must(t, err)
	_, err = (here{tb}).RAMDisk("store", int64(free))
	wantError(t, err, "RAM disk of "+words.Bytes(free)+" needs")
	if left, _ := filepath.Glob(filepath.Join(tmp, runDirPrefix+"*", "ram-*")); len(left) > 0 {
		t.Errorf("made nonetheless: %q", left)
	}
}
