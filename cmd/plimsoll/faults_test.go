package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

const faultExperiment = `
scenario: retrieve
systems: [static]
data: {objects: 1, size: 1MiB}
link: {delay: 1ms, rate: 200Mbit}
retrieve: {range: 64KiB, concurrency: 4, duration: 700ms}
repetitions: 4
limits: {stall: 2s, deadline: 5s}
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
	s := newSession(t)
	s.dir = filepath.Join(disk, "run")
	s.start(s.runOf(faultExperiment, "--set", "repetitions=40", "--set", "retrieve.range=1KiB",
		"--set", "retrieve.concurrency=64")...)
	if code := s.end(); code != ui.CodeUnwritable {
		t.Errorf("a run on a full disk: status %d, want %d:\n%s", code, ui.CodeUnwritable, s.output())
	}
	if out := s.output(); !strings.Contains(out, "no space left on device") && !strings.Contains(out, "full") {
		t.Errorf("the error does not name the disk:\n%s", out)
	}
	s.trials() // what was recorded can be read
}

// TestRemovedDuringTheRun: what nobody can find again is not measured to its end.
func TestRemovedDuringTheRun(t *testing.T) {
	t.Parallel()
	s := startRun(t, faultExperiment, "--set", "repetitions=200", "--set", "link={emulator: none}")
	s.await("block 2 of 200")
	must(t, os.RemoveAll(s.dir))
	if code := s.end(); code != ui.CodeUnwritable || strings.Contains(s.output(), "block 100 of") {
		t.Errorf("status %d, want %d, at once:\n%s", code, ui.CodeUnwritable, s.output())
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the directory is back: %v", err)
	}
}
