package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

// session is plimsoll as a child of the test.
type session struct {
	t    *testing.T
	cmd  *exec.Cmd
	tmp  string
	dir  string
	done chan error

	mu  sync.Mutex
	out bytes.Buffer
}

func (s *session) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *session) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// startRun runs an experiment in a child.
func startRun(t *testing.T, yaml string, env ...string) *session {
	t.Helper()
	return startRunWith(t, yaml, nil, env...)
}

// startRunWith is startRun with further arguments.
func startRunWith(t *testing.T, yaml string, args []string, env ...string) *session {
	t.Helper()
	file := filepath.Join(t.TempDir(), "experiment.yaml")
	must(t, os.WriteFile(file, []byte(yaml), 0o644))
	return startRunOf(t, file, args, env...)
}

// startRunOf is startRunWith of a file.
func startRunOf(t *testing.T, file string, args []string, env ...string) *session {
	t.Helper()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	s := &session{t: t, tmp: t.TempDir(), dir: filepath.Join(t.TempDir(), "run"), done: make(chan error, 1)}
	s.cmd = exec.Command(os.Args[0], append([]string{"run", file, "--out", s.dir, "--keep-going"}, args...)...)
	s.cmd.Env = append(append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "TMPDIR="+s.tmp), env...)
	s.cmd.Stdout, s.cmd.Stderr = s, s
	must(t, s.cmd.Start())
	go func() { s.done <- s.cmd.Wait() }()
	t.Cleanup(func() { s.cmd.Process.Kill() })
	return s
}

// await waits until what was said contains text.
func (s *session) await(text string) {
	s.t.Helper()
	for range 600 {
		if strings.Contains(s.output(), text) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatalf("plimsoll never said %q:\n%s", text, s.output())
}

// end waits for the end of the run and returns its status.
func (s *session) end() ui.Code {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(2 * time.Minute):
		s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.done
		s.t.Fatalf("plimsoll hangs:\n%s", s.output())
	}
	nothingLeft(s.t, s.tmp, s.dir)
	if _, err := os.Stat(filepath.Join(s.dir, "run.db")); err == nil {
		recomputed(s.t, s.dir)
	}
	return ui.Code(s.cmd.ProcessState.ExitCode())
}

// kill sends SIGKILL to the run's process whose command line contains text, once there is one.
func (s *session) kill(text string) {
	s.t.Helper()
	for range 1000 {
		if s.killed(text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("no process of the run has %q in its command line", text)
}

func (s *session) killed(text string) bool {
	procs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range procs {
		env, err := os.ReadFile(p)
		cmd, _ := os.ReadFile(filepath.Dir(p) + "/cmdline")
		// nginx writes its title over its environment.
		if err != nil || !bytes.Contains(env, []byte("TMPDIR="+s.tmp)) && !bytes.Contains(env, []byte(s.dir)) &&
			!bytes.Contains(cmd, []byte(s.dir)) {
			continue
		}
		if strings.Contains(strings.ReplaceAll(string(cmd), "\x00", " "), text) {
			pid := 0
			for _, c := range filepath.Base(filepath.Dir(p)) {
				pid = pid*10 + int(c-'0')
			}
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

func (s *session) trials() []record.Trial {
	s.t.Helper()
	r, err := record.Open(s.dir)
	must(s.t, err)
	defer r.Close()
	trials, err := r.Trials()
	must(s.t, err)
	return trials
}

const faultExperiment = `
scenario: retrieve
systems: [static]
data: {objects: 1, size: 1MiB}
link: {delay: 1ms, rate: 200Mbit}
retrieve: {range: 64KiB, concurrency: 4, duration: 700ms}
repetitions: 4
warmup: 0
limits: {others: none, machine: none, stall: 2s, deadline: 5s}
skip: [machine]
`

// TestSystemKilledDuringATrial: the trial says so and stays out, the system is
// brought up again, and the later trials are whole.
func TestSystemKilledDuringATrial(t *testing.T) {
	t.Parallel()
	s := startRun(t, faultExperiment)
	s.await("block 2 of 4")
	time.Sleep(400 * time.Millisecond)
	s.kill("node static")
	s.end()
	trials := s.trials()
	if len(trials) != 4 {
		t.Fatalf("%d trials, want 4:\n%s", len(trials), s.output())
	}
	dead, restarted := 0, 0
	for _, tr := range trials {
		if slices.Contains(tr.Invalid, record.ReasonDaemonDied) || tr.State == record.Failed {
			dead++
		}
		if slices.ContainsFunc(tr.Notes, func(n string) bool { return strings.Contains(n, "restarted") }) {
			restarted++
			if !slices.Contains(tr.Invalid, record.ReasonDaemonRestarted) {
				t.Errorf("a trial right after a restart counts: %+v", tr)
			}
			if tr.Outcomes["ok"] == 0 {
				t.Errorf("after the restart nothing was ok: %v", tr.Outcomes)
			}
		}
	}
	if dead > 1 || restarted != 1 {
		t.Errorf("%d trials with a dead system (want at most 1), %d after a restart (want 1):\n%s", dead, restarted,
			s.output())
	}
}

// TestFullDisk: the run ends with an error that names the disk, and what was
// recorded before can be read.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=600k"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	yaml := strings.Replace(faultExperiment, "repetitions: 4", "repetitions: 40", 1)
	yaml = strings.Replace(yaml, "range: 64KiB", "range: 1KiB", 1)
	yaml = strings.Replace(yaml, "concurrency: 4", "concurrency: 64", 1)
	file := filepath.Join(t.TempDir(), "experiment.yaml")
	must(t, os.WriteFile(file, []byte(yaml), 0o644))
	dir := filepath.Join(disk, "run")
	c := exec.Command(os.Args[0], "run", file, "--out", dir, "--keep-going")
	c.Env = append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "TMPDIR="+t.TempDir())
	out, err := c.CombinedOutput()
	if err == nil || c.ProcessState.ExitCode() != int(ui.CodeUnwritable) {
		t.Errorf("a run on a full disk: %v, want status %d:\n%s", err, ui.CodeUnwritable, out)
	}
	if !bytes.Contains(out, []byte("no space left on device")) && !bytes.Contains(out, []byte("full")) {
		t.Errorf("the error does not name the disk:\n%s", out)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatalf("what was recorded cannot be read: %v", err)
	}
	defer r.Close()
	if _, err := r.Trials(); err != nil {
		t.Errorf("what was recorded cannot be read: %v", err)
	}
}

// TestRemovedDuringTheRun: what nobody can find again is not measured to its end.
func TestRemovedDuringTheRun(t *testing.T) {
	t.Parallel()
	s := startRun(t, strings.NewReplacer("repetitions: 4", "repetitions: 200", "link: {delay: 1ms, rate: 200Mbit}", "link: {emulator: none}").Replace(faultExperiment))
	s.await("block 2 of 200")
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if code := s.end(); code != ui.CodeUnwritable || strings.Contains(s.output(), "block 100 of") {
		t.Errorf("status %d, want %d, at once:\n%s", code, ui.CodeUnwritable, s.output())
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the directory is back: %v", err)
	}
}
