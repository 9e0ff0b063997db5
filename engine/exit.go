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

// progressSoFar is what exit conditions judge by.
type progressSoFar struct {
	Seconds       float64 // the run's wall clock, earlier sessions of a resumed run included
	Bytes         int64   // file bytes moved by all trials
	TrialFinished int64   // operations of the trial that came to an end of their own
	TrialFailures int64   // those of them that failed through the server

	// State is how far the trial is that runs; nil between trials, and of
	// scenarios whose trials do not go on.
	State *scenario.State
}

// exits are the conditions that end a run before its plan is complete, those that the experiment
// asks for. The first to be met is named in the result and decides the exit status. Some remember
// what they saw, so each session of a trial that continues has its own, and so has each stretch
// between two deaths of its system: the time in which nothing could be stored counts for none.
type exits struct {
	experiment.Exit
	absolute bool      // what the points count
	points   []floored // of the last window of the floor, ascending, about floorPoints of them
}

func exitsOf(e experiment.Exit) *exits { return &exits{Exit: e} }

// met is asked after every trial, and again and again during one that continues. It is nil where
// the run goes on.
func (x *exits) met(p progressSoFar) *scenario.Stop {
	stop := func(condition, format string, args ...any) *scenario.Stop {
		return &scenario.Stop{Condition: condition, Why: fmt.Sprintf(format, args...)}
	}
	s := p.State
	if x.MaxRuntime > 0 && p.Seconds >= x.MaxRuntime.Seconds() {
		return stop("max_runtime", "the run has lasted %s, the limit is %s",
			words.Duration(time.Duration(p.Seconds*float64(time.Second))), words.Duration(x.MaxRuntime.Std()))
	}
	if x.MaxBytes > 0 && p.Bytes >= int64(x.MaxBytes) {
		return stop("max_bytes", "%s were moved, the limit is %s", words.Bytes(float64(p.Bytes)),
			words.Bytes(float64(x.MaxBytes)))
	}
	// While a trial runs its first failures are no share yet.
	budget, finished := float64(x.MaxErrors), float64(p.TrialFinished)
	few := s != nil && finished < math.Max(fewAttempts, 1/budget)
	if share := float64(p.TrialFailures) / finished; budget > 0 && !few && share > budget {
		return stop("max_errors", "%d of %d finished operations of a trial failed through the server (%.2f %%), "+
			"the budget is %.2f %%", p.TrialFailures, p.TrialFinished, 100*share, 100*budget)
	}
	if s == nil {
		return nil
	}
	if limit, asked := new(big.Rat).SetString(string(x.MaxSpend)); asked && s.Spent != nil { // exact amounts
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(s.Decimals)), nil)
		if spent := new(big.Rat).SetFrac(s.Spent, unit); spent.Cmp(limit) >= 0 {
			return stop("max_spend", "%s were spent since the trial began, the limit is %s", shortMoney(spent), x.MaxSpend)
		}
	}
	if x.StorageFull && s.Full != "" {
		return stop("storage_full", "the system can take no more: %s", s.Full)
	}
	if x.Floor != nil {
		if why, met := x.below(*s); met {
			return stop("floor", "%s", why)
		}
	}
	return nil
}

// fewAttempts show no share of failures.
const fewAttempts = 20

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

// floored is a point of the sliding window.
type floored struct {
	at    time.Duration
	bytes int64
}

// floorPoints bounds the memory: the window slides in steps of that part of it.
const floorPoints = 100

// below reports whether a trial has become too slow, and how: fewer bytes in a whole
// window of the floor than asked for. Bytes are those of the storage servers, redundancy
// included, where the system reports them, by the moments of those polls, else
// file bytes; none at all is less than any.
func (x *exits) below(s scenario.State) (why string, is bool) {
	window := x.Floor.Window.Std()
	// What pauses on purpose, or has nothing left to send, need not hurry.
	if s.Idle || s.Objects > 0 && s.Ended() >= s.Objects {
		x.points = x.points[:0]
		return "", false
	}
	now := floored{s.At, s.Bytes}
	reported := s.Absolute >= 0 && s.AbsoluteAt >= 0
	if reported { // as of that poll: until the next one nothing is known
		now = floored{s.AbsoluteAt, s.Absolute}
	}
	if reported != x.absolute || len(x.points) > 0 && now.at < x.points[len(x.points)-1].at {
		x.absolute, x.points = reported, x.points[:0]
	}
	if n := len(x.points); n == 0 || now.at-x.points[n-1].at >= window/floorPoints {
		x.points = append(x.points, now)
	}
	// The oldest that is kept is the youngest of those a window ago.
	for len(x.points) > 1 && x.points[1].at <= now.at-window {
		x.points = append(x.points[:0], x.points[1:]...)
	}
	first := x.points[0]
	if now.at-first.at < window {
		return "", false
	}
	moved := now.bytes - first.bytes
	if moved >= int64(x.Floor.Bytes) {
		return "", false
	}
	over := (now.at - first.at).Round(time.Second) // with polls that are rarer it is more than the window
	return fmt.Sprintf("%d bytes were stored in the last %s, the floor is %d in %s", moved,
		words.Duration(max(over, window)), x.Floor.Bytes, words.Duration(window)), true
}
