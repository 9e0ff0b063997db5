package engine

import (
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// exitCondition ends a run before its plan is complete. The first to fire is
// named in the result and decides the exit status.
type exitCondition interface {
	// Name is how the experiment file and the result call it.
	Name() string
	// Met is asked after every trial; why is one sentence with the figures.
	Met(p progressSoFar) (why string, met bool)
}

// progressSoFar is what exit conditions judge by.
type progressSoFar struct {
	Seconds       float64 // the run's wall clock, earlier sessions of a resumed run included
	Bytes         int64   // file bytes moved by all trials
	TrialFinished int64   // operations of the last trial that came to an end of their own
	TrialFailures int64   // those of them that failed through the server
}

// Stopped says which exit condition ended a run, and why.
type Stopped struct {
	Condition string `json:"condition"`
	Why       string `json:"why"`
}

func (s *Stopped) Error() string { return fmt.Sprintf("stopped by %s: %s", s.Condition, s.Why) }

// exitConditions lists those that the experiment asks for.
func exitConditions(e experiment.Exit) []exitCondition {
	var all []exitCondition
	if e.MaxRuntime > 0 {
		all = append(all, maxRuntime{time.Duration(e.MaxRuntime)})
	}
	if e.MaxBytes > 0 {
		all = append(all, maxBytes{int64(e.MaxBytes)})
	}
	if e.MaxErrors > 0 {
		all = append(all, errorBudget{float64(e.MaxErrors)})
	}
	return all
}

func firstMet(conditions []exitCondition, p progressSoFar) *Stopped {
	for _, c := range conditions {
		if why, met := c.Met(p); met {
			return &Stopped{Condition: c.Name(), Why: why}
		}
	}
	return nil
}
