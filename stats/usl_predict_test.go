package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func loadsOf(levels []float64, blocks int, noise, blockSD float64, rng *rand.Rand, ln func(n float64) float64) []Load {
	var all []Load
	for b := range blocks {
		block := blockSD * rng.NormFloat64()
		for _, n := range levels {
			all = append(all, Load{N: n, X: math.Exp(ln(n) + block + noise*rng.NormFloat64()), Block: b})
		}
	}
	return all
}

var fiveLevels = []float64{1, 8, 16, 32, 64}

// A trial at a concurrency that was not run lies in its interval as often as that
// says, for each of the laws, at the bounds of the parameters, too.
func TestThroughputPredictionsCoverWhatTheySay(t *testing.T) {
	for name, truth := range map[string]law{
		"coherency":    {level: 2, sigma: 0.05, kappa: 5e-4},
		"contention":   {level: 2, sigma: 0.1},
		"proportional": {level: 2},
	} {
		rng := rand.New(rand.NewPCG(3, 1))
		trials, in, cells, inside := 0, 0, 0, 0
		for i := range 250 {
			m := FitThroughput(loadsOf(fiveLevels, 5, 0.03, 0.02, rng, truth.log))
			for _, n := range []float64{3, 24, 48} {
				p := m.Predict(n, 1, 0.95)
				if !p.Bounded() {
					continue
				}
				trials++
				if p.Contains(math.Exp(truth.log(n) + 0.02*rng.NormFloat64() + 0.03*rng.NormFloat64())) {
					in++
				}
			}
			if i%2 > 0 {
				continue
			}
			for _, h := range m.HoldOut(0.95) {
				if h.Median.Bounded() {
					cells++
					if h.Median.Contains(h.Value) {
						inside++
					}
				}
			}
		}
		share, held := float64(in)/float64(trials), float64(inside)/float64(cells)
		t.Logf("%s: %.3f of %d trials, %.3f of %d held-out levels", name, share, trials, held, cells)
		if trials < 700 || cells < 300 || share < 0.93 || held < 0.93 {
			t.Errorf("%s: %.3f of %d trials and %.3f of %d held-out levels lie in their intervals of 95 %%", name, share, trials, held, cells)
		}
	}
}

func TestThroughputPredictionsAreRefused(t *testing.T) {
	law := law{level: 2, sigma: 0.1}
	for _, c := range []struct {
		levels []float64
		blocks int
		ln     func(float64) float64
		at     float64
		want   string
	}{
		{fiveLevels, 4, law.log, 24, ""},
		{fiveLevels, 4, law.log, 65, "a concurrency of 65 is outside of what was run, 1 to 64"},
		{fiveLevels[1:], 4, law.log, 2, "outside of what was run, 8 to 64"},
		{fiveLevels[:3], 4, law.log, 4, "3 levels of concurrency"},
		{fiveLevels, 1, law.log, 24, "a single trial"},
		{fiveLevels, 4, func(n float64) float64 {
			if n == 16 {
				return law.log(n) - 1
			}
			return law.log(n)
		}, 24, "the universal scalability law does not hold"},
	} {
		p := FitThroughput(loadsOf(c.levels, c.blocks, 0.02, 0, rand.New(rand.NewPCG(1, 1)), c.ln)).Predict(c.at, 1, 0.95)
		if (c.want == "") != p.Bounded() || !strings.Contains(p.Warn, c.want) {
			t.Errorf("%v at %v: %+v, want %q", c.levels, c.at, p, c.want)
		}
	}
}
