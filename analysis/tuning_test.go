package analysis_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/sync"
)

const knobs = `
scenario: sync
systems: [ledger]
link: {rate: 50Mbit, delay: 10ms}
sync: {blocks: 3000, peers: [4], storage: [disk, ram], vary: {batch: [100, 10], subscriber: [full, none]}}
repetitions: 2
warmup: 0
`

// tuned is a run in which a node without a subscriber serves after 0.4 of the time, and one on
// a RAM disk after 0.6, if it has a subscriber.
func tuned(t *testing.T, file string, change func(disk, full bool, tr *record.Trial)) *analysis.Result {
	t.Helper()
	plan := simulatedPlan(t, file)
	rng := rand.New(rand.NewPCG(13, 13))
	var trials []record.Trial
	for block := range plan.Blocks {
		common := math.Exp(0.05 * rng.NormFloat64())
		for _, c := range plan.Cells {
			is := func(path, value string) bool {
				return slices.ContainsFunc(c.Factors,
					func(f experiment.Factor) bool { return f.Path == path && f.Value == value })
			}
			disk, full, took := is("sync.storage", "disk"), is("sync.vary.subscriber", "full"), 14*common
			if !full {
				took *= 0.4
			} else if !disk {
				took *= 0.6
			}
			took *= math.Exp(0.02 * rng.NormFloat64())
			tr := trialOf(c, block, len(trials), 2,
				map[string]float64{"sync_time": took, "first_block": 1.4, "ok_rate": 1})
			tr.Seconds = took + 1
			change(disk, full, &tr)
			trials = append(trials, tr)
		}
	}
	s := sync.Scenario{}
	return analysed(t, plan, s.View(), s.Metrics(), trials)
}

// With two repetitions no configuration is significantly faster, and knobs are, of which there
// are more trials: the verdict does not contradict their table.
func TestVerdictNamesEffects(t *testing.T) {
	r := tuned(t, knobs, func(disk, full bool, tr *record.Trial) {
		if disk && full && tr.Block == 1 {
			tr.Metrics["sync_time"] /= 2
		}
	})
	effects, named := r.Table("effects"), 0
	for i := range effects.Rows {
		if effects.Get(i, "kind").Text == "main" && effects.Get(i, "result").Text == "faster" {
			named++
			if name := effects.Get(i, "effect").Text; !strings.Contains(r.Verdict.Text, name) {
				t.Errorf("%s is faster, verdict %q", name, r.Verdict.Text)
			}
		}
	}
	if named == 0 || !strings.HasPrefix(r.Verdict.Text, "No configuration is significantly faster") {
		t.Errorf("%d effects, verdict %q", named, r.Verdict.Text)
	}
}

// Where `where` leaves out the default, the first configuration that remains takes its place.
func TestKnobsWithoutTheirDefault(t *testing.T) {
	file := knobs + "where: [\"sync.storage == ram || sync.vary.subscriber == none\"]\n"
	r := tuned(t, file, func(bool, bool, *record.Trial) {})
	best := r.Table("best")
	if len(r.Cells) != 6 || len(best.Rows) != 1 || best.Get(0, "gain").Text != "" {
		t.Errorf("%d cells, best %+v", len(r.Cells), best)
	}
	for i, c := range r.Cells {
		if c.Baseline != (i == 0) || (len(c.Ratios) > 0) != (i > 0) {
			t.Errorf("cell %d: %s is the default: %t, compared: %+v", i, c.ID, c.Baseline, c.Ratios)
		}
	}
}

// A node has its first block before it serves, in every row: both medians are over the same
// trials, also where some never came to serve.
func TestTimesOfACellHaveOneStatistic(t *testing.T) {
	r := tuned(t, strings.Replace(knobs, "repetitions: 2", "repetitions: 6", 1), func(disk, _ bool, tr *record.Trial) {
		if tr.Block%2 == 0 { // slow to begin
			tr.Metrics["first_block"], tr.Metrics["sync_time"] = 13, 15
		}
		if tr.Block == 2 && !disk {
			delete(tr.Metrics, "sync_time")
			tr.Outcomes = map[string]int64{"deadline": 2}
		}
	})
	for _, c := range r.Cells {
		first, serve := c.Metrics["first_block"], c.Metrics["sync_time"]
		if !first.Median.Known() || !(first.Median <= serve.Median) || first.N != serve.N {
			t.Errorf("%s: first block %v of %d trials, serving %v of %d and %d more", c.ID, first.Median, first.N,
				serve.Median, serve.N, serve.Censored)
		}
	}
}
