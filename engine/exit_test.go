package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

func TestExitConditions(t *testing.T) {
	all := exitConditions(experiment.Exit{
		MaxRuntime: experiment.Duration(time.Minute), MaxBytes: 1000, MaxErrors: 0.1,
	})
	for _, c := range []struct {
		name string
		p    progressSoFar
		want string // the condition; empty: go on
	}{
		{"nothing yet", progressSoFar{}, ""},
		{"just below all", progressSoFar{Seconds: 59.9, Bytes: 999, TrialFinished: 10, TrialFailures: 1}, ""},
		{"time is up", progressSoFar{Seconds: 60}, "max_runtime"},
		{"bytes", progressSoFar{Bytes: 1000}, "max_bytes"},
		{"errors", progressSoFar{TrialFinished: 10, TrialFailures: 2}, "max_errors"},
		{"the first one named wins", progressSoFar{Seconds: 61, Bytes: 2000}, "max_runtime"},
	} {
		s := firstMet(all, c.p)
		got := ""
		if s != nil {
			got = s.Condition
			if s.Why == "" || !strings.Contains(s.Error(), got) {
				t.Errorf("%s: says %q", c.name, s)
			}
		}
		if got != c.want {
			t.Errorf("%s: stopped by %q, want %q", c.name, got, c.want)
		}
	}
	if n := len(exitConditions(experiment.Exit{})); n != 0 {
		t.Errorf("an experiment without exit conditions has %d", n)
	}
}

// What a resumed run has lasted is wall clock, of sessions that ended and of
// those that were killed; the pause between them is not of it.
func TestEarlierSessions(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	phase := func(s float64, what string) record.Event {
		return record.Event{At: at(s), Kind: "phase", What: what}
	}
	events := []record.Event{
		phase(0, runBegins), phase(3, "system ready"), phase(20, "run ends"),
		phase(100, runResumed), phase(102, "system ready"), // killed in its second trial
	}
	trials := []record.Trial{
		{Epoch: at(5), Seconds: 2, State: record.Done},
		{Epoch: at(105), Seconds: 7, State: record.Done},
	}
	if got, last := earlierSeconds(events, trials); got != 20+12 || !last.Equal(at(112)) {
		t.Errorf("earlier sessions lasted %v s, want 32", got)
	}
	// A trial that went on: 25 hours without a session are none of the run's.
	hours := func(h float64) float64 { return h * 3600 }
	events = []record.Event{
		phase(0, runBegins), phase(hours(1), "paused"), phase(hours(25), runResumed), phase(hours(26), "paused"),
		phase(hours(50), runResumed), phase(hours(51), "paused"),
	}
	for _, trials := range [][]record.Trial{
		{{Epoch: at(0), Seconds: hours(51), State: record.Running}},
		{{Epoch: at(0), Seconds: hours(25.5), State: record.Done}, {Epoch: at(hours(25.6)), Seconds: hours(25.3),
			State: record.Running}},
	} {
		if got, last := earlierSeconds(events, trials); got != hours(3) || !last.Equal(at(hours(51))) {
			t.Errorf("three sessions of an hour lasted %v h, to %v", got/3600, last)
		}
	}
	if got, _ := earlierSeconds(nil, nil); got != 0 {
		t.Errorf("no earlier session lasted %v s", got)
	}
}
