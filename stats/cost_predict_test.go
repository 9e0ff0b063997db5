package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// place is where in its range something is predicted.
type place struct {
	name string
	at   func(rng *rand.Rand, c costTruth) (rtt, size float64)
}

func places() []place {
	between := func(rng *rand.Rand, from, to float64) float64 { return from + (to-from)*rng.Float64() }
	ends := func(v []float64) (float64, float64) { return v[0], v[len(v)-1] }
	return []place{
		{"inside", func(rng *rand.Rand, c costTruth) (float64, float64) {
			near, far := ends(c.rtts)
			small, large := ends(c.sizes)
			return between(rng, near, far), small * math.Pow(large/small, rng.Float64())
		}},
		{"at the farthest and largest", func(_ *rand.Rand, c costTruth) (float64, float64) {
			return c.rtts[len(c.rtts)-1], c.sizes[len(c.sizes)-1]
		}},
		{"at the nearest and smallest", func(_ *rand.Rand, c costTruth) (float64, float64) {
			return c.rtts[0], c.sizes[0]
		}},
		{"beyond, by the margin", func(_ *rand.Rand, c costTruth) (float64, float64) {
			near, far := ends(c.rtts)
			return far + 0.099*(far-near), 1.099 * c.sizes[len(c.sizes)-1]
		}},
	}
}

// A prediction interval at 95 % has the new trial, and the median of six of
// them, in 95 % of experiments: also where the range ends.
func TestCostPredictionsCover(t *testing.T) {
	t.Parallel()
	base := costTruth{a: 0.05, r: 3, b: 1e-7, sizes: ladder(6), rtts: study(), trials: 5, noise: 0.06, outliers: 0.03}
	small, misfit, additive, uneven, steep := base, base, base, base, base
	small.sizes, small.rtts, small.trials = ladder(4), milliseconds(5, 20, 80), 3
	misfit.misfit, misfit.noise = 0.05, 0.02
	additive.noise, additive.floor = 0.001, 1e-3
	uneven.sizes, uneven.trials = ladder(8), 6
	uneven.noiseOf = func(_, size float64) float64 {
		if size > 1e5 {
			return 0.15
		}
		return 0.02
	}
	steep.rOf, steep.sizes, steep.outliers = steps(0, 56, 3), []float64{1, 10, 40, 55, 56, 100, 1e3, 1e4, 1e5, 1e6, 1e7}, 0
	for name, c := range map[string]struct {
		truth costTruth
		least float64 // share covered
	}{
		"the usual":                     {base, 0.92},
		"few cells, three trials":       {small, 0.90},
		"cells off by 5 %":              {misfit, 0.91},
		"additive noise":                {additive, 0.92},
		"noisier where it is large":     {uneven, 0.88},
		"objects that stay, up to 55 B": {steep, 0.92},
	} {
		rng := rand.New(rand.NewPCG(21, 21))
		const times = 250
		all := places()
		single, median, asked := make([]int, len(all)), make([]int, len(all)), make([]int, len(all))
		for range times {
			points := c.truth.measure(rng)
			m, err := FitCost(points, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range all {
				rtt, size := p.at(rng, c.truth)
				one := m.PredictInterval(rtt, size, 1, 0.95)
				if !one.Bounded() {
					continue
				}
				asked[i]++
				cell := c.truth
				cell.sizes, cell.rtts, cell.trials = []float64{size}, []float64{rtt}, 6
				var got []float64
				for _, p := range cell.measure(rng) {
					got = append(got, p.Time)
				}
				count(&single[i], one.Contains(got[0]))
				count(&median[i], m.PredictInterval(rtt, size, 6, 0.95).Contains(Median(got)))
			}
		}
		for i, p := range all {
			one, six := float64(single[i])/float64(asked[i]), float64(median[i])/float64(asked[i])
			t.Logf("%s, %s: %d asked, trial %.3f, median of six %.3f", name, p.name, asked[i], one, six)
			if asked[i] < 200 {
				t.Errorf("%s, %s: only %d of %d were answered", name, p.name, asked[i], times)
			}
			if one < c.least || six < c.least {
				t.Errorf("%s, %s: a trial is covered in %.3f, the median of six in %.3f", name, p.name, one, six)
			}
		}
	}
}
