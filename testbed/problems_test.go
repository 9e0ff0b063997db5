package testbed

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

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
