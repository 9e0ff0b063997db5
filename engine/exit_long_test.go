package engine

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
)

func soFarOf(s scenario.State) progressSoFar { return progressSoFar{State: &s} }

// met asks a condition of each state and gives the first at which it is met.
func met(c func(progressSoFar) (string, bool), states []scenario.State) (at int, why string) {
	for i, s := range states {
		if why, ok := c(soFarOf(s)); ok {
			return i, why
		}
	}
	return -1, ""
}

func TestMaxSpendIsExact(t *testing.T) {
	// 3600 SC are 3600e24 hastings: a float would not see the last one.
	limit, _ := new(big.Int).SetString("3600"+strings.Repeat("0", 24), 10)
	less := new(big.Int).Sub(limit, big.NewInt(1))
	c := maxSpend("3600")
	at, why := met(c, []scenario.State{{}, {Spent: less, Decimals: 24}, {Spent: limit, Decimals: 24}})
	if at != 2 || !strings.Contains(why, "3600 were spent") {
		t.Errorf("met at %d: %s", at, why)
	}
}

func TestFloor(t *testing.T) {
	floorOf := func() *floor {
		return newFloor(experiment.Floor{Bytes: 1000, Window: experiment.Duration(time.Hour)})
	}
	// perMinute makes a state each minute, of so many more bytes.
	perMinute := func(minutes int, bytes func(minute int) int64) (all []scenario.State) {
		for m := range minutes {
			all = append(all, scenario.State{At: time.Duration(m) * time.Minute, Objects: 1 << 40, Bytes: bytes(m),
				Absolute: -1})
		}
		return all
	}
	for _, c := range []struct {
		name   string
		states []scenario.State
		want   int
	}{
		{"nothing at all, once the window is full", perMinute(200, func(int) int64 { return 0 }), 60},
		{"just enough", perMinute(200, func(m int) int64 { return int64(m) * 1000 / 60 * 61 / 60 }), -1},
		{"stops after 100 minutes", perMinute(200, func(m int) int64 { return int64(min(m, 100)) * 20 }), 111},
		{"a burst in each window", perMinute(200, func(m int) int64 { return int64(m/50) * 1000 }), -1},
	} {
		if at, why := met(floorOf().met, c.states); at != c.want {
			t.Errorf("%s: met at %d (%s), want %d", c.name, at, why, c.want)
		}
	}
	t.Run("absolute bytes where the system tells", func(t *testing.T) {
		states := perMinute(100, func(int) int64 { return 0 })
		for i := range states {
			states[i].Absolute, states[i].AbsoluteAt = int64(i)*100, states[i].At
		}
		if at, why := met(floorOf().met, states); at >= 0 {
			t.Errorf("met at %d: %s", at, why)
		}
	})
	// A walk over the servers rests for long after it took long: what it told
	// last says nothing of the time since.
	t.Run("a reading is of its poll", func(t *testing.T) {
		states := perMinute(500, func(int) int64 { return 0 })
		for i := range states {
			polled := i / 90 * 90
			states[i].Absolute, states[i].AbsoluteAt = int64(min(polled, 180))*100, states[polled].At
		}
		if at, why := met(floorOf().met, states); at != 270 || !strings.Contains(why, "0 bytes were stored in the "+
			"last 1 h 30 min, the floor is 1000 in 1 h") {
			t.Errorf("met at %d: %s", at, why)
		}
		for i := range states { // told in an earlier session
			states[i].AbsoluteAt, states[i].Bytes = -1, int64(i)*100
		}
		if at, why := met(floorOf().met, states); at >= 0 {
			t.Errorf("by an old reading met at %d: %s", at, why)
		}
	})
	t.Run("what is all sent, or pauses on purpose, need not hurry", func(t *testing.T) {
		states := perMinute(100, func(int) int64 { return 0 })
		for i := range states {
			if states[i].Idle = i < 50; i >= 50 {
				states[i].Objects, states[i].Accepted, states[i].Failed, states[i].Unreadable = 10, 7, 2, 1
			}
		}
		if at, why := met(floorOf().met, states); at >= 0 {
			t.Errorf("met at %d: %s", at, why)
		}
	})
	t.Run("constant memory", func(t *testing.T) {
		c := floorOf()
		for i := range 100_000 {
			c.met(soFarOf(scenario.State{At: time.Duration(i) * time.Second, Objects: 1 << 40, Bytes: int64(i) * 1000,
				Absolute: -1}))
			if len(c.points) > floorPoints+2 {
				t.Fatalf("%d points are kept", len(c.points))
			}
		}
	})
}

func TestStorageFull(t *testing.T) {
	at, why := met(trialConditions(experiment.Exit{StorageFull: true})[0].met,
		[]scenario.State{{}, {Full: "507 Insufficient Storage"}})
	if at != 1 || !strings.Contains(why, "507 Insufficient Storage") {
		t.Errorf("met at %d: %s", at, why)
	}
}

// The first failures of a trial that runs are no share yet.
func TestErrorBudgetWhileATrialRuns(t *testing.T) {
	c := maxErrors(0.01)
	for _, s := range []struct {
		finished, failures int64
		want               bool
	}{{1, 1, false}, {99, 50, false}, {100, 1, false}, {100, 2, true}, {10_000, 99, false}, {10_000, 101, true}} {
		if _, got := c(soFarOf(scenario.State{Finished: s.finished, Failures: s.failures})); got != s.want {
			t.Errorf("%d of %d failed: met %v", s.failures, s.finished, got)
		}
	}
}

func TestConditionsOfATrial(t *testing.T) {
	e := experiment.Exit{
		MaxRuntime: experiment.Duration(time.Hour), MaxBytes: 1000, MaxErrors: 0.5, MaxSpend: "5", StorageFull: true,
		Floor: &experiment.Floor{Bytes: 1, Window: experiment.Duration(time.Minute)},
	}
	var names []string
	for _, c := range trialConditions(e) {
		names = append(names, c.name)
	}
	if got := strings.Join(names, " "); got != "max_runtime max_bytes max_errors max_spend storage_full floor" {
		t.Errorf("conditions: %s", got)
	}
}

func TestNaturalEnds(t *testing.T) {
	for _, c := range []struct {
		s    scenario.State
		want string
	}{
		{scenario.State{Objects: 3, Accepted: 3}, "all done"},
		{scenario.State{Objects: 3, Accepted: 3, Durable: 3}, "durable too"},
		{scenario.State{Objects: 3, Accepted: 2, Refused: 1}, "all done (1 of 3 objects were given up)"},
		{scenario.State{Objects: 3, Accepted: 1}, "before all was stored: 1 of 3 objects"},
		{scenario.State{Objects: 10, Accepted: 9, Unreadable: 1}, "all done (the data of 1 of 10 objects could not " +
			"be read)"},
		{scenario.State{}, ""},
	} {
		if got := natural(c.s); got != c.want {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}
