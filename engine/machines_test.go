package engine

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// A log that only this machine has is refused before others are made.
func TestLogBesideTheExperimentDoesNotTravel(t *testing.T) {
	for log, want := range map[string]int{"access.log": 1, "/srv/access.log": 0} {
		plan := &experiment.Plan{Experiment: experiment.Experiment{Retrieve: &experiment.Retrieve{
			Arrivals: &experiment.Arrivals{Process: "log", Log: log}}}}
		if problems := checkLocal(plan, nil); len(problems) != want {
			t.Errorf("%s: %v", log, problems)
		}
	}
}
