package engine

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// exitCondition ends a run before its plan is complete. The first to fire is
// named in the result and decides the exit status.
type exitCondition struct {
	name string // as in the experiment file
	// met is asked after every trial, and again and again during one that
	// continues; why is one sentence with the figures.
	met func(p progressSoFar) (why string, met bool)
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

// exitConditions lists those that the experiment asks for: of the run or, with during, of one
// trial that continues, whose state says more. Those remember what they saw, so each session
// of a trial has its own, and so has each stretch between two deaths of its system: the
// time in which nothing could be stored counts for none.
func exitConditions(e experiment.Exit, during bool) (all []exitCondition) {
	add := func(asked bool, name string, met func(progressSoFar) (string, bool)) {
		if asked {
			all = append(all, exitCondition{name, met})
		}
	}
	add(e.MaxRuntime > 0, "max_runtime", func(p progressSoFar) (string, bool) {
		lasted := time.Duration(p.Seconds * float64(time.Second))
		return fmt.Sprintf("the run has lasted %s, the limit is %s", words.Duration(lasted),
			words.Duration(e.MaxRuntime.Std())), p.Seconds >= e.MaxRuntime.Seconds()
	})
	add(e.MaxBytes > 0, "max_bytes", func(p progressSoFar) (string, bool) {
		return fmt.Sprintf("%s were moved, the limit is %s", words.Bytes(float64(p.Bytes)),
			words.Bytes(float64(e.MaxBytes))), p.Bytes >= int64(e.MaxBytes)
	})
	add(e.MaxErrors > 0, "max_errors", maxErrors(float64(e.MaxErrors)))
	if !during {
		return all
	}
	add(e.MaxSpend != "", "max_spend", maxSpend(string(e.MaxSpend)))
	add(e.StorageFull, "storage_full", func(p progressSoFar) (string, bool) {
		if p.State == nil {
			return "", false
		}
		return "the system can take no more: " + p.State.Full, p.State.Full != ""
	})
	if e.Floor != nil {
		add(true, "floor", (&floor{bytes: int64(e.Floor.Bytes), window: e.Floor.Window.Std()}).met)
	}
	return all
}

func firstMet(conditions []exitCondition, p progressSoFar) *scenario.Stop {
	for _, c := range conditions {
		if why, met := c.met(p); met {
			return &scenario.Stop{Condition: c.name, Why: why}
		}
	}
	return nil
}

// maxErrors is met when too large a share of one trial's finished operations failed
// on the server's side.
func maxErrors(budget float64) func(progressSoFar) (string, bool) {
	return func(p progressSoFar) (string, bool) {
		finished, failures := p.TrialFinished, p.TrialFailures
		if p.State != nil {
			finished, failures = p.State.Finished, p.State.Failures
			// While a trial runs its first failures are no share yet.
			if float64(finished) < math.Max(fewAttempts, 1/budget) {
				return "", false
			}
		}
		if finished == 0 {
			return "", false
		}
		share := float64(failures) / float64(finished)
		if share <= budget {
			return "", false
		}
		return fmt.Sprintf("%d of %d finished operations of a trial failed through the server (%.2f %%), "+
			"the budget is %.2f %%", failures, finished, 100*share, 100*budget), true
	}
}

// fewAttempts show no share of failures.
const fewAttempts = 20

// maxSpend is met when a system has used up so much money, in its currency, since the
// trial began. It compares exact amounts.
func maxSpend(text string) func(progressSoFar) (string, bool) {
	return func(p progressSoFar) (string, bool) {
		if p.State == nil || p.State.Spent == nil {
			return "", false
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(p.State.Decimals)), nil)
		spent := new(big.Rat).SetFrac(p.State.Spent, unit)
		limit, ok := new(big.Rat).SetString(text)
		return fmt.Sprintf("%s were spent since the trial began, the limit is %s", shortMoney(spent), text),
			ok && spent.Cmp(limit) >= 0
	}
}

// Conditions that end a trial, and not the run: they are the trial's own, and
// the next cell has not met them.
var ofTheTrial = []string{"floor", "storage_full", "max_spend"}

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
		return "all durable" + given
	}
	return "all done" + given
}

// floor ends a trial that has become too slow: fewer bytes in a whole window
// than asked for. Bytes are those of the storage servers, redundancy included,
// where the system reports them, by the moments of those polls, else
// file bytes; none at all is less than any.
type floor struct {
	bytes    int64
	window   time.Duration
	absolute bool      // what the points count
	points   []floored // of the last window, ascending, about floorPoints of them
}

// floored is a point of the sliding window.
type floored struct {
	at    time.Duration
	bytes int64
}

// floorPoints bounds the memory: the window slides in steps of that part of it.
const floorPoints = 100

func (c *floor) met(p progressSoFar) (string, bool) {
	s := p.State
	if s == nil {
		return "", false
	}
	// What pauses on purpose, or has nothing left to send, need not hurry.
	if s.Idle || s.Objects > 0 && s.Ended() >= s.Objects {
		c.points = c.points[:0]
		return "", false
	}
	now := floored{s.At, s.Bytes}
	reported := s.Absolute >= 0 && s.AbsoluteAt >= 0
	if reported { // as of that poll: until the next one nothing is known
		now = floored{s.AbsoluteAt, s.Absolute}
	}
	if reported != c.absolute || len(c.points) > 0 && now.at < c.points[len(c.points)-1].at {
		c.absolute, c.points = reported, c.points[:0]
	}
	if n := len(c.points); n == 0 || now.at-c.points[n-1].at >= c.window/floorPoints {
		c.points = append(c.points, now)
	}
	// The oldest that is kept is the youngest of those a window ago.
	for len(c.points) > 1 && c.points[1].at <= now.at-c.window {
		c.points = append(c.points[:0], c.points[1:]...)
	}
	first := c.points[0]
	if now.at-first.at < c.window {
		return "", false
	}
	moved := now.bytes - first.bytes
	if moved >= c.bytes {
		return "", false
	}
	over := (now.at - first.at).Round(time.Second) // with polls that are rarer it is more than the window
	return fmt.Sprintf("%d bytes were stored in the last %s, the floor is %d in %s", moved,
		words.Duration(max(over, c.window)), c.bytes, words.Duration(c.window)), true
}
