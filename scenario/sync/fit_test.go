package sync

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// knobs are options of a system that multiply what its nodes take by what is drawn.
const knobs = `
scenario: sync
systems: [fake]
sync:
  blocks: 1000
  transactions: 1
  form: v2
  replay: false
  poll: 5ms # the least: a trial is known this late, which is no part of the truth
  vary:
    f1: [low, high]
    f2: [low, high]
    index: [none, some]
`

// knobsPlan is an experiment on the fake.
func knobsPlan(t *testing.T) *experiment.Plan {
	t.Helper()
	spec := experiment.SystemSpec{Name: "fake", Modes: []string{"start"}, Follows: true}
	for name, levels := range map[string][]string{"f1": {"low", "high"}, "f2": {"low", "high"}, "index": {"none", "some"}} {
		spec.Options = append(spec.Options, experiment.OptionSpec{Name: name, Type: "enum", Enum: levels, Default: levels[0]})
	}
	e, err := experiment.Parse("test.yaml", []byte(knobs), nil, experiment.Catalog{spec})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

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

// From a node through the scenario to the analysis, again and again: main effects and
// the one interaction come back, with intervals that cover them as often as they
// promise, and so does what the waterfall says of the way to the best combination.
func TestSyncEffectsAreRecovered(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a hundred experiments")
	}
	const experiments, blocks = 100, 5
	plan := knobsPlan(t)
	factors, levels := varied(plan)
	if len(plan.Cells) != 8 || len(factors) != 3 {
		t.Fatalf("%d cells of %v", len(plan.Cells), factors)
	}
	covered := map[string]int{}
	faster, kept, false5 := 0, 0, 0
	scenariotest.Virtual(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(6, 6))
		for range experiments {
			between := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
			m1, m2, m12 := between(0.5, 0.9), between(0.7, 1.2), between(0.6, 0.9)
			index, noise := 1.2, between(0.05, 0.15)
			at := func(l []int) float64 {
				return math.Pow(m1, float64(l[0])) * math.Pow(m2, float64(l[1])) * math.Pow(m12, float64(l[0]*l[1])) * math.Pow(index, float64(l[2]))
			}
			var now []int // levels of the cell under way
			w := newSyncTest(t, 1, func(c *fakeChains, cell *experiment.Cell) {
				*cell = plan.Cells[0]
				c.opens, c.waits = 0, 0
				c.pace = func(system.Options) (validate, subscriber float64) {
					all := 2e-3 * at(now) * math.Exp(noise*rng.NormFloat64())
					validate = all / math.Pow(index, float64(now[2]))
					return validate, all - validate
				}
			})
			if err := w.prepare(plan.Cells...); err != nil {
				t.Fatal(err)
			}
			var obs []stats.FactorialObs
			for b := range blocks {
				for _, c := range plan.Cells {
					w.cell, w.number, now = c, b, levels(c)
					w.run()
					obs = append(obs, stats.FactorialObs{Levels: now, Block: b, Value: w.m["sync_time"]})
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
