package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/deluge"
	"github.com/plimsoll-project/plimsoll/system/nginx"
	"github.com/plimsoll-project/plimsoll/system/s3"
	"github.com/plimsoll-project/plimsoll/system/sftp"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/system/tahoe"
)

// need skips a test where one of these programs is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	systems := map[string]system.System{"deluge": deluge.System{}, "nginx": nginx.System{}, "sshd": sftp.System{},
		"tahoe": tahoe.System{}, "versitygw": s3.System{}}
	for _, name := range programs {
		systemtest.Need(t, systems[name], nil)
	}
}

// slow skips a test of some seconds where only quick ones are wanted.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
}

// session is plimsoll as a child of the test, one process after the other, on one run directory.
type session struct {
	t    *testing.T
	tmp  string
	dir  string
	env  []string
	cmd  *exec.Cmd
	done chan error

	mu  sync.Mutex
	out bytes.Buffer
}

func newSession(t *testing.T, env ...string) *session {
	t.Helper()
	return &session{t: t, tmp: t.TempDir(), dir: filepath.Join(t.TempDir(), "run"), env: env}
}

// startRun runs an experiment in a child, with further arguments.
func startRun(t *testing.T, yaml string, args ...string) *session {
	t.Helper()
	slow(t)
	s := newSession(t)
	s.start(s.runOf(yaml, args...)...)
	return s
}

// runOf are the arguments for a run of an experiment that has no warm-up, whatever the machine does.
func (s *session) runOf(yaml string, args ...string) []string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "experiment.yaml")
	must(s.t, os.WriteFile(file, []byte(yaml), 0o644))
	return s.runOfFile(file, args...)
}

func (s *session) runOfFile(file string, args ...string) []string {
	return append([]string{"run", file, "--out", s.dir, "--keep-going", "--set", "warmup=0", "--set", "skip=machine",
		"--set", "limits.others=none", "--set", "limits.machine=none"}, args...)
}

// start starts plimsoll.
func (s *session) start(args ...string) {
	s.t.Helper()
	cmd, done := exec.Command(os.Args[0], args...), make(chan error, 1)
	cmd.Env = append(append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "TMPDIR="+s.tmp), s.env...)
	cmd.Stdout, cmd.Stderr = s, s
	s.out.Reset()
	must(s.t, cmd.Start())
	go func() { done <- cmd.Wait() }()
	s.t.Cleanup(func() { cmd.Process.Kill() })
	s.cmd, s.done = cmd, done
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

// await waits until what was said contains text.
func (s *session) await(text string) {
	s.t.Helper()
	await(s.t, s.output, text)
}

func await(t *testing.T, said func() string, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(said(), text); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("plimsoll never said %q:\n%s", text, said())
		}
	}
}

// end waits for the end of plimsoll and returns its status.
func (s *session) end() ui.Code {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(2 * time.Minute):
		s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.done
		s.t.Fatalf("plimsoll hangs:\n%s", s.output())
	}
	s.nothingLeft()
	if _, err := os.Stat(filepath.Join(s.dir, "run.db")); err == nil {
		recomputed(s.t, s.dir)
	}
	return ui.Code(s.cmd.ProcessState.ExitCode())
}

// endsMeasured is end of a run that must have measured something: on a busy machine no trial may be valid.
func (s *session) endsMeasured() {
	s.t.Helper()
	if code := s.end(); code != ui.CodeOK && code != ui.CodeInvalid {
		s.t.Fatalf("plimsoll ended with %d:\n%s", code, s.output())
	}
}

// resume goes on with the run to its end.
func (s *session) resume() (ui.Code, string) {
	s.t.Helper()
	s.start("resume", s.dir, "--keep-going")
	return s.end(), s.output()
}

// afterKill are the arguments with which to go on after a kill; begin are those of the run.
func (s *session) afterKill(begin []string) []string {
	if _, err := os.Stat(filepath.Join(s.dir, "plan.json")); err == nil {
		return []string{"resume", s.dir, "--keep-going"}
	}
	os.RemoveAll(s.dir) // killed before the run directory was one
	return begin
}

// kill sends SIGKILL to the run's process whose command line contains text, once there is one.
func (s *session) kill(text string) {
	s.t.Helper()
	for range 1000 {
		for pid, line := range processes(s.owns) {
			if strings.Contains(line, text) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("no process of the run has %q in its command line", text)
}

// owns reports whether a process is of the session; nginx writes its title over its environment.
func (s *session) owns(env, line string) bool {
	return strings.Contains(env, "TMPDIR="+s.tmp) || strings.Contains(env, s.dir) || strings.Contains(line, s.dir)
}

// processes are the command lines of the processes that belong to something, by their ids.
func processes(belongs func(env, line string) bool) map[int]string {
	lines := map[int]string{}
	all, _ := procfs.AllProcs()
	for _, p := range all {
		env, err := p.Environ()
		args, _ := p.CmdLine()
		if line := strings.Join(args, " "); err == nil && belongs(strings.Join(env, "\n"), line) {
			lines[p.PID] = line
		}
	}
	return lines
}

// nothingLeft waits for the watchdog's work: no process of a run, no scratch
// directory. Six seconds are generous for both.
func (s *session) nothingLeft() {
	s.t.Helper()
	for end := time.Now().Add(6 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		procs := processes(s.owns)
		scratch, _ := filepath.Glob(filepath.Join(s.tmp, "plimsoll-*"))
		if len(procs)+len(scratch) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("left behind: processes %v, directories %v", procs, scratch)
			return
		}
	}
}

// savedRun is a run as its directory has it.
type savedRun struct {
	*record.Reader
	plan   *experiment.Plan
	trials []record.Trial
}

func readRun(t *testing.T, dir string) savedRun {
	t.Helper()
	r, err := record.Open(dir)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	plan, err := experiment.LoadPlan(r.Plan())
	must(t, err)
	trials, err := r.Trials()
	must(t, err)
	return savedRun{r, plan, trials}
}

// cell is that of a trial.
func (r savedRun) cell(trial record.Trial) experiment.Cell {
	for _, c := range r.plan.Cells {
		if c.ID == trial.Cell {
			return c
		}
	}
	return experiment.Cell{}
}

func (s *session) trials() []record.Trial { return readRun(s.t, s.dir).trials }

// serve is the URL of a server of content, which has nothing for requests that miss it.
func serve(t *testing.T, content []byte, misses func(r *http.Request) bool) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if misses(r) {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.UnixMilli(1), bytes.NewReader(content))
	}))
	t.Cleanup(s.Close)
	return s.URL
}
