package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

const killedSwarmExperiment = `
scenario: disseminate
systems: [bittorrent, fanout]
data: {size: 2MiB}
link: {rate: 20Mbit, delay: 1ms}
disseminate: {nodes: 4}
repetitions: 2
warmup: 0
limits: {others: none, machine: none, stall: 20s, deadline: 1m, start: 30s}
skip: [machine]
`

// A swarm that is killed in the middle of a trial leaves nothing behind, and goes
// on where it was: in the end the report has each trial once.
func TestSwarmKilledAndResumed(t *testing.T) {
	needLinks(t)
	t.Parallel()
	s := startRun(t, killedSwarmExperiment)
	// Until the second trial is under way.
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		done, running := s.states()
		if done == 1 && running == 1 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the second trial never began:\n%s", s.output())
		}
	}
	time.Sleep(500 * time.Millisecond) // leechers fetch, or are about to
	if err := s.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-s.done
	nothingLeft(t, s.tmp, s.dir)
	if done, _ := s.states(); done >= 4 {
		t.Fatalf("%d trials were done when it was killed", done)
	}

	c := exec.Command(os.Args[0], "resume", s.dir, "--keep-going")
	c.Env = append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "TMPDIR="+s.tmp)
	c.Stdout, c.Stderr = s, s
	check(t, c.Start())
	watchdog := time.AfterFunc(2*time.Minute, func() { c.Process.Kill() })
	defer watchdog.Stop()
	if err := c.Wait(); err != nil && ui.Code(c.ProcessState.ExitCode()) != ui.CodeInvalid {
		t.Fatalf("%v:\n%s", err, s.output())
	}
	nothingLeft(t, s.tmp, s.dir)

	run := readSwarm(t, s.dir)
	seen := map[string]int{}
	for i := range run.trials {
		trial := &run.trials[i]
		seen[trial.name()]++
		if trial.ok() != len(trial.fetches) {
			t.Errorf("%s: outcomes %v %v", trial.name(), trial.Outcomes, trial.Classes)
		}
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s was done %d times", name, n)
		}
	}
	if len(seen) != 4 {
		t.Errorf("trials that were done: %v", seen)
	}
	if r := run.report.Run; r.Done != 4 || r.Planned != 4 || r.State != "complete" ||
		len(run.report.Frame.Trials) != 4 {
		t.Errorf("the report tells of %+v, with %d trials", r, len(run.report.Frame.Trials))
	}
}

// states counts the trials of a run that goes on.
func (s *session) states() (done, running int) {
	r, err := record.Open(s.dir)
	if err != nil {
		return 0, 0 // it is not there yet
	}
	defer r.Close()
	trials, err := r.Trials()
	if err != nil {
		return 0, 0
	}
	for _, trial := range trials {
		switch trial.State {
		case record.Done:
			done++
		case record.Running:
			running++
		}
	}
	return done, running
}
