package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
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

// writeFiles makes a directory with files of these contents.
func writeFiles(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

// The tightest of the groups above counts, and what the page cache holds is free.
func TestMemoryLeft(t *testing.T) {
	root := writeFiles(t, map[string]string{
		"a/memory.max": "1000\n", "a/memory.current": "700\n",
		"a/memory.stat":  "anon 500\nactive_file 50\ninactive_file 150\n",
		"a/b/memory.max": "max\n", "a/b/memory.current": "10\n",
		"c/memory.max": "300\n", "c/memory.current": "400\n",
	})
	for own, want := range map[string]float64{
		"0::/a/b\n": 500, "0::/c\n": 0, "0::/\n": math.Inf(1), "0::/elsewhere\n": math.Inf(1), "": math.Inf(1),
		"12:memory:/c\n": math.Inf(1), // of version 1
	} {
		if left := memoryLeft(groupsOf(root, own)); left != want {
			t.Errorf("%q: %v, want %v", own, left, want)
		}
	}
	if n, err := Here().AvailableMemory(); err != nil || n < 1<<20 {
		t.Errorf("available: %v, %v", n, err)
	}
}

func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		name, own string
		files     map[string]string
		want      float64
	}{
		{"held back", "0::/own", map[string]string{
			"own/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 9900000\n"}, 0.3},
		{"a shorter period", "0::/own", map[string]string{
			"own/cpu.stat": "nr_periods 10\nnr_throttled 3\n", "own/cpu.max": "5000 10000\n"}, 0.03},
		{"never held back", "0::/own", map[string]string{
			"own/cpu.stat": "nr_periods 10\nnr_throttled 0\nthrottled_usec 0\n"}, 0},
		{"no limit", "0::/own", map[string]string{"own/cpu.stat": "nr_periods 0\nnr_throttled 0\n"}, math.NaN()},
		{"the root", "0::/own", map[string]string{"cpu.stat": "usage_usec 5\n"}, math.NaN()},
		{"a slice that held back others long ago", "0::/own", map[string]string{
			"cpu.stat": "nr_periods 20000\nnr_throttled 10000\n", "own/cpu.stat": "nr_periods 1000\nnr_throttled 600\n",
		}, 1060},
		{"no file", "0::/own", nil, math.NaN()},
	} {
		got := throttled(groupsOf(writeFiles(t, c.files), c.own))
		if math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %g s, want %g", c.name, got, c.want)
		}
	}
}

func TestProblemsSayWhatToDo(t *testing.T) {
	all := Here().Problems(Options{Dir: t.TempDir()})
	names := map[string]bool{}
	for _, p := range all {
		t.Logf("%s: %s (%s)", p.Name, p.What, p.Hint)
		if p.Name == "" || p.What == "" || p.Hint == "" {
			t.Errorf("incomplete: %+v", p)
		}
		if names[p.Name] {
			t.Errorf("%s twice", p.Name)
		}
		names[p.Name] = true
	}
	for _, p := range Here().Problems(Options{Plain: true}) {
		if slices.Contains([]string{"namespaces", "netem", "user", "emulator"}, p.Name) {
			t.Errorf("plain hosts do not need it: %+v", p)
		}
	}
	// What is asked for and is not there ends a run before it begins.
	for _, p := range Here().Problems(Options{Emulate: "netem"}) {
		if (p.Name == "netem" || p.Name == "namespaces") && !p.Blocking {
			t.Errorf("asked for, yet only a warning: %+v", p)
		}
	}
}

// A program that computes on every core is seen as others' use of the CPU, and no
// machine is busier than all of it.
func TestBusy(t *testing.T) {
	var loop int
	for range runtime.NumCPU() {
		c := exec.Command("sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		must(t, c.Start())
		// What we started is ours, so the look is another process's.
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		loop = c.Process.Pid
	}
	look := exec.Command(self(t), "fake", "busy", "0.05")
	var out strings.Builder
	look.Stdout = &out
	must(t, look.Start())
	if what := Busy(t.Context(), 1); what != "" {
		t.Errorf("above 100 %%: %s", what)
	}
	if err := look.Wait(); err != nil || !strings.Contains(out.String(), "busy") {
		t.Errorf("two loops: %q, %v", &out, err)
	}
	before := scan()
	eventually(t, "the one that computes is named", func() bool {
		after := scan()
		maps.DeleteFunc(after, func(pid int, _ stat) bool { return pid != loop && pid != os.Getppid() })
		return busiest(before, after) == fmt.Sprintf(", most by sh (pid %d)", loop)
	})
}

// elsewhere is a host on another machine, which may be lost.
type elsewhere struct {
	Remote
	on   there
	lost error
}

// there is a machine by its name.
type there struct {
	Machine
	name string
}

func (e elsewhere) Machine() Machine           { return e.on }
func (e elsewhere) Lost() error                { return e.lost }
func (m there) Name() string                   { return m.name }
func (m there) Environment() map[string]string { return map[string]string{"load": m.name} }

// A machine that took the place of a lost one is not one more.
func TestLostMachinesAreNotCounted(t *testing.T) {
	tb := newTestbed(t, Options{Plain: true})
	tb.remote = []Remote{elsewhere{on: there{name: "m1"}, lost: errors.New("gone")}, elsewhere{on: there{name: "m2"}}}
	env := tb.Environment()
	if env["testbed.machines"] != "2" || env["load@m2"] != "m2" || env["load@m1"] != "" {
		t.Errorf("environment: %v", env)
	}
}

func TestEnvironmentIsRecorded(t *testing.T) {
	tb := newTestbed(t, Options{})
	addHost(t, tb, "a")
	env := tb.Environment()
	for _, key := range []string{"kernel", "cpu.model", "cpu.count", "memory.MemTotal", "load", "go",
		"testbed.namespaces", "testbed.emulator", "host.net.ipv4.tcp_congestion_control",
		"host.net.ipv4.tcp_slow_start_after_idle"} {
		if env[key] == "" {
			t.Errorf("%s is not recorded", key)
		}
	}
}
