package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
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
	runner *swarmRunner
	cell   experiment.Cell
	number int
	seed   uint64

	mu     sync.Mutex
	ops    []record.Op
	marks  []record.Mark
	events []record.Event
	load   Load
	took   time.Duration
	m      map[string]float64
}

// memLinks are the links of mem's nodes as a Network.
type memLinks struct {
	nodes   []*mem.Node
	changes []NetworkChange
	none    string
	fail    error
}

func (l *memLinks) Change(_ context.Context, c NetworkChange) error {
	if l.fail != nil {
		return l.fail
	}
	l.changes = append(l.changes, c)
	links := mem.Links{Up: map[int]float64{}, Down: map[int]float64{}, Apart: c.Apart}
	for i, r := range c.Rates {
		if r.Up > 0 {
			links.Up[i] = r.Up / 8
		}
		if r.Down > 0 {
			links.Down[i] = r.Down / 8
		}
	}
	l.nodes[0].SetLinks(links)
	return nil
}

func (l *memLinks) Check(context.Context, int, int) (record.LinkCheck, error) {
	return record.LinkCheck{OK: true}, nil
}
func (l *memLinks) Traffic(i int) (float64, float64) { return l.nodes[i].Moved() }
func (l *memLinks) Emulated() (bool, string)         { return l.none == "", l.none }

// newSwarmTest starts nodes and prepares them for a cell, which set changes.
func newSwarmTest(t *testing.T, nodes, seeders int, set func(*experiment.ResolvedDisseminate), opt system.Options) *swarmTest {
	t.Helper()
	all := system.Options{"nodes": fmt.Sprint(nodes), "up": fmt.Sprint(swarmUp)}
	for k, v := range opt {
		all[k] = v
	}
	c, err := mem.System{}.Start(t.Context(), system.Deployment{Options: all})
	if err != nil {
		t.Fatal(err)
	}
	d := &experiment.ResolvedDisseminate{
		Nodes: nodes, Seeders: seeders, Join: "together", Stay: "forever", Faults: "none", Cache: "warm", Poll: experiment.Duration(swarmPoll),
	}
	if set != nil {
		set(d)
	}
	s := &swarmTest{t: t, seed: 5, cell: experiment.Cell{
		ID: "c001", System: "mem", Disseminate: d, Data: experiment.ResolvedData{Objects: 1, Size: swarmSize},
	}}
	for _, n := range c.Nodes() {
		s.nodes = append(s.nodes, n.(*mem.Node))
	}
	r, err := Disseminate{}.Prepare(t.Context(), Site{
		Use: experiment.SystemUse{Name: "mem", Mode: "start"}, Cluster: c, Network: &memLinks{nodes: s.nodes}, Seed: 1,
		Limits: experiment.Limits{
			Deadline: experiment.Duration(10 * time.Minute), Stall: experiment.Duration(30 * time.Second), Start: experiment.Duration(time.Minute),
		},
	}, []experiment.Cell{s.cell})
	if err != nil {
		t.Fatal(err)
	}
	s.runner = r.(*swarmRunner)
	return s
}

func (s *swarmTest) links() *memLinks { return s.runner.site.Network.(*memLinks) }

// trial executes one.
func (s *swarmTest) trial(ctx context.Context) error {
	s.t.Helper()
	s.ops, s.marks, s.events = nil, nil, nil
	sum := record.NewSummary()
	begun := time.Now()
	load, err := s.runner.Trial(ctx, s.cell, s.seed, Sink{
		Epoch: begun, Number: s.number,
		Block: func(b []byte) error {
			ops, err := record.DecodeBlock(b, nil)
			s.ops = append(s.ops, ops...)
			return errors.Join(err, sum.Ops(ops))
		},
		Marks: func(m []record.Mark) error { s.marks = append(s.marks, m...); return nil },
		Event: func(e record.Event) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
			return nil
		},
	})
	s.load, s.took = load, time.Since(begun)
	s.m = Disseminate{}.Measure(Measured{Cell: s.cell, Summary: sum, Load: load, Usage: Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN()}})
	for _, n := range s.nodes {
		if h := n.Health(context.Background()); h != nil {
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
		virtual(t, func(t *testing.T) {
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
	virtual(t, func(t *testing.T) {
		// Two alone until 10 s have half of it, then four share: 0.5 each needs 20 s
		// more; those of the second wave have half then, and need 10 s more.
		s := newSwarmTest(t, 5, 1, func(d *experiment.ResolvedDisseminate) { d.Join = "waves of 2 every 10s" }, nil)
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
	virtual(t, func(t *testing.T) {
		var first []int64
		for range 2 {
			s := newSwarmTest(t, 9, 1, func(d *experiment.ResolvedDisseminate) { d.Join = "poisson 0.1/s" }, nil)
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
	virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, func(d *experiment.ResolvedDisseminate) { d.Faults = "crash seeders at 50%" }, nil)
		for range 2 { // the second trial finds the seeder alive
			s.run()
			if s.outcomes() != "map[stalled:3]" {
				t.Errorf("outcomes %s", s.outcomes())
			}
			if s.took < 45*time.Second || s.took > 47*time.Second { // 15 s until the half, limits.stall
				t.Errorf("the trial took %v", s.took)
			}
			if e := s.happened("crash begins"); len(e) != 1 || !strings.HasPrefix(e[0].Detail, "crash seeders at 50%: mem-0") || e[0].Kind != "fault" {
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
	virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, func(d *experiment.ResolvedDisseminate) { d.Faults = "crash seeders at 10s for 2m" }, nil)
		s.run()
		if s.outcomes() != "map[ok:3]" || s.m["stalls"] != 3 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
		s.about("time", s.m["time_last"], 150)
		if len(s.happened("stalled")) != 3 || len(s.happened("stall passed")) != 3 || len(s.happened("crash ends")) != 1 {
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
		virtual(t, func(t *testing.T) {
			s := newSwarmTest(t, 3, 1, func(d *experiment.ResolvedDisseminate) { d.Faults = c.faults }, nil)
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

// TestSwarmCut: a partition keeps some from the seeder, for a time or for good.
func TestSwarmCut(t *testing.T) {
	virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 5, 1, func(d *experiment.ResolvedDisseminate) { d.Faults = "cut 2 leechers at 20s for 1m" }, nil)
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
	virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 5, 1, func(d *experiment.ResolvedDisseminate) { d.Faults = "cut 2 leechers at 20s" }, nil)
		s.run()
		if s.outcomes() != "map[cancelled cut away on purpose:2 ok:2]" {
			t.Errorf("outcomes %s", s.outcomes())
		}
		if c := s.links().changes; len(c) != 2 || len(c[1].Apart) != 0 { // healed at the end
			t.Errorf("changes %+v", c)
		}
	})
}

// TestSwarmRate: half the rate at half the time doubles what is left; two faults
// at a time compose.
func TestSwarmRate(t *testing.T) {
	virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 2, 1, func(d *experiment.ResolvedDisseminate) { d.Faults = "rate 4Mbit at 50%" }, nil)
		s.run()
		s.about("all", s.m["time_last"], 15)
		if s.outcomes() != "map[ok:1]" {
			t.Errorf("outcomes %s", s.outcomes())
		}
	})
	virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 2, 1, func(d *experiment.ResolvedDisseminate) {
			d.Faults = "rate 4Mbit at 2s for 8s; cut seeders at 4s for 2s; rate 2Mbit at 8s for 4s"
		}, nil)
		s.run()
		// 2 MB; 1 MB in 2 s; nothing; 1 MB in 2 s; 0.5 MB in 2 s, twice (the later
		// rate counts); then 5 MB in 5 s.
		s.about("all", s.m["time_last"], 17)
		if n := len(s.links().changes); n != 6 {
			t.Errorf("%d changes: %+v", n, s.links().changes)
		}
	})
}
