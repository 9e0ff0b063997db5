package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// exitCondition ends a run before its plan is complete. The first to fire is
// named in the result and decides the exit status.
type exitCondition interface {
	// Name is how the experiment file and the result call it.
	Name() string
	// Met is asked after every trial, and again and again during one that goes
	// on; why is one sentence with the figures.
	Met(p progressSoFar) (why string, met bool)
}

// progressSoFar is what exit conditions judge by.
type progressSoFar struct {
	Seconds       float64 // the run's wall clock, earlier sessions of a resumed run included
	Bytes         int64   // file bytes moved by all trials
	TrialFinished int64   // operations of the last trial that came to an end of their own
	TrialFailures int64   // those of them that failed through the server

	// State is how far the trial is that runs; nil between trials, and of
	// scenarios whose trials do not go on.
	State *scenario.State
}

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

// trialConditions are those of one trial that goes on: those of the run, and
// those that only its state tells. They remember what they saw, so each session
// of a trial has its own, and so has each stretch between two deaths of its
// system: the time in which nothing could be stored counts for none.
func trialConditions(e experiment.Exit) []exitCondition {
	all := exitConditions(e)
	if e.MaxSpend != "" {
		all = append(all, maxSpend{e.MaxSpend})
	}
	if e.StorageFull {
		all = append(all, storageFull{})
	}
	if e.Floor != nil {
		all = append(all, newFloor(*e.Floor))
	}
	if e.Steady != nil {
		all = append(all, newSteady(*e.Steady))
	}
	return all
}

func firstMet(conditions []exitCondition, p progressSoFar) *scenario.Stop {
	for _, c := range conditions {
		if why, met := c.Met(p); met {
			return &scenario.Stop{Condition: c.Name(), Why: why}
		}
	}
	return nil
}

// Conditions that end a trial, and not the run: they are the trial's own, and
// the next cell has not met them.
var ofTheTrial = []string{"floor", "steady", "storage_full", "max_spend"}

// endsTrialOnly reports whether the other trials of a plan are executed after a
// condition has ended one.
func endsTrialOnly(s *scenario.Stop) bool { return slices.Contains(ofTheTrial, s.Condition) }

// natural names the end of a trial that no condition ended: what is stored.
func natural(s scenario.State) string {
	given := ""
	if n := s.Failed + s.Refused; n > 0 {
		given = fmt.Sprintf(" (%d of %d objects were given up)", n, s.Objects)
	}
	if n := s.Unreadable; n > 0 {
		given += fmt.Sprintf(" (the data of %d of %d objects could not be read)", n, s.Objects)
	}
	switch {
	case s.Objects == 0:
		return ""
	case s.Ended() < s.Objects:
		return fmt.Sprintf("before all was stored: %d of %d objects", s.Accepted, s.Objects)
	case s.Durable >= s.Accepted && s.Accepted > 0:
		return "durable too" + given
	}
	return "all done" + given
}
