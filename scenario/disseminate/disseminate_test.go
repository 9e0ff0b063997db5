package disseminate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// The swarm of the tests: each node sends 1 MB/s and serves when it has all. What
// follows from it is said where it is tested.
const (
	swarmUp   = 1_000_000
	swarmSize = 10_000_000
	swarmPoll = 50 * time.Millisecond
)

// swarmTest is a runner on a deployment of mem, and what a trial gave.
type swarmTest struct {
	t      *testing.T
	nodes  []*mem.Node
	runner *runner
	cell   experiment.Cell
	number int
	seed   uint64

	mu     sync.Mutex
	ops    []record.Op
	marks  []record.Mark
	events []record.Event
	load   scenario.Load
	edges  int // how often it was told that the load begins or ends
	took   time.Duration
	m      map[string]float64
}

// memLinks are the links of mem's nodes as a Network.
type memLinks struct {
	nodes   []*mem.Node
	changes []scenario.NetworkChange
	none    string
	fail    error
}

func (l *memLinks) Change(_ context.Context, c scenario.NetworkChange) error {
	if l.fail != nil {
		return l.fail
	}
	l.changes = append(l.changes, c)
	l.nodes[0].SetLinks(scenariotest.Links(c))
	return nil
}

func (l *memLinks) Check(context.Context, int, int) (record.LinkCheck, error) {
	return record.LinkCheck{OK: true}, nil
}
func (l *memLinks) Traffic(context.Context) (all []scenario.Traffic) {
	for _, n := range l.nodes {
		received, sent := n.Moved()
		all = append(all, scenario.Traffic{Received: received, Sent: sent})
	}
	return all
}
func (l *memLinks) Emulated() (bool, string) { return l.none == "", l.none }

// newSwarmTest starts nodes and prepares them for a cell, which set changes.
func newSwarmTest(t *testing.T, nodes, seeders int, set func(*experiment.Disseminate), opt system.Options) *swarmTest {
	t.Helper()
	all := system.Options{"nodes": fmt.Sprint(nodes), "up": fmt.Sprint(swarmUp)}
	for k, v := range opt {
		all[k] = v
	}
	c, err := mem.System{}.Start(t.Context(), system.Deployment{Options: all})
	must(t, err)
	d := &experiment.Disseminate{
		Nodes: nodes, Seeders: seeders, Stay: experiment.Stay{Forever: true}, Poll: experiment.Duration(swarmPoll),
	}
	if set != nil {
		set(d)
	}
	s := &swarmTest{t: t, seed: 5, cell: experiment.Cell{
		ID: "c001", System: "mem", Disseminate: d, Data: experiment.Data{Objects: 1, Size: swarmSize},
	}}
	for _, n := range c.Nodes() {
		s.nodes = append(s.nodes, n.(*mem.Node))
	}
	r, err := Scenario{}.Prepare(t.Context(), scenario.Site{
		Use: experiment.SystemUse{Name: "mem", Mode: "start"}, Cluster: c, Network: &memLinks{nodes: s.nodes}, Seed: 1,
		Limits: experiment.Limits{
			Deadline: experiment.Duration(10 * time.Minute), Stall: experiment.Duration(30 * time.Second),
			Start: experiment.Duration(time.Minute),
		},
	}, []experiment.Cell{s.cell})
	must(t, err)
	s.runner = r.(*runner)
	return s
}

func (s *swarmTest) links() *memLinks { return s.runner.site.Network.(*memLinks) }

// trial executes one.
func (s *swarmTest) trial(ctx context.Context) error {
	s.t.Helper()
	s.ops, s.marks, s.events, s.edges = nil, nil, nil, 0
	sum := record.NewSummary()
	begun := time.Now()
	load, err := s.runner.Trial(ctx, s.cell, s.seed, scenariotest.Sink(scenario.Sink{
		Epoch: begun, Number: s.number,
		Begin: func() { s.edges++ }, End: func() { s.edges++ },
		Block: func(b []byte) error {
			ops, err := record.DecodeBlock(b, nil)
			s.ops = append(s.ops, ops...)
			return errors.Join(err, record.Check(ops), sum.Ops(ops))
		},
		Marks: func(m []record.Mark) error { s.marks = append(s.marks, m...); return nil },
		Event: func(e record.Event) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
			return nil
		},
	}))
	s.load, s.took = load, time.Since(begun)
	s.m = Scenario{}.Measure(scenario.Measured{Cell: s.cell, Summary: sum, Load: load, Ops: slices.Values(s.ops),
		Usage: scenario.Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN()}})
	for _, n := range s.nodes {
		if h := n.Health(context.Background()); h != nil && !errors.Is(ctx.Err(), context.Canceled) {
			s.t.Errorf("after the trial: %v", h)
		}
	}
	return err
}

// run executes a trial that must not fail.
func (s *swarmTest) run() {
	s.t.Helper()
	if err := s.trial(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// fetches are the operations until all was verified, in the order of the nodes.
func (s *swarmTest) fetches() []record.Op {
	var all []record.Op
	for _, op := range s.ops {
		if op.Kind == record.OpFetch {
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b record.Op) int { return int(a.Worker) - int(b.Worker) })
	return all
}

// outcomes counts the leechers by outcome and class.
func (s *swarmTest) outcomes() string {
	n := map[string]int{}
	for _, op := range s.fetches() {
		n[strings.TrimSpace(op.Outcome.String()+" "+op.Class)]++
	}
	return fmt.Sprint(n)
}

// about holds a moment that polls told to what it was: never too early, and too
// late by a poll at most.
func (s *swarmTest) about(what string, got, want float64) {
	s.t.Helper()
	if got < want-1e-6 || got > want+2*swarmPoll.Seconds() {
		s.t.Errorf("%s: %.4f, want %.4f, and %v more at most", what, got, want, swarmPoll)
	}
}

func (s *swarmTest) happened(what string) (all []record.Event) {
	for _, e := range s.events {
		if e.What == what {
			all = append(all, e)
		}
	}
	return all
}

// TestSwarmTimes: s seeders are shared by l leechers, so that all have the
// content after l·b/(s·up), or after the slowest's b/down.
func TestSwarmTimes(t *testing.T) {
	for _, c := range []struct {
		nodes, seeders int
		down           string
		want           float64
	}{{2, 1, "0", 10}, {4, 1, "0", 30}, {17, 1, "0", 160}, {8, 4, "0", 10}, {8, 4, "500000", 20}} {
		scenariotest.Virtual(t, func(t *testing.T) {
			s := newSwarmTest(t, c.nodes, c.seeders, nil, system.Options{"down": c.down})
			s.run()
			if want := fmt.Sprintf("map[ok:%d]", c.nodes-c.seeders); s.outcomes() != want {
				t.Errorf("outcomes %s, want %s", s.outcomes(), want)
			}
			for _, key := range []string{"time_last", "time_median", "time_p25", "disk_last", "disk_median"} {
				s.about(key, s.m[key], c.want)
			}
			for _, op := range s.fetches() {
				s.about("first byte", float64(op.FirstByte-op.Intended)/1e9, 0)
				if op.Bytes != swarmSize || op.Length != swarmSize {
					t.Errorf("%+v", op)
				}
			}
			if s.m["ok_rate"] != 1 || s.m["stalls"] != 0 || s.m["start_spread"] != 0 {
				t.Errorf("metrics %v", s.m)
			}
			if o := s.m["overhead"]; math.Abs(o-1) > 1e-6 {
				t.Errorf("overhead %v", o)
			}
			if s.m["seeder_share"] != 1 || math.Abs(s.m["duplicates"]-1) > 1e-6 {
				t.Errorf("metrics %v", s.m)
			}
			if r := s.m["resolution"]; r < swarmPoll.Seconds() || r > 2*swarmPoll.Seconds() {
				t.Errorf("resolution %v", r)
			}
			// Not one question more than the schedule has, and one last of each node.
			for i, n := range s.nodes {
				if most := int64(s.m["time_last"]/swarmPoll.Seconds()) + 3; n.Asked() > most {
					t.Errorf("node %d was asked %d times, of %d", i, n.Asked(), most)
				}
			}
			if s.edges != 2 {
				t.Errorf("the load has %d edges", s.edges)
			}
			s.wantMarks()
		})
	}
}

// wantMarks holds marks to their contract.
func (s *swarmTest) wantMarks() {
	s.t.Helper()
	end := time.Duration(0)
	byNode := map[int][]record.Mark{}
	for _, m := range s.marks {
		if m.End < end || m.Start > m.End || m.Before > m.Start {
			s.t.Fatalf("mark %+v after one at %v", m, end)
		}
		end = m.End
		byNode[m.Node] = append(byNode[m.Node], m)
	}
	for _, op := range s.fetches() {
		marks := byNode[int(op.Worker)]
		if n := len(marks); n < 90 || n > 110 {
			s.t.Errorf("node %d left %d marks", op.Worker, n)
		}
		if last := marks[len(marks)-1]; last.Verified != swarmSize || !last.Complete {
			s.t.Errorf("node %d: last mark %+v", op.Worker, last)
		}
	}
}

// TestSwarmArrivals: those of a wave share the seeder with those that have not
// ended yet; of a Poisson process the moments are the same again.
func TestSwarmArrivals(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		// Two alone until 10 s have half of it, then four share: 0.5 each needs 20 s
		// more; those of the second wave have half then, and need 10 s more.
		s := newSwarmTest(t, 5, 1, func(d *experiment.Disseminate) { d.Join = joinOf("waves of 2 every 10s") }, nil)
		s.run()
		var took []float64
		for _, op := range s.fetches() {
			took = append(took, float64(op.LastByte-op.Intended)/1e9)
		}
		slices.Sort(took)
		for i, want := range []float64{30, 30, 30, 30} {
			s.about("time", took[i], want)
		}
		if _, has := s.m["line"]; has {
			t.Error("a load line of leechers that do not begin together")
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		var first []int64
		for range 2 {
			s := newSwarmTest(t, 9, 1, func(d *experiment.Disseminate) { d.Join = joinOf("poisson 0.1/s") }, nil)
			s.run()
			var at []int64
			for _, op := range s.fetches() {
				at = append(at, op.Intended)
				if op.Start-op.Intended > int64(time.Millisecond) || op.Outcome != record.OK {
					t.Errorf("%+v", op)
				}
			}
			slices.Sort(at)
			if first == nil {
				first = at
			}
			if !slices.Equal(at, first) {
				t.Errorf("arrivals %v, then %v", first, at)
			}
		}
		if mean := float64(first[7]) / 7e9; mean < 3 || mean > 30 {
			t.Errorf("arrivals %v: on the average every %.1f s, want about 10", first, mean)
		}
	})
}

// TestSwarmDeadSeeder: the only seeder dies at a half. All leechers stall, and the
// trial ends.
func TestSwarmDeadSeeder(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, withFaults("crash seeders at 50%"), nil)
		for range 2 { // the second trial finds the seeder alive
			s.run()
			if s.outcomes() != "map[stalled:3]" {
				t.Errorf("outcomes %s", s.outcomes())
			}
			if s.took < 45*time.Second || s.took > 47*time.Second { // 15 s until the half, limits.stall
				t.Errorf("the trial took %v", s.took)
			}
			if e := s.happened("crash begins"); len(e) != 1 || !strings.HasPrefix(e[0].Detail,
				"crash seeders at 50%: mem-0") || e[0].Kind != "fault" {
				t.Errorf("events %+v", s.events)
			}
			if s.m["stalls"] != 3 || s.m["ok_rate"] != 0 {
				t.Errorf("metrics %v", s.m)
			}
			for _, key := range []string{"time_last", "time_median", "recovery"} {
				if _, has := s.m[key]; has {
					t.Errorf("there is a %s: %v", key, s.m[key])
				}
			}
			for _, op := range s.fetches() {
				if op.Bytes < swarmSize/2 || op.Bytes > swarmSize/2+swarmUp/10 {
					t.Errorf("%+v", op)
				}
			}
			s.number++
		}
	})
}

// TestSwarmStallPasses: the seeder comes back after two minutes.
func TestSwarmStallPasses(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, withFaults("crash seeders at 10s for 2m"), nil)
		s.run()
		if s.outcomes() != "map[ok:3]" || s.m["stalls"] != 3 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
		s.about("time", s.m["time_last"], 150)
		if len(s.happened("stalled")) != 3 || len(s.happened("stall passed")) != 3 ||
			len(s.happened("crash ends")) != 1 {
			t.Errorf("events %+v", s.events)
		}
		if s.m["recovered"] != 1 {
			t.Errorf("recovered %v", s.m["recovered"])
		}
		s.about("recovery", s.m["recovery"], 0)
	})
}

// TestSwarmCrash: of two leechers one dies after 10 s, for 10 s. They had a
// quarter each; the other has all after 15 s more in which it is alone for 10 s;
// the one that died needs, from 20 s on, what it lacks.
func TestSwarmCrash(t *testing.T) {
	for _, c := range []struct {
		faults   string
		outcomes string
		times    [2]float64 // of the one that lived, and the one that died; 0: none
	}{
		// At 10 s both have 5 MB. Alone, the other has all at 15 s.
		{"crash 1 leechers at 10s for 10s", "map[ok:2]", [2]float64{15, 25}},
		{"crash 1 leechers at 10s for 10s without data", "map[ok:2]", [2]float64{15, 30}},
		{"crash 1 leechers at 10s", "map[cancelled crashed on purpose:1 ok:1]", [2]float64{15, 0}},
		{"crash 1 leechers at 10s; cut 50% of nodes at 25%", "", [2]float64{}}, // only that it ends
	} {
		scenariotest.Virtual(t, func(t *testing.T) {
			s := newSwarmTest(t, 3, 1, withFaults(c.faults), nil)
			s.run()
			if c.outcomes == "" {
				return
			}
			if s.outcomes() != c.outcomes {
				t.Errorf("%s: outcomes %s, want %s", c.faults, s.outcomes(), c.outcomes)
			}
			var took []float64
			for _, op := range s.fetches() {
				if op.Outcome == record.OK {
					took = append(took, float64(op.LastByte-op.Intended)/1e9)
				}
			}
			slices.Sort(took)
			for i, got := range took {
				s.about(c.faults, got, c.times[i])
			}
			if c.times[1] > 0 && s.m["recovered"] != 1 {
				t.Errorf("%s: metrics %v", c.faults, s.m)
			}
			if c.times[1] == 0 { // it is no failure of the system, and the others are all
				s.about("all", s.m["time_last"], c.times[0])
			}
		})
	}
}

// TestSwarmCrashOfTheComplete: a leecher that dies after it had all is verified
// nevertheless; one that was still to come never does.
func TestSwarmCrashOfTheComplete(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, func(d *experiment.Disseminate) {
			d.Join, d.Faults = joinOf("waves of 2 every 30s"), faultsOf("crash 3 leechers at 25s")
		}, nil)
		s.run()
		if s.outcomes() != "map[cancelled crashed on purpose:1 ok:2]" {
			t.Errorf("outcomes %s", s.outcomes())
		}
		s.about("the others", s.m["time_last"], 20)
	})
}

// TestSwarmLostBeforeItCame: a leecher whose node is gone before its arrival ends
// when it would have begun. In real time, in which a moment is never met exactly.
func TestSwarmLostBeforeItCame(t *testing.T) {
	s := newSwarmTest(t, 5, 1, func(d *experiment.Disseminate) {
		d.Join, d.Faults = joinOf("waves of 1 every 150ms"), faultsOf("crash 50% of leechers at 100ms")
	}, system.Options{"up": fmt.Sprint(100 * swarmUp)})
	s.runner.site.Limits.Stall = experiment.Duration(500 * time.Millisecond)
	faults := s.cell.Disseminate.Faults
	for { // the second is lost, and the last comes
		r := chooseRoles(s.cell.Disseminate, faults, 1, s.seed, 0)
		if slices.Contains(r.victims[0], r.leechers[1]) && !slices.Contains(r.victims[0], r.leechers[3]) {
			break
		}
		s.seed++
	}
	s.run()
	if !strings.Contains(s.outcomes(), "cancelled crashed on purpose:") {
		t.Errorf("outcomes %s", s.outcomes())
	}
	late := 0
	for _, op := range s.fetches() {
		if op.Start < op.Intended || op.LastByte < op.Start {
			t.Errorf("%+v", op)
		}
		if op.Outcome == record.Cancelled && op.Start == op.Intended && op.LastByte == op.Start {
			late++
		}
	}
	if late == 0 {
		t.Errorf("none was lost before it came: %+v", s.fetches())
	}
}

// TestSwarmStarts: their spread is that of the calls that there were. One that comes
// while its node is down is told of its task when it is back, and the ends of those
// that never were are no starts.
func TestSwarmStarts(t *testing.T) {
	for faults, want := range map[string]float64{
		"crash leechers at 1s for 4s": 3, // one told at once, two at 5 s that came at 2 s and at 4 s
		"crash leechers at 1s":        0,
	} {
		scenariotest.Virtual(t, func(t *testing.T) {
			s := newSwarmTest(t, 4, 1, func(d *experiment.Disseminate) {
				d.Join, d.Faults = joinOf("waves of 1 every 2s"), faultsOf(faults)
			}, nil)
			s.run()
			if got := s.m["start_spread"]; math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: starts %v s apart, want %v", faults, got, want)
			}
		})
	}
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 2, 1, withFaults("none"), nil)
		trial, err := s.runner.trial(t.Context(), s.cell, 1, scenario.Sink{})
		must(t, err)
		m := Scenario{}.Measure(scenario.Measured{Cell: s.cell, Load: trial.loaded(0)})
		if got, has := m["start_spread"]; has {
			t.Errorf("the spread of no starts is %v", got)
		}
	})
}

// TestSwarmNotRecovered: leechers that do not live to see the end of a fault have
// not recovered from it; those that have all by then had nothing to recover from.
func TestSwarmNotRecovered(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 5, 1, withFaults("crash 2 leechers at 10s for 10s"), nil)
		faults := s.cell.Disseminate.Faults
		m := s.runner.nodes[chooseRoles(s.cell.Disseminate, faults, 1, s.seed, 0).victims[0][0]]
		var n atomic.Int64
		healthy := m.System.(system.Restarter)
		restarting(m, func(r system.Restarter) system.Restarter {
			return starts{r, &n,
				errors.New("its store is broken")}
		})
		time.AfterFunc(25*time.Second, func() { _ = healthy.Restart(t.Context(), true) }) // for the test's own look
		_ = s.trial(t.Context())
		if s.outcomes() != "map[error not started again:1 ok:3]" || s.m["recovered"] != 0.5 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, withFaults("cut seeders at 10s for 2m"), nil)
		s.runner.site.Limits.Deadline = experiment.Duration(time.Minute)
		s.run()
		if s.outcomes() != "map[stalled:3]" && s.outcomes() != "map[deadline:3]" || s.m["recovered"] != 0 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
		if _, has := s.m["recovered"]; !has {
			t.Error("nobody recovered, and nothing is said")
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 2, withFaults("crash 1 seeders at 2s for 20s"), nil)
		s.run()
		if v, has := s.m["recovered"]; has || s.outcomes() != "map[ok:2]" {
			t.Errorf("outcomes %s, recovered %v of those that went on", s.outcomes(), v)
		}
	})
}

// TestSwarmCut: a partition keeps some from the seeder, for a time or for good.
func TestSwarmCut(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 5, 1, withFaults("cut 2 leechers at 20s for 1m"), nil)
		s.run()
		// 5 MB each at 20 s; the two that are left have all at 30 s, the others
		// from 80 s on likewise.
		s.about("the first two", s.m["time_p25"], 30)
		s.about("all", s.m["time_last"], 90)
		if s.outcomes() != "map[ok:4]" || s.m["recovered"] != 1 || s.m["stalls"] != 2 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
		if c := s.links().changes; len(c) != 2 || len(c[0].Apart) != 2 || len(c[1].Apart) != 0 {
			t.Errorf("changes %+v", c)
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 5, 1, withFaults("cut 2 leechers at 20s"), nil)
		s.run()
		if s.outcomes() != "map[cancelled cut away on purpose:2 ok:2]" {
			t.Errorf("outcomes %s", s.outcomes())
		}
		if c := s.links().changes; len(c) != 2 || len(c[1].Apart) != 0 { // healed at the end
			t.Errorf("changes %+v", c)
		}
	})
}

// TestSwarmSeedersCut: who is left without seeders is not cut away on purpose, no
// more than with seeders that are dead.
func TestSwarmSeedersCut(t *testing.T) {
	for _, faults := range []string{"cut seeders at 15s", "crash seeders at 15s"} {
		scenariotest.Virtual(t, func(t *testing.T) {
			s := newSwarmTest(t, 5, 1, func(d *experiment.Disseminate) {
				d.Join,
					d.Faults = joinOf("waves of 1 every 11s"), faultsOf(faults)
			}, nil)
			s.run()
			if s.outcomes() != "map[ok:1 stalled:3]" || s.m["ok_rate"] != 0.25 {
				t.Errorf("%s: outcomes %s, metrics %v", faults, s.outcomes(), s.m)
			}
			if v, has := s.m["time_last"]; has {
				t.Errorf("%s: all have it after %v", faults, v)
			}
		})
	}
}

// TestSwarmRate: half the rate at half the time doubles what is left; two faults
// at a time compose.
func TestSwarmRate(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 2, 1, withFaults("rate 4Mbit at 50%"), nil)
		s.run()
		s.about("all", s.m["time_last"], 15)
		if s.outcomes() != "map[ok:1]" {
			t.Errorf("outcomes %s", s.outcomes())
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 2, 1, withFaults("rate 4Mbit at 2s for 8s; cut seeders at 4s for 2s; rate 2Mbit at 8s for 4s"), nil)
		s.run()
		// 2 MB; 1 MB in 2 s; nothing; 1 MB in 2 s; 0.5 MB in 2 s, twice (the later
		// rate counts); then 5 MB in 5 s.
		s.about("all", s.m["time_last"], 17)
		if n := len(s.links().changes); n != 6 {
			t.Errorf("%d changes: %+v", n, s.links().changes)
		}
	})
}

// TestSwarmLeaves: with stay: leave the first to be done are gone, and verified.
func TestSwarmLeaves(t *testing.T) {
	for _, stay := range []experiment.Stay{{}, {For: 5 * time.Second}} {
		scenariotest.Virtual(t, func(t *testing.T) {
			s := newSwarmTest(t, 5, 1, func(d *experiment.Disseminate) {
				d.Stay, d.Join = stay, joinOf("waves of 1 every 20s")
			}, system.Options{"pass": "true"})
			s.run()
			// Each is alone with those that are done: if they stayed, the later ones
			// would be quicker.
			if s.outcomes() != "map[ok:4]" {
				t.Errorf("outcomes %s", s.outcomes())
			}
			s.about("all", s.m["time_last"], 10)
			s.about("the first", s.m["time_p25"], 10)
			if n := len(s.happened("left")); n != 3 { // the last: when it leaves, the trial is over
				t.Errorf("%d left: %+v", n, s.events)
			}
		})
	}
}

// TestSwarmBadNodes: each leecher has the outcome that it deserves, and the others
// are none the worse.
func TestSwarmBadNodes(t *testing.T) {
	for name, c := range map[string]struct {
		trouble  mem.Trouble
		outcomes string
	}{
		"refuses": {mem.Trouble{Refuse: fmt.Errorf("no room: %w", system.ErrQuota)},
			"map[error quota or disk full:1 ok:2]"},
		"lies":      {mem.Trouble{Wrong: true}, "map[ok:2 wrong-bytes:1]"},
		"stops":     {mem.Trouble{Stop: 0.3, Says: "no peers"}, "map[ok:2 stalled no peers:1]"},
		"is mute":   {mem.Trouble{Mute: true}, "map[ok:2 stalled no answer:1]"},
		"is slow":   {mem.Trouble{Slow: 700 * time.Millisecond}, "map[ok:3]"},
		"has words": {mem.Trouble{Says: "a tracker does not answer"}, "map[ok:3]"},
	} {
		t.Run(name, func(t *testing.T) {
			scenariotest.Virtual(t, func(t *testing.T) {
				s := newSwarmTest(t, 4, 1, nil, nil)
				bad := chooseRoles(s.cell.Disseminate, nil, 1, s.seed, 0).leechers[1]
				s.nodes[bad].SetTrouble(c.trouble)
				s.run()
				if s.outcomes() != c.outcomes {
					t.Errorf("outcomes %s, want %s", s.outcomes(), c.outcomes)
				}
				if s.took > 2*time.Minute {
					t.Errorf("it took %v", s.took)
				}
				if c.trouble.Slow > 0 {
					if n := s.nodes[bad].Asked(); n > int64(s.took/c.trouble.Slow)+2 {
						t.Errorf("asked %d times in %v, and each answer takes %v", n, s.took, c.trouble.Slow)
					}
					if r := s.m["resolution"]; r < c.trouble.Slow.Seconds() {
						t.Errorf("resolution %v, and an answer takes %v", r, c.trouble.Slow)
					}
				}
				if o := s.m["overhead"]; math.Abs(o-1) > 1e-6 {
					t.Errorf("overhead %v, and nothing came twice", o)
				}
				if last, has := s.m["time_last"]; has != (c.outcomes == "map[ok:3]") {
					t.Errorf("time_last %v, %v", last, has)
				}
			})
		})
	}
}

// TestSwarmFailedAreSlowest: leechers that fail early do not make the others'
// median theirs, and those that the experiment takes away do not count as failed.
func TestSwarmFailedAreSlowest(t *testing.T) {
	median := []string{"time_median", "disk_median", "speed_median"}
	for name, c := range map[string]struct {
		trouble mem.Trouble
		absent  []string
	}{
		"refuse": {mem.Trouble{Refuse: system.ErrQuota}, append(median, "first_byte")},
		"lie":    {mem.Trouble{Wrong: true}, median},
		"stop":   {mem.Trouble{Stop: 0.3}, median},
	} {
		t.Run(name, func(t *testing.T) {
			scenariotest.Virtual(t, func(t *testing.T) {
				s := newSwarmTest(t, 5, 1, nil, nil)
				who := chooseRoles(s.cell.Disseminate, nil, 1, s.seed, 0).leechers
				for _, bad := range who[:3] {
					s.nodes[bad].SetTrouble(c.trouble)
				}
				// It is the last, so that all others have come to their ends before.
				s.nodes[who[3]].SetLinks(mem.Links{Down: map[int]float64{who[3]: 100_000}})
				s.run()
				if n := len(s.fetches()); n != 4 || s.m["ok_rate"] != 0.25 {
					t.Errorf("%d leechers, outcomes %s, metrics %v", n, s.outcomes(), s.m)
				}
				s.about("the one that has it", s.m["time_p25"], 100)
				for _, key := range c.absent {
					if v, has := s.m[key]; has {
						t.Errorf("%s of one in four: %v", key, v)
					}
				}
			})
		})
	}
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, withFaults("crash 2 leechers at 1s"), nil)
		s.run()
		s.about("the one that was left alone", s.m["time_median"], s.m["time_last"])
	})
}

// TestSwarmDeadline: limits.deadline counts from each leecher's release.
func TestSwarmDeadline(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, func(d *experiment.Disseminate) { d.Join = joinOf("waves of 1 every 8s") }, nil)
		s.runner.site.Limits.Deadline = experiment.Duration(15 * time.Second)
		s.run()
		if !strings.Contains(s.outcomes(), "deadline:") {
			t.Errorf("outcomes %s", s.outcomes())
		}
		for _, op := range s.fetches() {
			if took := time.Duration(op.LastByte - op.Intended); op.Outcome == record.Deadline &&
				took != 15*time.Second {
				t.Errorf("deadline after %v", took)
			}
		}
		ok := 0.0
		for _, op := range s.fetches() {
			if op.Outcome == record.OK {
				ok++
			}
		}
		if _, has := s.m["time_p75"]; has || ok == 0 || s.m["ok_rate"] != ok/3 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
	})
}

// TestSwarmInterrupted: when the user cancels the run, the links are restored, and
// nothing else is done for trials to come; one that comes nevertheless is sound.
func TestSwarmInterrupted(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, withFaults("crash 1 leechers at 1s for 1m; cut 1 leechers at 2s for 1m"), nil)
		var n atomic.Int64
		for _, m := range s.runner.nodes {
			restarting(m, func(r system.Restarter) system.Restarter { return starts{r, &n, nil} })
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		if err := s.trial(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the trial ended with %v", err)
		}
		if c := s.links().changes; s.took != 5*time.Second || n.Load() != 0 || len(c[len(c)-1].Apart) != 0 {
			t.Errorf("after %v: %d nodes started, links %+v", s.took, n.Load(), c)
		}
		s.cell.Disseminate.Faults = faultsOf("none")
		s.run()
		s.about("all", s.m["time_last"], 30)
	})
}

// TestSwarmCancelled: it ends at once, cleans up, and the next trial is none the
// worse.
func TestSwarmCancelled(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, withFaults("crash 1 leechers at 1s for 1m; cut 1 leechers at 2s for 1m"), nil)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, context.Canceled)
		defer cancel()
		if err := s.trial(ctx); err == nil {
			t.Error("no error")
		}
		if s.took != 5*time.Second || s.outcomes() != "map[cancelled:3]" {
			t.Errorf("after %v: outcomes %s", s.took, s.outcomes())
		}
		s.cell.Disseminate.Faults = faultsOf("none")
		s.run()
		s.about("all", s.m["time_last"], 30)
	})
}

// starts counts how often a node is started anew, and refuses it where it is told to.
type starts struct {
	system.Restarter
	n    *atomic.Int64
	fail error
}

// restarting replaces how a node is started again.
func restarting(n *nodes.Node, by func(system.Restarter) system.Restarter) {
	n.System = struct {
		system.Member
		system.Restarter
	}{n.System.(system.Member), by(n.System.(system.Restarter))}
}

func (r starts) Restart(ctx context.Context, keep bool) error {
	r.n.Add(1)
	if r.fail != nil {
		return r.fail
	}
	return r.Restarter.Restart(ctx, keep)
}

// TestSwarmFresh: nodes are started anew before the trial, once, and nothing that
// was there is.
func TestSwarmFresh(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 3, 1, func(d *experiment.Disseminate) { d.Fresh = true }, nil)
		ref, err := s.nodes[0].Publish(t.Context(), "old", 3, strings.NewReader("old"))
		must(t, err)
		var n atomic.Int64
		for _, m := range s.runner.nodes {
			restarting(m, func(r system.Restarter) system.Restarter { return starts{r, &n, nil} })
		}
		s.run()
		if n.Load() != 3 {
			t.Errorf("3 nodes were started %d times", n.Load())
		}
		if _, err := s.nodes[0].Progress(t.Context(), ref); !errors.Is(err, system.ErrNotFound) {
			t.Errorf("what was there: %v", err)
		}
	})
}

// TestSwarmLinks: slow leechers are slow; what needs links is left out without.
func TestSwarmLinks(t *testing.T) {
	slow := func(d *experiment.Disseminate) { d.Slow, d.SlowDown = 0.25, 2_000_000 }
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 8, 4, slow, nil)
		s.cell.Link.Rate = 8_000_000
		s.run()
		s.about("the others", s.m["time_p75"], 10)
		s.about("the slow one", s.m["time_last"], 40)
		if line := s.m["line"]; math.Abs(line-40*1514.0/1448) > 0.001 {
			t.Errorf("load line %v", line)
		}
		// Half of the leechers need not wait for the slow one.
		if line := s.m["line_median"]; math.Abs(line-10*1514.0/1448) > 0.001 ||
			math.Abs(s.m["speed_line"]*line/float64(s.cell.Data.Size)-1) > 1e-9 {
			t.Errorf("load line of half of them %v, of the speed %v", line, s.m["speed_line"])
		}
		// A link that was measured slower than asked for carries less.
		m := Scenario{}.Measure(scenario.Measured{Cell: s.cell, Load: s.load, Ops: slices.Values(s.ops),
			Link: &record.LinkCheck{WantRate: 8e6, Rate: 7.6e6}})
		if math.Abs(m["line"]-s.m["line"]/0.95) > 1e-9 ||
			math.Abs(m["line_share"]-s.m["line"]/0.95/s.m["time_last"]) > 1e-9 {
			t.Errorf("as measured: load line %v, %v of the time", m["line"], m["line_share"])
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		for _, set := range []func(*experiment.Disseminate){
			slow, withFaults("cut 1 leechers at 1s"),
		} {
			s := newSwarmTest(t, 8, 4, set, nil)
			s.links().none = "no root"
			var skip *scenario.SkipError
			if err := s.trial(t.Context()); !errors.As(err, &skip) || !strings.Contains(skip.Why, "no root") {
				t.Errorf("without links: %v", err)
			}
		}
		s := newSwarmTest(t, 3, 1, withFaults("cut 1 leechers at 1s"), nil)
		s.links().fail = errors.New("tc died")
		if err := s.trial(t.Context()); err == nil || !strings.Contains(err.Error(), "tc died") {
			t.Errorf("a link that cannot be changed: %v", err)
		}
	})
}

// TestSwarmUsage: nodes of the deployment that take no part are not the cell's.
func TestSwarmUsage(t *testing.T) {
	cell := experiment.Cell{Disseminate: &experiment.Disseminate{Nodes: 2}}
	measure := func(nodes ...scenario.NodeUsage) map[string]float64 {
		return Scenario{}.Measure(scenario.Measured{Cell: cell,
			Ops:   slices.Values([]record.Op{{Kind: record.OpFetch, Length: 2e9, Bytes: 2e9}}),
			Usage: scenario.Usage{SystemCPU: 7, SystemRSSPeak: 4e9, Nodes: nodes}})
	}
	m := measure(scenario.NodeUsage{CPU: 0.5, RSSPeak: 1e6}, scenario.NodeUsage{CPU: 1.5, RSSPeak: 2e6},
		scenario.NodeUsage{CPU: 5, RSSPeak: 4e9})
	if m["system_cpu"] != 2 || m["system_cpu_per_gb"] != 1 || m["node_rss_peak"] != 2e6 {
		t.Errorf("metrics %v", m)
	}
	m = measure(scenario.NodeUsage{CPU: 0.5, RSSPeak: 1e6}, scenario.NodeUsage{CPU: math.NaN(), RSSPeak: math.NaN()})
	for _, key := range []string{"system_cpu", "system_cpu_per_gb", "node_rss_peak"} {
		if v, has := m[key]; has {
			t.Errorf("%s is %v, and a node of two was not seen", key, v)
		}
	}
}

// TestSwarmRoles: the same choices for all systems; seeder sets repeat.
func TestSwarmRoles(t *testing.T) {
	d := &experiment.Disseminate{Nodes: 16, Seeders: 3, SeederSets: 2, Slow: 0.5}
	faults := faultsOf("crash 2 seeders at 1s; crash 25% of leechers at 50%")
	sets := map[string]int{}
	for number := -2; number < 6; number++ {
		r := chooseRoles(d, faults, 1, uint64(number), number)
		sets[fmt.Sprint(r.seeders)]++
		if len(r.leechers) != 13 || len(r.slow) != 7 || len(r.victims[0]) != 2 || len(r.victims[1]) != 4 {
			t.Errorf("%+v", r)
		}
		for _, i := range slices.Concat(r.slow, r.victims[1]) {
			if !slices.Contains(r.leechers, i) {
				t.Errorf("%d is no leecher: %+v", i, r)
			}
		}
		seen := slices.Sorted(slices.Values(slices.Concat(r.seeders, r.leechers)))
		for i, place := range seen {
			if i != place {
				t.Fatalf("nodes %v", seen)
			}
		}
	}
	if len(sets) != 2 {
		t.Errorf("%d seeder sets: %v", len(sets), sets)
	}
}

func TestSwarmProblems(t *testing.T) {
	cell := func(faults string, fresh bool) []experiment.Cell {
		return []experiment.Cell{{Disseminate: &experiment.Disseminate{Nodes: 3, Seeders: 1, Faults: faultsOf(faults),
			Fresh: fresh}}}
	}
	for _, c := range []struct {
		mode, want string
		can        []string
		cells      []experiment.Cell
	}{
		{"attach", "cannot attach", []string{"spread", "restart"}, cell("none", false)},
		{"start", "get content from each other", []string{"put"}, cell("none", false)},
		{"start", "killed", []string{"spread"}, cell("crash seeders at 50%", false)},
		{"start", "started anew", []string{"spread"}, cell("none", true)},
		{"start", "", []string{"spread"}, cell("cut 1 leechers at 2s", false)},
		{"start", "", []string{"spread", "restart"}, cell("crash seeders at 50%", true)},
	} {
		p := Scenario{}.Problems(experiment.SystemUse{Name: "x", Mode: c.mode}, system.Info{Can: c.can}, c.cells)
		if c.want == "" && len(p) > 0 || c.want != "" && (len(p) != 1 || !strings.Contains(p[0].What, c.want) ||
			p[0].Hint == "") {
			t.Errorf("%+v: %v", c, p)
		}
	}
}
