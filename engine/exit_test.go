package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
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
