package stats

import (
	"math"
	"math/rand/v2"
	"strings"
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

// A single operation differs from its trial's median with a tail to long times.
func TestCostSingleOperationsAreCovered(t *testing.T) {
	t.Parallel()
	const perTrial, tail = 5, 0.15
	rng := rand.New(rand.NewPCG(22, 22))
	base := costTruth{a: 0.05, r: 3, b: 1e-7, sizes: ladder(6), rtts: study(), trials: 5, noise: 0.04}
	// operations of a trial that takes so long, and their median
	operations := func(trial float64) []float64 {
		var of []float64
		for range perTrial {
			of = append(of, trial*(0.95+tail*rng.ExpFloat64()))
		}
		return of
	}
	covered, short, long := 0, 0, 0
	const times = 400
	for range times {
		points := base.measure(rng)
		var singles []CostSingle
		for i := range points {
			of := operations(points[i].Time)
			points[i].Time = Median(of)
			for _, one := range of {
				singles = append(singles, CostSingle{one, points[i].Time})
			}
		}
		m, err := FitCost(points, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		cell := base
		cell.sizes, cell.rtts, cell.trials = []float64{3e5}, []float64{0.06}, 1
		one := operations(cell.measure(rng)[0].Time)[0]
		i := m.PredictSingle(0.06, 3e5, singles, 0.95)
		count(&covered, i.Contains(one))
		count(&short, one < i.Lo)
		count(&long, one > i.Hi)
	}
	t.Logf("covered %d of %d, below %d, above %d", covered, times, short, long)
	if covered < times*92/100 || covered > times*99/100 {
		t.Errorf("%d of %d operations are in their interval (%d below, %d above)", covered, times, short, long)
	}
}

func TestCostPredictionsAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 23))
	m, err := FitCost(costTruth{a: 0.05, r: 3, b: 1e-7, sizes: []float64{1e3, 1e4, 1e5, 1e6}, rtts: milliseconds(10, 40, 80), trials: 5, noise: 0.03}.measure(rng), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	slow := costTruth{a: 0.005, rOf: steps(1, 15e3, 3), b: 1e-8, sizes: []float64{1, 100, 1e3, 1e4, 3e4, 1e5, 3e5, 1e6}, rtts: study(), trials: 6, noise: 0.03}
	segments, err := FitCost(slow.measure(rng), 0.95)
	if err != nil || len(segments.Segments) != 2 {
		t.Fatalf("%+v, %v", segments.Segments, err)
	}
	near, err := FitCost(costTruth{a: 0.05, r: 3, b: 1e-7, sizes: []float64{1e3, 1e4, 1e5, 1e6}, rtts: milliseconds(10), trials: 5, noise: 0.03}.measure(rng), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model     CostModel
		rtt, size float64
		want      string // empty: it answers
	}{
		{m, 0.04, 5e5, ""},
		{m, 0.086, 1.09e6, ""},
		{m, 0.04, 2e6, "a size of 2 MB is outside of what the fit rests on, 1 kB to 1 MB"},
		{m, 0.04, 800, "outside"},
		{m, 0.12, 1e5, "a round trip of 120 ms is outside of what the fit rests on, 10 ms to 80 ms"},
		{m, 0, 1e5, "a round trip of 0 ms is outside"},
		{segments, 0.04, 2e4, "between 10 kB and 30 kB, where the cost of a round trip changes"},
		{segments, 0.04, 5e4, ""},
		{near, 0.01, 5e5, ""},
		{near, 0.02, 5e5, "10 ms alone"},
		{CostModel{}, 0.02, 5e5, "nothing was fitted"},
	} {
		i := c.model.PredictInterval(c.rtt, c.size, 1, 0.95)
		if i.Bounded() != (c.want == "") || !strings.Contains(i.Warn, c.want) {
			t.Errorf("%v s, %v bytes: %+v, want %q", c.rtt, c.size, i, c.want)
		}
	}
}

// Held-out cells lie in their intervals as often as these say, and a cell that
// is off is found.
func TestCostHoldsOut(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(24, 24))
	truth := costTruth{a: 0.05, r: 3, b: 1e-7, sizes: ladder(5), rtts: milliseconds(5, 20, 80), trials: 5, noise: 0.05, outliers: 0.03}
	cells, inside, trials, insideTrials, found := 0, 0, 0, 0, 0
	const times = 25
	for range times {
		points := truth.measure(rng)
		held, err := HoldOutCost(points, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if len(held) != 15 {
			t.Fatalf("%d cells held out of 15", len(held))
		}
		for _, h := range held {
			if !h.Median.Bounded() {
				continue
			}
			cells++
			trials += h.Trials
			insideTrials += h.Inside
			count(&inside, h.Median.Contains(h.Time))
		}
		for i := range points {
			if points[i].Cell == 7 {
				points[i].Time *= 2
			}
		}
		held, err = HoldOutCost(points, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range held {
			if h.Cell == 7 && h.Time > h.Median.Hi {
				found++
			}
		}
	}
	t.Logf("%d of %d cells, %d of %d trials, the odd one in %d of %d", inside, cells, insideTrials, trials, found, times)
	if cells < times*15*95/100 || inside < cells*92/100 || insideTrials < trials*92/100 || insideTrials > trials*99/100 {
		t.Errorf("%d of %d cells and %d of %d trials are in their intervals", inside, cells, insideTrials, trials)
	}
	if found < times*95/100 {
		t.Errorf("a cell that takes twice as long was found in %d of %d", found, times)
	}
}
