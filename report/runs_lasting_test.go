package report

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// A process that lives through a run has one peak of memory, at which all trials
// look. Two runs of one program differ in it, and nothing may be claimed of that.
func TestMemoryOfOneProcessIsOneValue(t *testing.T) {
	of := func(peak float64, seed uint64) fakeRun {
		rng := rand.New(rand.NewPCG(seed, 5))
		return fakeRun{seed: seed, trials: 8, value: scattered(1), trial: func(tr *record.Trial) {
			tr.Metrics["system_rss_peak"] = peak * math.Exp(0.003*rng.NormFloat64())
		}}
	}
	c := comparedRuns(t, RunOptions{Metrics: []string{"system_rss_peak"}}, of(47e6, 1), of(49e6, 2))
	seen := 0
	for _, cell := range c.Cells {
		v := cell.Metrics["system_rss_peak"].New[0]
		if q := v.Ratio; q.Shown || q.P.Known() || q.Lo.Known() || !strings.Contains(q.Warn, "one process") || math.Abs(float64(q.Value)-49.0/47) > 0.01 {
			t.Errorf("%+v", q)
		}
		seen++
	}
	if seen != 6 {
		t.Errorf("%d cells", seen)
	}
	for _, o := range c.Overall {
		if o.Metric == "system_rss_peak" && (o.Shown || o.Worth != 0 || o.P.Known() || o.NotShown != 6) {
			t.Errorf("%+v", o)
		}
	}
	text := comparedText(t, c)
	if !strings.Contains(strings.Join(strings.Fields(text), " "), "one process lived through all trials") {
		t.Error(text)
	}
	must(t, c.Hold([]string{"system_rss_peak no worse than BASE by 2%"}))
	for _, g := range c.Gates {
		if g.State != RuleOpen || !strings.Contains(g.Cells[0].Why, "one process") {
			t.Errorf("%+v", g)
		}
	}
	if len(c.Gates) != 1 {
		t.Errorf("%d rulings", len(c.Gates))
	}
}
