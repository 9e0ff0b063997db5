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
	}{{2, 1, "0", 10}, {4, 1, "0", 30}, {32, 1, "0", 310}, {8, 4, "0", 10}, {8, 4, "500000", 20}} {
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

