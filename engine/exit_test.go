package engine

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

func TestExitConditions(t *testing.T) {
	all := &exits{Exit: experiment.Exit{MaxRuntime: experiment.Duration(time.Minute), MaxBytes: 1000, MaxErrors: 0.1}}
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
		s := all.reached(c.p)
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
	far := progressSoFar{Seconds: 1e9, Bytes: 1e18, TrialFinished: 1, TrialFailures: 1}
	if s := (&exits{}).reached(far); s != nil {
		t.Errorf("an experiment without exit conditions is ended by %s", s)
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

// met asks a condition of each state and gives the first at which it is met.
func met(c func(scenario.State) (string, bool), states []scenario.State) (at int, why string) {
	for i, s := range states {
		if why, ok := c(s); ok {
			return i, why
		}
	}
	return -1, ""
}

func TestMaxSpendIsExact(t *testing.T) {
	// 3600 SC are 3600e24 hastings: a float would not see the last one.
	limit, _ := new(big.Int).SetString("3600"+strings.Repeat("0", 24), 10)
	less := new(big.Int).Sub(limit, big.NewInt(1))
	c := func(s scenario.State) (string, bool) {
		stop := (&exits{Exit: experiment.Exit{MaxSpend: "3600"}}).reached(progressSoFar{State: &s})
		return fmt.Sprint(stop), stop != nil
	}
	at, why := met(c, []scenario.State{{}, {Spent: less}, {Spent: limit}})
	if at != 2 || !strings.Contains(why, "3600 were spent") {
		t.Errorf("met at %d: %s", at, why)
	}
}

func TestFloor(t *testing.T) {
	floorOf := func() *exits {
		return &exits{Exit: experiment.Exit{Floor: &experiment.Floor{Bytes: 1000, Window: experiment.Duration(time.Hour)}}}
	}
	// perMinute makes a state each minute, of so many more bytes, each with what alter changes.
	perMinute := func(minutes int, bytes func(m int) int64, alter func(m int, s *scenario.State)) []scenario.State {
		all := make([]scenario.State, minutes)
		for m := range all {
			all[m] = scenario.State{At: time.Duration(m) * time.Minute, Objects: 1 << 40, Bytes: bytes(m), Absolute: -1}
			if alter != nil {
				alter(m, &all[m])
			}
		}
		return all
	}
	none := func(int) int64 { return 0 }
	// A walk over the servers rests for long after it took long: what it read last says nothing of the time since.
	polled := func(m int, s *scenario.State) {
		poll := m / 90 * 90
		s.Absolute, s.AbsoluteAt = int64(min(poll, 180))*100, time.Duration(poll)*time.Minute
	}
	for _, c := range []struct {
		name   string
		states []scenario.State
		want   int
		why    string
	}{
		{"nothing at all, once the window is full", perMinute(200, none, nil), 60, ""},
		{"just enough", perMinute(200, func(m int) int64 { return int64(m) * 1000 / 60 * 61 / 60 }, nil), -1, ""},
		{"stops after 100 minutes", perMinute(200, func(m int) int64 { return int64(min(m, 100)) * 20 }, nil), 111, ""},
		{"a burst in each window", perMinute(200, func(m int) int64 { return int64(m/50) * 1000 }, nil), -1, ""},
		{"absolute bytes where the system has them", perMinute(100, none, func(m int, s *scenario.State) {
			s.Absolute, s.AbsoluteAt = int64(m)*100, s.At
		}), -1, ""},
		{"a reading is of its poll", perMinute(500, none, polled), 270, "0 bytes were stored in the last 1 h 30 min, " +
			"the floor is 1000 in 1 h"},
		{"a reading of an earlier session", perMinute(500, func(m int) int64 { return int64(m) * 100 },
			func(m int, s *scenario.State) {
				polled(m, s)
				s.AbsoluteAt = -1
			}), -1, ""},
		{"what is all sent need not hurry", perMinute(100, none, func(_ int, s *scenario.State) {
			s.Objects, s.Accepted, s.Failed, s.Unreadable = 10, 7, 2, 1
		}), -1, ""},
	} {
		if at, why := met(floorOf().below, c.states); at != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: met at %d (%s), want %d", c.name, at, why, c.want)
		}
	}
	c := floorOf()
	for i := range 100_000 {
		c.below(scenario.State{At: time.Duration(i) * time.Second, Objects: 1 << 40, Bytes: int64(i) * 1000,
			Absolute: -1})
		if len(c.points) > floorPoints+2 {
			t.Fatalf("%d points are kept", len(c.points))
		}
	}
}

const exitExperiment = `
scenario: overhead
systems: [{use: mem, with: {a: 20ms, errors: "%s"}}]
data: {size: 1kB}
overhead: {operation: [put, get], count: 4}
repetitions: 50
exit: {%s}
`

// Exit conditions end a run of scenario overhead, and a run that they have ended
// stays ended.
func TestExitConditionsEndOverhead(t *testing.T) {
	slow(t)
	for _, c := range []struct {
		condition, errors, exit string
		most                    int // trials
	}{
		{"max_bytes", "0", "max_bytes: 6kB", 2}, // each trial moves 4 kB
		{"max_errors", "1", "max_errors: 50%", 1},
		{"max_runtime", "0", "max_runtime: 2s", 20},
	} {
		t.Run(c.condition, func(t *testing.T) {
			plan := mustPlan(t, fmt.Sprintf(exitExperiment, c.errors, c.exit))
			cfg := configOf(t, plan, mem.System{}, overhead.Scenario{})
			res, err := Run(t.Context(), cfg)
			if err != nil || res.Stopped == nil || res.Stopped.Condition != c.condition || res.Trials < 1 ||
				res.Trials > c.most {
				t.Fatalf("%+v, %v, %v", res, res.Stopped, err)
			}
			if meta := readRun(t, cfg.Dir).meta; !strings.Contains(meta["stopped"], c.condition) {
				t.Errorf("recorded: %q", meta["stopped"])
			}
			if c.condition == "max_errors" {
				return // it is judged trial by trial: a resumed run tries another
			}
			cfg.Resume = true
			again, err := Run(t.Context(), cfg)
			if err != nil || again.Stopped == nil || again.Trials != res.Trials {
				t.Errorf("resumed: %+v, %v", again, err)
			}
		})
	}
}

// rude is a system that breaks off once it was asked often enough to connect anew.
type rude struct {
	*lasting
	left int
}

func (r *rude) Attach(context.Context, system.Deployment) (system.Cluster, error) { return r, nil }
func (r *rude) Nodes() []system.Node                                              { return []system.Node{r} }

func (r *rude) Redial(ctx context.Context) error {
	if r.left--; r.left < 0 {
		return errors.New("enough")
	}
	return r.lasting.Redial(ctx)
}

// A trial that could not be executed to its end moved bytes all the same.
func TestFailedTrialsCountForExitConditions(t *testing.T) {
	slow(t)
	src := strings.Replace(attachedExperiment, "overhead: {operation: [put, get, update, fill, delete], count: 2, "+
		"objects: 10, range_of: 10kB}",
		"overhead: {operation: put, connections: fresh, count: 4}\nexit: {max_bytes: 2kB}", 1)
	res, err := Run(t.Context(), configOf(t, mustPlan(t, src), &rude{newLasting(t), 2}, overhead.Scenario{}))
	if err != nil || res.Failed != 1 || res.Trials != 0 || res.Stopped == nil || res.Stopped.Condition != "max_bytes" {
		t.Errorf("%+v, %v, %v", res, res.Stopped, err)
	}
}
