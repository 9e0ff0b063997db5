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
	"github.com/plimsoll-project/plimsoll/system"
)

// progressSoFar is what exit conditions are evaluated on.
type progressSoFar struct {
	Seconds       float64 // the run's wall clock, earlier sessions of a resumed run included
	Bytes         int64   // file bytes moved by all trials
	TrialFinished int64   // finished operations of the trial (not cut off)
	TrialFailures int64   // those of them that were server failures

	// State is the state of the running trial; nil between trials, and in scenarios whose
	// trials do not continue.
	State *scenario.State
}

// exits are the experiment's conditions that end a run before its plan is complete. The first to
// be met is reported and determines the exit status. Some of them have state, so each session of
// a trial that continues has its own, and so has each period between two deaths of its system:
// time in which nothing could be stored does not count.
type exits struct {
	experiment.Exit
	absolute bool      // the points count absolute bytes, not file bytes
	points   []floored // of the last window of the floor, ascending, about floorPoints of them
}

// reached is called after every trial, and repeatedly during one that continues. It returns nil if
// the run goes on.
func (x *exits) reached(p progressSoFar) *scenario.Stop {
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
	// During a trial, the first failures are too few for a share.
	budget, finished := float64(x.MaxErrors), float64(p.TrialFinished)
	few := s != nil && finished < math.Max(fewAttempts, 1/budget)
	if share := float64(p.TrialFailures) / finished; budget > 0 && !few && share > budget {
		return stop("max_errors", "%d of %d finished operations of a trial were server failures (%.2f %%); "+
			"the limit is %.2f %%", p.TrialFailures, p.TrialFinished, 100*share, 100*budget)
	}
	if s == nil {
		return nil
	}
	if limit, asked := new(big.Rat).SetString(string(x.MaxSpend)); asked && s.Spent != nil { // exact amounts
		if spent := system.Coins(s.Spent); spent.Cmp(limit) >= 0 {
			return stop("max_spend", "%s were spent since the trial began, the limit is %s", words.Decimal(spent, 4), x.MaxSpend)
		}
	}
	if x.StorageFull && s.Full != "" {
		return stop("storage_full", "the storage is full: %s", s.Full)
	}
	if x.Floor != nil {
		if why, met := x.below(*s); met {
			return stop("floor", "%s", why)
		}
	}
	return nil
}

// fewAttempts is the number of operations below which a share of failures means nothing.
const fewAttempts = 20

// ofTheTrial are the conditions that end a trial but not the run: the next cell has not met
// them.
var ofTheTrial = []string{"floor", "storage_full", "max_spend"}

// endsTrialOnly reports whether a condition ends only a trial, so that the other trials of the
// plan are still executed.
func endsTrialOnly(s *scenario.Stop) bool { return slices.Contains(ofTheTrial, s.Condition) }

// natural describes the end of a trial that no condition ended: what was stored.
func natural(s scenario.State) string {
	what := "stored"
	if s.Durable >= s.Accepted && s.Accepted > 0 {
		what = "durable"
	}
	lost := s.Failed + s.Refused
	switch {
	case s.Objects == 0:
		return ""
	case s.Ended() < s.Objects:
		return fmt.Sprintf("only %d of %d objects are stored", s.Accepted, s.Objects)
	case lost+s.Unreadable > 0:
		return fmt.Sprintf("%d of %d objects are %s; %d were given up, and the data of %d could not be read", s.Accepted,
			s.Objects, what, lost, s.Unreadable)
	}
	return fmt.Sprintf("all %d objects are %s", s.Objects, what)
}

// floored is a point of the sliding window.
type floored struct {
	at    time.Duration
	bytes int64
}

// floorPoints is the number of steps in which the window slides, which limits memory.
const floorPoints = 100

// below reports whether a trial has become too slow, and how: fewer bytes in a whole window
// of the floor than required. It counts the bytes of the storage servers with redundancy, at
// the times of the polls, if the system reports them, and otherwise file bytes.
func (x *exits) below(s scenario.State) (why string, is bool) {
	window := x.Floor.Window.Std()
	// A trial that has nothing left to send is not too slow.
	if s.Objects > 0 && s.Ended() >= s.Objects {
		x.points = x.points[:0]
		return "", false
	}
	now := floored{s.At, s.Bytes}
	reported := s.Absolute >= 0 && s.AbsoluteAt >= 0
	if reported { // known only as of that poll
		now = floored{s.AbsoluteAt, s.Absolute}
	}
	if reported != x.absolute || len(x.points) > 0 && now.at < x.points[len(x.points)-1].at {
		x.absolute, x.points = reported, x.points[:0]
	}
	if n := len(x.points); n == 0 || now.at-x.points[n-1].at >= window/floorPoints {
		x.points = append(x.points, now)
	}
	// The oldest point to keep is the newest that is at least a window old.
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
	over := (now.at - first.at).Round(time.Second) // longer than the window if polls are rarer
	return fmt.Sprintf("%d bytes were stored in the last %s, the floor is %d in %s", moved,
		words.Duration(max(over, window)), x.Floor.Bytes, words.Duration(window)), true
}
