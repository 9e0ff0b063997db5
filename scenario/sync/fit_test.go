package sync

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// syncPlan is an experiment on mem.
func syncPlan(t *testing.T, src string) *experiment.Plan {
	t.Helper()
	spec := experiment.SystemSpec{Name: "mem", Modes: []string{"start"}, Follows: true}
	for _, o := range (mem.System{}).Info().Options {
		spec.Options = append(spec.Options, experiment.OptionSpec(o))
	}
	e, err := experiment.Parse("test.yaml", []byte(src), nil, experiment.Catalog{spec})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// followerLinks are the links of mem's followers as a [Network].
type followerLinks struct{ nodes []*mem.Follower }

func (l *followerLinks) Change(_ context.Context, c scenario.NetworkChange) error {
	l.nodes[0].SetLinks(scenariotest.Links(c))
	return nil
}

func (*followerLinks) Check(context.Context, int, int) (record.LinkCheck, error) {
	return record.LinkCheck{OK: true}, nil
}

func (l *followerLinks) Traffic(context.Context) (all []scenario.Traffic) {
	for _, n := range l.nodes {
		received, sent := n.Moved()
		all = append(all, scenario.Traffic{Received: received, Sent: sent})
	}
	return all
}

func (*followerLinks) Emulated() (bool, string) { return true, "" }

// syncOn prepares the cells of a plan on mem with these options. The function it
// gives executes a trial of a cell in a block, and gives its metrics.
func syncOn(t *testing.T, plan *experiment.Plan, opt system.Options) func(cell experiment.Cell, block int) map[string]float64 {
	t.Helper()
	use := plan.Experiment.Systems[0]
	all := system.Options{"nodes": "1"}
	for k, v := range use.With {
		all[k] = v
	}
	for k, v := range opt {
		all[k] = v
	}
	nodes := 1
	for _, c := range plan.Cells {
		nodes = max(nodes, 1+c.Sync.Peers)
	}
	all["nodes"] = strconv.Itoa(nodes)
	cluster, err := mem.System{}.Start(t.Context(), system.Deployment{Options: all, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	links := &followerLinks{}
	for _, n := range cluster.Nodes() {
		links.nodes = append(links.nodes, n.(*mem.Follower))
	}
	dir := t.TempDir()
	use.With = all
	runner, err := Scenario{}.Prepare(t.Context(), scenario.Site{
		Use: use, Cluster: cluster, Network: links, Seed: 1, Dir: dir, Limits: plan.Experiment.Limits,
		Disk: func(context.Context) (scenario.StoreDir, error) {
			d, err := os.MkdirTemp(dir, "store")
			return scenario.StoreDir{Files: testbed.LocalFiles{}, Path: d, On: "disk", Remove: func() error { return os.RemoveAll(d) }}, err
		},
	}, plan.Cells)
	if err != nil {
		t.Fatal(err)
	}
	return func(cell experiment.Cell, block int) map[string]float64 {
		t.Helper()
		var all []record.Op
		load, err := runner.Trial(t.Context(), cell, 5, scenario.Sink{
			Epoch: time.Now(), Number: block,
			Block: func(b []byte) error {
				ops, err := record.DecodeBlock(b, nil)
				if err != nil {
					return err
				}
				all = append(all, ops...)
				return nil
			},
			Marks: func([]record.Mark) error { return nil }, Event: func(record.Event) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		m := Scenario{}.Measure(scenario.Measured{Cell: cell, Load: load, Ops: slices.Values(all), Usage: scenario.Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN()}})
		if m["ok_rate"] != 1 {
			t.Fatalf("cell %s, block %d: %v, %q", cell.ID, block, m, load.Notes)
		}
		return m
	}
}

const knobs = `
scenario: sync
systems: [mem]
sync:
  blocks: 200
  transactions: 1
  replay: false
  poll: 5ms # the least: a trial is known this late, which is no part of the truth
  vary:
    f1: [low, high]
    f2: [low, high]
    index: [0s, 2ms]
`

// varied are the factors of an experiment, and the levels of each of its cells.
func varied(plan *experiment.Plan) (factors []stats.FactorialFactor, levels func(experiment.Cell) []int) {
	vary := plan.Experiment.Sync.Vary
	for name := range vary {
		factors = append(factors, stats.FactorialFactor{Name: name})
	}
	slices.SortFunc(factors, func(a, b stats.FactorialFactor) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	for i, f := range factors {
		for _, c := range plan.Cells { // in order, the default first
			if v := c.Sync.Options[f.Name]; !slices.Contains(factors[i].Levels, v) {
				factors[i].Levels = append(factors[i].Levels, v)
			}
		}
	}
	return factors, func(c experiment.Cell) []int {
		at := make([]int, len(factors))
		for i, f := range factors {
			at[i] = slices.Index(f.Levels, c.Sync.Options[f.Name])
		}
		return at
	}
}

// From mem through the scenario to the analysis, again and again: main effects and
// the one interaction come back, with intervals that cover them as often as they
// promise, and so does what the waterfall says of the way to the best combination.
func TestSyncEffectsAreRecovered(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a hundred experiments")
	}
	const experiments, blocks = 100, 5
	plan := syncPlan(t, knobs)
	factors, levels := varied(plan)
	if len(plan.Cells) != 8 || len(factors) != 3 {
		t.Fatalf("%d cells of %v", len(plan.Cells), factors)
	}
	covered := map[string]int{}
	faster, kept, false5 := 0, 0, 0
	scenariotest.Virtual(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(6, 6))
		for n := range experiments {
			between := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
			m1, m2, m12 := between(0.5, 0.9), between(0.7, 1.2), between(0.6, 0.9)
			index := 1 + 2.0/10 // 10 ms for a block, and 2 ms when something subscribes
			text := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
			trial := syncOn(t, plan, system.Options{
				"validate": "10ms", "m1": text(m1), "m2": text(m2), "m12": text(m12), "noise": text(between(0.05, 0.15)), "seed": strconv.Itoa(n + 1),
			})
			var obs []stats.FactorialObs
			for b := range blocks {
				for _, c := range plan.Cells {
					obs = append(obs, stats.FactorialObs{Levels: levels(c), Block: b, Value: trial(c, b)["sync_time"]})
				}
			}
			fit, err := stats.Factorial(factors, obs, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			truth := map[string]float64{
				"[f1]": m1 * math.Sqrt(m12), "[f2]": m2 * math.Sqrt(m12), "[index]": index, "[f1 f2]": m12, "[f1 index]": 1, "[f2 index]": 1,
			}
			wrong := false
			for _, e := range fit.Effects {
				var names []string
				for _, f := range e.Factors {
					names = append(names, factors[f].Name)
				}
				name := fmt.Sprint(names)
				if e.Ratio.Contains(truth[name]) {
					covered[name]++
				}
				if name == "[index]" && e.Ratio.Hi < 1 {
					faster++
				}
				wrong = wrong || truth[name] == 1 && e.PHolm <= 0.05
			}
			if wrong {
				false5++
			}
			gain, err := stats.BestGain(factors, obs, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			at := func(l []int) float64 {
				return math.Pow(m1, float64(l[0])) * math.Pow(m2, float64(l[1])) * math.Pow(m12, float64(l[0]*l[1])) * math.Pow(index, float64(l[2]))
			}
			if gain.Ratio.Contains(at(gain.To)) {
				covered["total"]++
			}
			best, err := stats.Best(factors, obs, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			truly := slices.MinFunc(best.Cells, func(a, b stats.BestCell) int {
				if at(a.Levels) < at(b.Levels) {
					return -1
				}
				return 1
			})
			if truly.Tied {
				kept++
			}
		}
	})
	if len(covered) != 7 {
		t.Errorf("effects: %v", covered)
	}
	for name, n := range covered {
		t.Logf("%s is covered in %d of %d experiments", name, n, experiments)
		if n < experiments*89/100 {
			t.Errorf("%s: that is not 95 %%", name)
		}
	}
	if faster > 0 {
		t.Errorf("with a subscriber it is said to be faster in %d experiments", faster)
	}
	if kept < experiments*89/100 || false5 > experiments*11/100 {
		t.Errorf("the truly best is kept in %d, an innocent is accused in %d", kept, false5)
	}
}

// TestSyncIsNoFasterThanItsLink, whatever the noise: with one peer and with more,
// of which each sends at its own rate.
func TestSyncIsNoFasterThanItsLink(t *testing.T) {
	plan := syncPlan(t, `
scenario: sync
systems: [{use: mem, with: {validate: 1ms, block: 2kB, noise: "0.5", spread: "0", timeout: 1m, m1: "0.01"}}]
sync:
  blocks: 500
  transactions: 1
  peers: [1, 3]
  speeds: [{list: [1Mbit]}, {list: [4Mbit, 16Mbit]}]
  vary: {f1: [low, high]}
`)
	scenariotest.Virtual(t, func(t *testing.T) {
		trial := syncOn(t, plan, nil)
		for _, c := range plan.Cells {
			for b := range 5 {
				m := trial(c, b)
				// They are asked one after the other, so the fastest bounds them.
				rate := 1e6
				if c.Sync.Speeds.String() != "list 1Mbit" {
					rate = 4e6
					if c.Sync.Peers > 1 {
						rate = 16e6
					}
				}
				least := 500 * 2000 * 8 / rate
				if m["chain_time"] < least || m["line"] > m["chain_time"]*1.1 {
					t.Errorf("%s: %v s, the link alone takes %v s", c.ID, m["chain_time"], least)
				}
			}
		}
	})
}

// TestSyncTimeoutIsAU: one peer answers in times that vary, one is silent. Too short
// a timeout loses answers, too long a one waits for the silent peer.
func TestSyncTimeoutIsAU(t *testing.T) {
	plan := syncPlan(t, `
scenario: sync
systems: [{use: mem, with: {rtt: 100ms, spread: "0.5", validate: 1ms}}]
sync:
  blocks: 300
  transactions: 1
  peers: 2
  trouble: [{silent: 1}]
  replay: false
  poll: 50ms
  vary: {timeout: [2s, 50ms, 150ms, 400ms]}
`)
	_, levels := varied(plan)
	times := make([][]float64, 4)
	scenariotest.Virtual(t, func(t *testing.T) {
		trial := syncOn(t, plan, nil)
		for b := range 5 {
			for _, c := range plan.Cells {
				m := trial(c, b)
				if m["useful_share"] != 0.5 || !(m["timeouts"] > 0) {
					t.Errorf("%v", m)
				}
				i := levels(c)[0]
				times[i] = append(times[i], m["sync_time"])
			}
		}
	})
	best := stats.Median(times[2])
	for i, took := range times {
		if i != 2 && !(stats.Median(took) > best) {
			t.Errorf("level %d takes %v s, 150ms takes %v s", i, stats.Median(took), best)
		}
	}
}
