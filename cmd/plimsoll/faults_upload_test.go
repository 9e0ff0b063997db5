package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/nginx"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// Each put crosses a link on which it takes 40 ms and more: some three seconds.
const uploadExperiment = `
scenario: upload
systems: [nginx]
data: {objects: 150, size: 10kB}
link: {delay: 20ms}
upload: {concurrency: 2, poll: 500ms, verify: 100%, retries: 100, backoff: 100ms}
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`

func needNginx(t *testing.T) {
	t.Helper()
	systemtest.Need(t, "nginx", system.Check(t.Context(), nginx.System{}, nil))
}

// resume goes on with a session's run in another one, to its end.
func (s *session) resume() (ui.Code, string) {
	s.t.Helper()
	c := exec.Command(os.Args[0], "resume", s.dir, "--keep-going")
	c.Env = append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "TMPDIR="+s.tmp)
	watchdog := time.AfterFunc(2*time.Minute, func() { c.Process.Kill() })
	defer watchdog.Stop()
	out, _ := c.CombinedOutput() // the status is what counts
	recomputed(s.t, s.dir)
	return ui.Code(c.ProcessState.ExitCode()), string(out)
}

// whole checks the one trial of a load test that came to its end.
func (s *session) whole(mark string) {
	s.t.Helper()
	trials := s.trials()
	if len(trials) != 1 || trials[0].State != record.Done || trials[0].Metrics["accepted"] != 150 ||
		trials[0].Metrics["verified"] != 150 {
		s.t.Fatalf("got %+v\n%s", trials, s.output())
	}
	if !trials[0].Valid() {
		s.t.Errorf("the trial is invalid: %v", trials[0].Invalid)
	}
	for _, want := range []string{mark, record.NoteEnded} {
		if !slices.ContainsFunc(trials[0].Notes, func(n string) bool { return strings.HasPrefix(n, want) }) {
			s.t.Errorf("notes %q, want one that begins with %q", trials[0].Notes, want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "nodes")); err == nil {
		s.t.Error("the deployment is still in the run directory")
	}
}

// A daemon that dies under a load test is brought up again on its data, and the
// test goes on, in the same session.
func TestSystemKilledUnderALoadTest(t *testing.T) {
	t.Parallel()
	needNginx(t)
	s := startRun(t, uploadExperiment)
	s.await("0 of 150 objects accepted")
	time.Sleep(800 * time.Millisecond)
	s.kill("nginx: master")
	if code := s.end(); code != ui.CodeOK {
		t.Errorf("status %d", code)
	}
	s.whole("daemon died: process nginx")
}

// So it is with the link.
func TestEmulatorKilledUnderALoadTest(t *testing.T) {
	t.Parallel()
	needNginx(t)
	needLinks(t)
	s := startRun(t, strings.Replace(uploadExperiment, "{delay: 20ms}", "{delay: 20ms, emulator: user}", 1))
	s.await("0 of 150 objects accepted")
	time.Sleep(800 * time.Millisecond)
	s.kill("node link")
	if code := s.end(); code != ui.CodeOK {
		t.Errorf("status %d", code)
	}
	s.whole("the link was down")
}

// Ctrl-C: a report of what there is, and the way to go on, which then does.
func TestInterruptedLoadTest(t *testing.T) {
	t.Parallel()
	needNginx(t)
	s := startRun(t, uploadExperiment)
	s.await("0 of 150 objects accepted")
	time.Sleep(800 * time.Millisecond)
	s.cmd.Process.Signal(os.Interrupt)
	if code := s.end(); code != ui.CodeInterrupted {
		t.Errorf("status %d, want %d", code, ui.CodeInterrupted)
	}
	if out := s.output(); !strings.Contains(out, "plimsoll resume "+s.dir) {
		t.Errorf("the way to go on is not named:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "report.html")); err != nil {
		t.Errorf("no report: %v", err)
	}
	if trials := s.trials(); len(trials) != 1 || trials[0].State != record.Running ||
		trials[0].Metrics["accepted"] < 1 {
		t.Fatalf("interrupted: %+v", trials)
	}
	code, out := s.resume()
	if code != ui.CodeOK || !strings.Contains(out, "goes on with nginx") ||
		!strings.Contains(out, "continuing in "+s.dir) {
		t.Errorf("resumed: status %d:\n%s", code, out)
	}
	nothingLeft(t, s.tmp, s.dir)
	s.whole("")
}
