package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

// Each put crosses a link on which it takes 40 ms and more: some three seconds.
const uploadExperiment = `
scenario: upload
systems: [nginx]
data: {objects: 150, size: 10kB}
link: {delay: 20ms}
upload: {concurrency: 2, poll: 500ms, verify: 100%, retries: 100, backoff: 100ms}
repetitions: 1
`

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

// A daemon that dies under a load test is brought up again on its data, and so is a link; the
// test goes on, in the same session.
func TestKillsUnderALoadTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ link, victim, mark string }{
		"system":   {"{delay: 20ms}", "nginx: master", "daemon died: process nginx"},
		"emulator": {"{delay: 20ms, emulator: user}", "node link", "the link was down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, "nginx")
			if name == "emulator" {
				needLinks(t)
			}
			s := startRun(t, strings.Replace(uploadExperiment, "{delay: 20ms}", c.link, 1))
			s.await("of 150 objects accepted") // after a second
			time.Sleep(100 * time.Millisecond)
			s.kill(c.victim)
			if code := s.end(); code != ui.CodeOK {
				t.Errorf("status %d", code)
			}
			s.whole(c.mark)
		})
	}
}

// Ctrl-C: a report of what there is, and the way to go on, which then does.
func TestInterruptedLoadTest(t *testing.T) {
	t.Parallel()
	need(t, "nginx")
	s := startRun(t, uploadExperiment)
	s.await("of 150 objects accepted") // after a second
	time.Sleep(100 * time.Millisecond)
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
	s.whole("")
}
