package disseminate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, bittorrent.System{}) }

// The swarm of the tests: each node sends 1 MB/s, and serves when it has all. The tests derive
// their expectations from this.
const (
	swarmUp   = 1_000_000
	swarmSize = 10_000_000
	swarmPoll = 50 * time.Millisecond
)

// swarmTest is a runner on a deployment of mem, with the results of a trial.
type swarmTest struct {
	synthetic.Recorded
	t      *testing.T
	nodes  []*mem.Node
	runner *runner
	cell   experiment.Cell
	number int
	seed   uint64
	edges  int // number of calls of Begin and End
}

// memLinks are the links of mem's nodes as a Network.
type memLinks struct {
	nodes   []*mem.Node
	changes []scenario.NetworkChange
	lag     time.Duration // delay of healing
	none    string
	fail    error
}

func (l *memLinks) Change(_ context.Context, c scenario.NetworkChange) error {
	if l.fail != nil {
		return l.fail
	}
	l.changes = append(l.changes, c)
	links := mem.Links{Up: map[int]float64{}, Down: map[int]float64{}, Apart: c.Apart}
	for i, r := range c.Rates { // in bit/s
		if r.Up > 0 {
			links.Up[i] = r.Up / 8
		}
		if r.Down > 0 {
			links.Down[i] = r.Down / 8
		}
	}
	set := func() { l.nodes[0].SetLinks(links) }
	if l.lag > 0 && len(c.Apart) == 0 {
		time.AfterFunc(l.lag, set)
		return nil
	}
	set()
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

// swarm starts the nodes of a section and prepares them.
func swarm(t *testing.T, section string, opt system.Options) *swarmTest {
	t.Helper()
	s := &swarmTest{t: t, seed: 5, cell: experiment.Cell{ID: "c001", System: "mem",
		Data: experiment.Data{Objects: 1, Size: swarmSize}, Disseminate: sectionOf(t, section)}}
	all := system.Options{"nodes": fmt.Sprint(s.cell.Disseminate.Nodes), "up": fmt.Sprint(swarmUp)}
	maps.Copy(all, opt)
	c, err := mem.System{}.Start(t.Context(), system.Deployment{Options: all})
	must(t, err)
	for _, n := range c.Nodes() {
		s.nodes = append(s.nodes, n.(*mem.Node))
	}
	limits := synthetic.Limits()
	limits.Start = experiment.Duration(time.Minute)
	r, err := Scenario{}.Prepare(t.Context(), scenario.Site{Use: experiment.SystemUse{Name: "mem", Mode: "start"},
		Cluster: c, Network: &memLinks{nodes: s.nodes}, Seed: 1, Limits: limits}, []experiment.Cell{s.cell})
	must(t, err)
	s.runner = r.(*runner)
	return s
}

// sectionOf parses a section of an experiment. The defaults are one seeder, and leechers that
// stay.
func sectionOf(t *testing.T, section string) *experiment.Disseminate {
	d := &experiment.Disseminate{Seeders: 1, Stay: experiment.Forever,
		Poll: experiment.Duration(swarmPoll)}
	synthetic.Decode(t, "{"+section+"}", d)
	return d
}

func (s *swarmTest) links() *memLinks { return s.runner.site.Network.(*memLinks) }

// roles returns the roles in the next trial.
func (s *swarmTest) roles() roles {
	return chooseRoles(s.cell.Disseminate, 1, s.seed, s.number)
}

// trial executes a trial.
func (s *swarmTest) trial(ctx context.Context) error {
	s.t.Helper()
	edge := func() { s.edges++ }
	err := s.Run(ctx, Scenario{}, s.runner, s.cell, s.seed, scenario.Sink{Number: s.number, Begin: edge, End: edge},
		scenario.Usage{})
	if l, ok := s.runner.site.Network.(*memLinks); ok && len(l.changes) > 0 { // as the engine does
		if last := l.changes[len(l.changes)-1]; len(last.Apart)+len(last.Rates) > 0 {
			_ = l.Change(ctx, scenario.NetworkChange{})
		}
	}
	for _, n := range s.nodes {
		if h := n.Health(context.Background()); h != nil && !errors.Is(ctx.Err(), context.Canceled) {
			s.t.Errorf("after the trial: %v", h)
		}
	}
	slices.SortFunc(s.Ops, func(a, b record.Op) int { return int(a.Worker) - int(b.Worker) })
	return err
}

// run executes a trial that must not fail.
func (s *swarmTest) run() {
	s.t.Helper()
	must(s.t, s.trial(s.t.Context()))
}

// outcomes counts the leechers by outcome and class.
func (s *swarmTest) outcomes() string {
	n := map[string]int{}
	for _, op := range s.Ops {
		n[strings.TrimSpace(op.Outcome.String()+" "+op.Class)]++
	}
	return fmt.Sprint(n)
}

// polled checks metrics that are derived from polls.
func (s *swarmTest) polled(want map[string]float64) {
	s.t.Helper()
	s.Holds(s.t, want, nil, 2*swarmPoll)
}

// starts controls and counts the restarts of a node.
type starts struct {
	system.Restarter
	n     *atomic.Int64
	takes time.Duration
	fails *error // first restart only
}

func (r starts) Restart(ctx context.Context, keep bool) error {
	r.n.Add(1)
	time.Sleep(r.takes)
	if r.fails != nil && *r.fails != nil {
		err := *r.fails
		*r.fails = nil
		return err
	}
	return r.Restarter.Restart(ctx, keep)
}

// restarting replaces the restarts of nodes, and returns their count.
func (s *swarmTest) restarting(takes time.Duration, fails error, places ...int) *atomic.Int64 {
	var count atomic.Int64
	for _, i := range places {
		n := s.runner.nodes[i]
		n.System = struct {
			system.Member
			system.Restarter
		}{n.System.(system.Member), starts{n.System.(system.Restarter), &count, takes, &fails}}
	}
	return &count
}

// places returns the places of all nodes.
func (s *swarmTest) places() []int { return slices.Concat(s.roles().seeders, s.roles().leechers) }

// Trials of swarms in virtual time. l leechers share s seeders, so that all have the content after
// l·b/(s·up).
func TestSwarms(t *testing.T) {
	type spoil = func(*mem.Node)
	bad := func(all ...spoil) func(*swarmTest) {
		return func(s *swarmTest) {
			for i, spoil := range all {
				spoil(s.nodes[s.roles().leechers[i+1]])
			}
		}
	}
	trouble := func(t mem.Trouble) spoil { return func(n *mem.Node) { n.SetTrouble(t) } }
	before := func(call string, do func(context.Context) error) spoil {
		return func(n *mem.Node) {
			n.Before = func(ctx context.Context, what, _ string) error {
				if what != call {
					return nil
				}
				return do(ctx)
			}
		}
	}
	refuses := before("fetch", func(context.Context) error { return fmt.Errorf("no room: %w", system.ErrQuota) })
	asked := 0 // polls of the slow node
	var restarts *atomic.Int64
	// Three fail; the fourth is the last, so that all others have ended before.
	three := func(trouble spoil) func(*swarmTest) {
		return func(s *swarmTest) {
			bad(trouble, trouble, trouble)(s)
			first := s.roles().leechers[0]
			s.nodes[first].SetLinks(mem.Links{Down: map[int]float64{first: 100_000}})
		}
	}
	changes := func(want int) func(*swarmTest) {
		return func(s *swarmTest) {
			if c := s.links().changes; len(c) != want || len(c[want-1].Apart)+len(c[want-1].Rates) != 0 {
				t.Errorf("changes of links %+v, want %d, the last to heal", c, want)
			}
		}
	}
	type values = map[string]float64
	type counts = map[string]int
	for name, c := range map[string]struct {
		section  string
		opt      system.Options
		set      func(*swarmTest)
		outcomes string
		polled   values
		exact    values // −1: absent
		events   counts
		then     func(*swarmTest)
	}{
		// Two alone have half at 10 s. Then four share, and the other half needs 20 s. The second
		// wave has half then, and needs 10 s more.
		"waves": {section: "nodes: 5, join: {wave: 2, every: 10}", outcomes: "map[ok:4]",
			polled: values{"time_p25": 30, "time_last": 30}, exact: values{"line": -1}},
		"a seeder comes back": {section: "nodes: 4, faults: [{crash: seeders, at: 10s, for: 120}]",
			outcomes: "map[ok:3]", polled: values{"time_last": 150, "recovery": 0},
			exact:  values{"stalls": 3, "recovered": 1},
			events: counts{"stalled": 3, "stall passed": 3, "crash ends": 1}},
		// At 10 s, both have 5 MB. The other one alone has all at 15 s.
		"a leecher comes back": {section: "nodes: 3, faults: [{crash: leechers, count: '1', at: 10s, for: 10}]",
			outcomes: "map[ok:2]", polled: values{"time_p25": 15, "time_last": 25}, exact: values{"recovered": 1}},
		"without data": {
			section:  "nodes: 3, faults: [{crash: leechers, count: '1', at: 10s, for: 10, without_data: true}]",
			outcomes: "map[ok:2]", polled: values{"time_p25": 15, "time_last": 30}, exact: values{"recovered": 1}},
		"a leecher goes": {section: "nodes: 3, faults: [{crash: leechers, count: '1', at: 10s}]",
			outcomes: "map[cancelled crashed on purpose:1 ok:1]", polled: values{"time_last": 15}},
		"a share that never comes": {section: "nodes: 3, " +
			"faults: [{crash: leechers, count: '1', at: 10s}, {cut: nodes, count: 50%, at: 25%}]"}, // the trial ends
		// A leecher that had all is verified; one that was not released never comes.
		"complete ones go": {
			section:  "nodes: 4, join: {wave: 2, every: 30}, faults: [{crash: leechers, count: '3', at: 25s}]",
			outcomes: "map[cancelled crashed on purpose:1 ok:2]", polled: values{"time_last": 20}},
		"two leave the rest to itself": {section: "nodes: 4, faults: [{crash: leechers, count: '2', at: 1s}]",
			outcomes: "map[cancelled crashed on purpose:2 ok:1]", polled: values{"time_median": 10 + 2.0/3}},
		// 5 MB each at 20 s; the other two have all at 30 s, these two continue at 80 s until 90 s.
		"cut for a time": {section: "nodes: 5, faults: [{cut: leechers, count: '2', at: 20s, for: 60}]",
			outcomes: "map[ok:4]", polled: values{"time_p25": 30, "time_last": 90},
			exact: values{"recovered": 1, "stalls": 2}, then: changes(2)},
		"cut for good": {section: "nodes: 5, faults: [{cut: leechers, count: '2', at: 20s}]",
			outcomes: "map[cancelled cut away on purpose:2 ok:2]", then: changes(2)},
		// Leechers without seeders are not cut away on purpose, just as with dead seeders.
		"seeders cut": {section: "nodes: 5, join: {wave: 1, every: 11}, faults: [{cut: seeders, at: 15s}]",
			outcomes: "map[ok:1 stalled:3]", exact: values{"ok_rate": 0.25, "time_last": -1}},
		"seeders dead": {section: "nodes: 5, join: {wave: 1, every: 11}, faults: [{crash: seeders, at: 15s}]",
			outcomes: "map[ok:1 stalled:3]", exact: values{"ok_rate": 0.25, "time_last": -1}},
		"half the rate": {section: "nodes: 2, faults: [{rate: 4_000_000, at: 50%}]", outcomes: "map[ok:1]",
			polled: values{"time_last": 15}},
		// 2 MB; 1 MB in 2 s; nothing; 1 MB in 2 s; 0.5 MB in 2 s, twice (the later rate counts); then 5 MB in 5 s.
		"faults compose": {section: "nodes: 2, faults: [{rate: 4_000_000, at: 2s, for: 8}, {cut: seeders, at: 4s, for: 2}, " +
			"{rate: 2_000_000, at: 8s, for: 4}]", outcomes: "map[ok:1]", polled: values{"time_last": 17}, then: changes(6)},
		// Each is alone with finished leechers: if these stayed, the later ones would be quicker.
		// When the last has all, the trial is over.
		"leave at once": {section: "nodes: 5, stay: leave, join: {wave: 1, every: 20}",
			opt: system.Options{"pass": "true"}, outcomes: "map[ok:4]",
			polled: values{"time_p25": 10, "time_last": 10}, events: counts{"left": 3}},
		"leave later": {section: "nodes: 5, stay: 5s, join: {wave: 1, every: 20}",
			opt: system.Options{"pass": "true"}, outcomes: "map[ok:4]",
			polled: values{"time_p25": 10, "time_last": 10}, events: counts{"left": 3}},

		// It has all at 10 s, and is killed while its data is verified, which happens again after the load.
		"killed while it leaves": {section: "nodes: 3, stay: leave, join: {wave: 1, every: 20}, " +
			"faults: [{crash: leechers, count: '1', at: 11s, for: 5}]",
			opt: system.Options{"pass": "true"},
			set: func(s *swarmTest) {
				for s.roles().victims[0][0] != s.roles().leechers[0] {
					s.seed++
				}
				first := s.roles().leechers[0]
				s.nodes[first].Before = func(_ context.Context, what, _ string) error {
					if what == "read back" {
						time.Sleep(2 * time.Second)
					}
					return nil
				}
				restarts = s.restarting(0, nil, first)
			},
			outcomes: "map[ok:2]", then: func(*swarmTest) {
				if restarts.Load() != 1 {
					t.Errorf("it was started %d times", restarts.Load())
				}
			}},

		// Each has its own outcome and does not affect the others.
		"one refuses": {section: "nodes: 4", set: bad(refuses),
			outcomes: "map[error quota or disk full:1 ok:2]", exact: values{"time_last": -1, "overhead": 1}},
		"one lies": {section: "nodes: 4", set: bad(trouble(mem.Trouble{Wrong: true})), outcomes: "map[ok:2 wrong-bytes:1]",
			exact: values{"time_last": -1, "overhead": 1}},
		"one stops": {section: "nodes: 4", set: bad(trouble(mem.Trouble{Stop: 0.3, Says: "no peers"})),
			outcomes: "map[ok:2 stalled no peers:1]", exact: values{"time_last": -1, "overhead": 1}},
		"one is mute": {section: "nodes: 4", set: bad(before("progress of", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})),
			outcomes: "map[ok:2 stalled no answer:1]", exact: values{"time_last": -1, "overhead": 1}},
		"one has words": {section: "nodes: 4", set: bad(trouble(mem.Trouble{Says: "a tracker does not answer"})),
			outcomes: "map[ok:3]", exact: values{"overhead": 1}},
		"one is slow": {section: "nodes: 4", set: bad(before("progress of", func(context.Context) error {
			asked++
			time.Sleep(700 * time.Millisecond)
			return nil
		})),
			outcomes: "map[ok:3]", exact: values{"overhead": 1}, then: func(s *swarmTest) {
				if asked == 0 || asked > int(s.Took/(700*time.Millisecond))+2 {
					t.Errorf("asked %d times in %v, and each answer takes 700 ms", asked, s.Took)
				}
				if r := s.M["resolution"]; r < 0.7 {
					t.Errorf("resolution %v, and an answer takes 700 ms", r)
				}
			}},
		// Early failures do not shorten the median.
		"three refuse": {section: "nodes: 5", set: three(refuses),
			polled: values{"time_p25": 100}, exact: values{"ok_rate": 0.25, "time_median": -1,
				"speed_median": -1, "first_byte": -1}},
		"three lie": {section: "nodes: 5", set: three(trouble(mem.Trouble{Wrong: true})),
			polled: values{"time_p25": 100}, exact: values{"ok_rate": 0.25, "time_median": -1,
				"speed_median": -1}},
		"three stop": {section: "nodes: 5", set: three(trouble(mem.Trouble{Stop: 0.3})),
			polled: values{"time_p25": 100}, exact: values{"ok_rate": 0.25, "time_median": -1,
				"speed_median": -1}},

		// Only actual calls count as starts: one at once; two, released at 2 s and 4 s, at 5 s.
		"called when they are back": {
			section: "nodes: 4, join: {wave: 1, every: 2}, faults: [{crash: leechers, at: 1s, for: 4}]",
			exact:   values{"start_spread": 3}, outcomes: "map[ok:3]"},
		"never called": {section: "nodes: 4, join: {wave: 1, every: 2}, faults: [{crash: leechers, at: 1s}]",
			exact: values{"start_spread": 0}, outcomes: "map[cancelled crashed on purpose:3]"},

		// A node that ends before the fault does has not recovered; one that has all by then had
		// nothing to recover from.
		"one is not started again": {section: "nodes: 5, faults: [{crash: leechers, count: '2', at: 5s, for: 4}]",
			set:      func(s *swarmTest) { s.restarting(0, system.ErrAnswer, s.roles().victims[0][0]) },
			outcomes: "map[error not started again:1 ok:3]", exact: values{"recovered": 0.5}},
		"too late": {section: "nodes: 4, faults: [{cut: seeders, at: 10s, for: 120}]",
			set:      func(s *swarmTest) { s.runner.site.Limits.Deadline = experiment.Duration(time.Minute) },
			outcomes: "map[stalled:3]", exact: values{"recovered": 0}},
		"not held up": {section: "nodes: 4, seeders: 2, faults: [{crash: seeders, count: '1', at: 2s, for: 20}]",
			outcomes: "map[ok:2]", exact: values{"recovered": -1}},
		// A killed node is down until it is ready again.
		"slow to start": {section: "nodes: 3, faults: [{crash: seeders, at: 5s, for: 4}]",
			set:      func(s *swarmTest) { s.restarting(6*time.Second, nil, s.places()...) },
			outcomes: "map[ok:2]", polled: values{"outage": 10, "recovery": 0, "time_last": 30},
			events: counts{"crash ends": 1}},
		"not undone": {section: "nodes: 4, faults: [{rate: 4_000_000, of: seeders, at: 50%, for: 3600}]",
			outcomes: "map[ok:3]", exact: values{"outage": -1}, events: counts{"rate ends": 0},
			then: func(s *swarmTest) {
				if n := strings.Join(s.Load.Notes, "|"); !strings.Contains(n, "was not undone before the load was over") {
					t.Errorf("notes %s", n)
				}
			}},
		// Nodes that need longer than limits.stall to find each other again are not given up then.
		"late to heal": {section: "nodes: 4, faults: [{cut: seeders, at: 10s, for: 60}]",
			set:      func(s *swarmTest) { s.links().lag = 45 * time.Second },
			outcomes: "map[ok:3]", polled: values{"recovery": 45}, exact: values{"recovered": 1}},
		// The deadline counts from each leecher's release.
		"deadline": {section: "nodes: 4, join: {wave: 1, every: 8}",
			set:   func(s *swarmTest) { s.runner.site.Limits.Deadline = experiment.Duration(15 * time.Second) },
			exact: values{"time_p75": -1}, then: func(s *swarmTest) {
				ok := 0.0
				for _, op := range s.Ops {
					if op.Outcome == record.OK {
						ok++
					} else if took := time.Duration(op.LastByte - op.Intended); took != 15*time.Second {
						t.Errorf("%s after %v", op.Outcome, took)
					}
				}
				if ok == 0 || ok == 3 || s.M["ok_rate"] != ok/3 || !strings.Contains(s.outcomes(), "deadline:") {
					t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.M)
				}
			}},
		// A cut that separates the seeder and two leechers from the others strikes the others. 4 MB
		// each at 20 s; the two have all at 32 s, the others continue at 40 s.
		"the other side": {section: "nodes: 6, faults: [{cut: nodes, count: 50%, at: 20s, for: 20}]",
			set: func(s *swarmTest) {
				for !slices.Contains(s.roles().victims[0], s.roles().seeders[0]) {
					s.seed++
				}
			},
			outcomes: "map[ok:5]", polled: values{"outage": 20, "recovery": 0, "time_last": 58},
			exact: values{"recovered": 1, "stalls": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synthetic.Virtual(t, func(t *testing.T) {
				s := swarm(t, c.section, c.opt)
				if c.set != nil {
					c.set(s)
				}
				s.run()
				if c.outcomes != "" && s.outcomes() != c.outcomes {
					t.Errorf("outcomes %s, want %s", s.outcomes(), c.outcomes)
				}
				s.polled(c.polled)
				s.Holds(t, nil, c.exact, 0)
				for what, n := range c.events {
					if len(s.Happened(what)) != n {
						t.Errorf("%q is not there %d times: %+v", what, n, s.Events)
					}
				}
				if c.then != nil {
					c.then(s)
				}
			})
		})
	}
}

// TestSwarmTimes checks that all have the content after l·b/(s·up), or after b/down.
func TestSwarmTimes(t *testing.T) {
	for _, c := range []struct {
		nodes, seeders int
		down           string
		want           float64
	}{{2, 1, "0", 10}, {4, 1, "0", 30}, {17, 1, "0", 160}, {8, 4, "0", 10}, {8, 4, "500000", 20}} {
		synthetic.Virtual(t, func(t *testing.T) {
			s := swarm(t, fmt.Sprintf("nodes: %d, seeders: %d", c.nodes, c.seeders), system.Options{"down": c.down})
			asked := make([]atomic.Int64, c.nodes)
			for i, n := range s.nodes {
				n.Before = func(_ context.Context, call, _ string) error {
					if call == "progress of" {
						asked[i].Add(1)
					}
					return nil
				}
			}
			s.run()
			if want := fmt.Sprintf("map[ok:%d]", c.nodes-c.seeders); s.outcomes() != want || s.edges != 2 {
				t.Errorf("outcomes %s, want %s; the load has %d edges", s.outcomes(), want, s.edges)
			}
			s.polled(map[string]float64{"time_last": c.want, "time_median": c.want, "time_p25": c.want,
				"first_byte": 0, "resolution": swarmPoll.Seconds()})
			s.Holds(t, nil, map[string]float64{"ok_rate": 1, "stalls": 0, "start_spread": 0, "overhead": 1,
				"seeder_share": 1, "duplicates": 1}, 0)
			// No more polls than in the schedule, and a last one of each node.
			for i := range asked {
				if most := int64(s.M["time_last"]/swarmPoll.Seconds()) + 3; asked[i].Load() > most {
					t.Errorf("node %d was asked %d times, of %d", i, asked[i].Load(), most)
				}
			}
			s.wantMarks()
		})
	}
}

// wantMarks checks the contract of marks.
func (s *swarmTest) wantMarks() {
	s.t.Helper()
	end := time.Duration(0)
	byNode := map[int][]record.Mark{}
	for _, m := range s.Marks {
		if m.End < end || m.Start > m.End || m.Before > m.Start {
			s.t.Fatalf("mark %+v after one at %v", m, end)
		}
		end = m.End
		byNode[m.Node] = append(byNode[m.Node], m)
	}
	for _, op := range s.Ops {
		marks := byNode[int(op.Worker)]
		if n := len(marks); n < 90 || n > 110 {
			s.t.Errorf("node %d left %d marks", op.Worker, n)
		}
		if last := marks[len(marks)-1]; last.Verified != swarmSize || !last.Complete {
			s.t.Errorf("node %d: last mark %+v", op.Worker, last)
		}
	}
}

// The arrivals of a Poisson process are reproducible.
func TestSwarmArrivals(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		var all [2][]int64
		for i := range all {
			s := swarm(t, "nodes: 9, join: {poisson: 0.1}", nil)
			s.run()
			for _, op := range s.Ops {
				all[i] = append(all[i], op.Intended)
				if op.Start-op.Intended > int64(time.Millisecond) || op.Outcome != record.OK {
					t.Errorf("%+v", op)
				}
			}
			slices.Sort(all[i])
		}
		if mean := float64(all[0][7]) / 7e9; !slices.Equal(all[0], all[1]) || mean < 3 || mean > 30 {
			t.Errorf("arrivals %v, then %v: on the average every %.1f s, want about 10", all[0], all[1], mean)
		}
	})
}

// TestSwarmDeadSeeder kills the only seeder at 50 %. All leechers stall, and the trial ends; in
// the second trial, the seeder is alive again.
func TestSwarmDeadSeeder(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		s := swarm(t, "nodes: 4, faults: [{crash: seeders, at: 50%}]", nil)
		for s.number = range 2 {
			s.run()
			if s.outcomes() != "map[stalled:3]" || s.Took < 45*time.Second || s.Took > 47*time.Second {
				t.Errorf("outcomes %s after %v", s.outcomes(), s.Took) // 15 s until 50 %, and limits.stall
			}
			if e := s.Happened("crash begins"); len(e) != 1 || !strings.HasPrefix(e[0].Detail,
				"crash seeders at 50%: mem-0") || e[0].Kind != "fault" {
				t.Errorf("events %+v", s.Events)
			}
			s.Holds(t, nil, map[string]float64{"stalls": 3, "ok_rate": 0, "time_last": -1, "time_median": -1,
				"recovery": -1}, 0)
			for _, op := range s.Ops {
				if op.Bytes < swarmSize/2 || op.Bytes > swarmSize/2+swarmUp/10 {
					t.Errorf("%+v", op)
				}
			}
		}
	})
}

// TestSwarmLostBeforeItCame checks that a leecher whose node is lost before its release ends at
// the release. It runs in real time, in which a moment is never met exactly.
func TestSwarmLostBeforeItCame(t *testing.T) {
	s := swarm(t, "nodes: 5, join: {wave: 1, every: 0.15}, faults: [{crash: leechers, count: 50%, at: 100ms}]",
		system.Options{"up": fmt.Sprint(100 * swarmUp)})
	s.runner.site.Limits.Stall = experiment.Duration(500 * time.Millisecond)
	lost := func(k int) bool { return slices.Contains(s.roles().victims[0], s.roles().leechers[k]) }
	for !lost(1) || lost(3) { // lose the second, but not the last
		s.seed++
	}
	s.run()
	late := 0
	for _, op := range s.Ops {
		if op.Start < op.Intended || op.LastByte < op.Start {
			t.Errorf("%+v", op)
		}
		if op.Class == nodes.ClassCrashed && op.Start == op.Intended && op.LastByte == op.Start {
			late++
		}
	}
	if late == 0 {
		t.Errorf("none was lost before it came: %+v", s.Ops)
	}
}

// TestSwarmCancelled checks that a cancelled trial ends at once. If the
// user has cancelled the run, it prepares nothing else for later trials; a later trial
// nevertheless works.
func TestSwarmCancelled(t *testing.T) {
	for _, user := range []bool{false, true} {
		synthetic.Virtual(t, func(t *testing.T) {
			s := swarm(t, "nodes: 4, faults: [{crash: leechers, count: '1', at: 1s, for: 60}, "+
				"{cut: leechers, count: '1', at: 2s, for: 60}]", nil)
			n := s.restarting(0, nil, s.places()...)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, context.Canceled)
			if user {
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(5*time.Second, cancel)
			}
			defer cancel()
			if err := s.trial(ctx); err == nil || s.Took != 5*time.Second || s.outcomes() != "map[cancelled:3]" {
				t.Errorf("%v after %v, outcomes %s", err, s.Took, s.outcomes())
			}
			if c := s.links().changes; len(c[len(c)-1].Apart) != 0 || user && n.Load() != 0 {
				t.Errorf("%d nodes started, links %+v", n.Load(), c)
			}
			s.cell.Disseminate.Faults = nil
			s.run()
			s.polled(map[string]float64{"time_last": 30})
		})
	}
}

// TestSwarmFresh checks that each node is restarted once before the trial, without its data.
func TestSwarmFresh(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		s := swarm(t, "nodes: 3, fresh: true", nil)
		ref, err := s.nodes[0].Publish(t.Context(), "old", 3, strings.NewReader("old"))
		must(t, err)
		n := s.restarting(0, nil, s.places()...)
		s.run()
		if n.Load() != 3 {
			t.Errorf("3 nodes were started %d times", n.Load())
		}
		if _, err := s.nodes[0].Progress(t.Context(), ref); !errors.Is(err, system.ErrNotFound) {
			t.Errorf("what was there: %v", err)
		}
	})
}

// TestSwarmLinks checks that slow leechers are slow, and that trials that need links are left out
// without them.
func TestSwarmLinks(t *testing.T) {
	const slow, cut = "nodes: 8, seeders: 4, slow: 0.25, slow_down: 2_000_000",
		"nodes: 3, faults: [{cut: leechers, count: '1', at: 1s}]"
	synthetic.Virtual(t, func(t *testing.T) {
		s := swarm(t, slow, nil)
		s.cell.Link.Rate = 8_000_000
		s.run()
		s.polled(map[string]float64{"time_p75": 10, "time_last": 40})
		// The median leecher does not wait for the slow one. 1448 of 1514 bytes are payload.
		const wire = 1514.0 / 1448
		s.Holds(t, nil, map[string]float64{"line": 40 * wire, "line_median": 10 * wire,
			"speed_line": swarmSize / (10 * wire)}, 0)
		// A link that was measured slower than configured carries less.
		m := Scenario{}.Measure(scenario.Measured{Cell: s.cell, Load: s.Load, Ops: slices.Values(s.Ops),
			Link: &record.LinkCheck{WantRate: 8e6, Rate: 7.6e6}})
		if math.Abs(m["line"]-s.M["line"]/0.95) > 1e-9 ||
			math.Abs(m["line_share"]-s.M["line"]/0.95/s.M["time_last"]) > 1e-9 {
			t.Errorf("as measured: load line %v, %v of the time", m["line"], m["line_share"])
		}
	})
	synthetic.Virtual(t, func(t *testing.T) {
		for _, section := range []string{slow, cut} {
			s := swarm(t, section, nil)
			s.links().none = "no root"
			var skip *scenario.SkipError
			if err := s.trial(t.Context()); !errors.As(err, &skip) || !strings.Contains(skip.Why, "no root") {
				t.Errorf("without links: %v", err)
			}
		}
		s := swarm(t, cut, nil)
		s.links().fail = errors.New("tc died")
		if err := s.trial(t.Context()); err == nil || !strings.Contains(err.Error(), "tc died") {
			t.Errorf("a link that cannot be changed: %v", err)
		}
	})
}

// TestSwarmUsage checks that nodes outside of the cell do not count.
func TestSwarmUsage(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		nodes          []scenario.NodeUsage
		cpu, perGB, mb float64
	}{
		{[]scenario.NodeUsage{{CPU: 0.5, RSSPeak: 1e6}, {CPU: 1.5, RSSPeak: 2e6}, {CPU: 5, RSSPeak: 4e9}}, 2, 1, 2e6},
		{[]scenario.NodeUsage{{CPU: 0.5, RSSPeak: 1e6}, {CPU: nan, RSSPeak: nan}}, -1, -1, -1}, // one was not observed
	} {
		r := synthetic.Recorded{M: Scenario{}.Measure(scenario.Measured{
			Cell:  experiment.Cell{Disseminate: &experiment.Disseminate{Nodes: 2}},
			Ops:   slices.Values([]record.Op{{Kind: record.OpFetch, Length: 2e9, Bytes: 2e9}}),
			Usage: scenario.Usage{SystemCPU: 7, SystemRSSPeak: 4e9, Nodes: c.nodes}})}
		r.Holds(t, nil, map[string]float64{"system_cpu": c.cpu, "system_cpu_per_gb": c.perGB, "node_rss_peak": c.mb}, 0)
	}
}

// TestSwarmRoles checks that roles are the same for all systems, and that seeder sets repeat.
func TestSwarmRoles(t *testing.T) {
	d := sectionOf(t, "nodes: 16, seeders: 3, seeder_sets: 2, slow: 0.5, "+
		"faults: [{crash: seeders, count: '2', at: 1s}, {crash: leechers, count: 25%, at: 50%}]")
	sets := map[string]int{}
	for number := -2; number < 6; number++ {
		r := chooseRoles(d, 1, uint64(number), number)
		sets[fmt.Sprint(r.seeders)]++
		if len(r.leechers) != 13 || len(r.slow) != 7 || len(r.victims[0]) != 2 || len(r.victims[1]) != 4 {
			t.Errorf("%+v", r)
		}
		for _, i := range slices.Concat(r.slow, r.victims[1]) {
			if !slices.Contains(r.leechers, i) {
				t.Errorf("%d is no leecher: %+v", i, r)
			}
		}
		for i, place := range slices.Sorted(slices.Values(slices.Concat(r.seeders, r.leechers))) {
			if i != place {
				t.Fatalf("nodes %+v", r)
			}
		}
	}
	if len(sets) != 2 {
		t.Errorf("%d seeder sets: %v", len(sets), sets)
	}
}

func TestSwarmProblems(t *testing.T) {
	const crash = "nodes: 3, faults: [{crash: seeders, at: 50%}]"
	for _, c := range []struct{ want, can, section string }{
		{"the scenario disseminate needs", "put", "nodes: 3"},
		{"kind crash needs", "spread", crash},
		{"disseminate.fresh needs", "spread", "nodes: 3, fresh: true"},
		{"", "spread", "nodes: 3, faults: [{cut: leechers, count: '1', at: 2s}]"},
		{"", "spread restart", crash + ", fresh: true"},
	} {
		p := Scenario{}.Problems(experiment.SystemUse{Name: "x"},
			system.Info{Can: strings.Fields(c.can)}, []experiment.Cell{{Disseminate: sectionOf(t, c.section)}})
		if c.want == "" && len(p) > 0 || c.want != "" && (len(p) != 1 || !strings.Contains(p[0].What, c.want) ||
			p[0].Hint == "") {
			t.Errorf("%+v: %v", c, p)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A node that does not recover counts as slower than all others.
func TestRecoveryCountsNodesThatNeverRecover(t *testing.T) {
	for _, c := range []struct {
		after     []float64 // seconds; -1: never
		want      float64   // NaN: more than half never did
		recovered float64
	}{
		{[]float64{1, 3, -1}, 3, 2. / 3}, {[]float64{1, -1, -1}, math.NaN(), 1. / 3}, {[]float64{2}, 2, 1},
	} {
		in, m := scenario.Measured{}, map[string]float64{}
		for i, v := range c.after {
			in.Load.Details = append(in.Load.Details,
				record.Detail{Kind: record.DetailRecovery, Name: strconv.Itoa(i), Value: v})
		}
		swarmRecovery(&in, scenario.Numbers(m))
		if got, has := m["recovery"]; has == math.IsNaN(c.want) || has && got != c.want || m["recovered"] != c.recovered {
			t.Errorf("%v: %v", c.after, m)
		}
	}
	trial := &analysis.Trial{Trial: record.Trial{Metrics: map[string]float64{"recovered": 0.5}}}
	for recovered, censored := range map[float64]bool{0.5: true, 1: false} {
		trial.Metrics["recovered"] = recovered
		if (Scenario{}).View().Censors(trial, "recovery", false) != censored {
			t.Errorf("where %v recovered, recovery is censored: %t", recovered, !censored)
		}
	}
}
