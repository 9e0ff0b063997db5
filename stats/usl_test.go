package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/optimize"
)

// scalingRun is an experiment whose truth is known.
func scalingRun(rng *rand.Rand, levels []float64, trials int, noise, between float64, truth func(n float64) float64) []Load {
	var all []Load
	for b := range trials {
		block := math.Exp(between * rng.NormFloat64())
		for _, n := range levels {
			all = append(all, Load{N: n, X: truth(n) * block * math.Exp(noise*rng.NormFloat64()), Block: b})
		}
	}
	return all
}

func usl(lambda, sigma, kappa float64) func(float64) float64 {
	return func(n float64) float64 { return lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1)) }
}

var octaves = []float64{1, 2, 4, 8, 16, 32, 64}

// How often the intervals hold what is true: 300 experiments, few and many trials,
// blocks that differ.
func TestScalingCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const runs = 100
	for _, c := range []struct {
		sigma, kappa, between float64
		trials                int
	}{{0.05, 1e-3, 0, 4}, {0.02, 4e-3, 0.1, 8}, {0.15, 2e-3, 0.03, 6}} {
		held := map[string]int{}
		knees := 0
		for i := range runs {
			s, err := fitScaling(scalingRun(rng, octaves, c.trials, 0.04, c.between, usl(50e6, c.sigma, c.kappa)), 0.95, uint64(i), 200)
			if err != nil {
				t.Fatal(err)
			}
			for name, of := range map[string]struct {
				i     Interval
				truth float64
			}{"λ": {s.Lambda, 50e6}, "σ": {s.Sigma, c.sigma}, "κ": {s.Kappa, c.kappa}, "N*": {s.Peak, math.Sqrt((1 - c.sigma) / c.kappa)}} {
				if of.i.Contains(of.truth) {
					held[name]++
				}
			}
			if s.Knee {
				knees++
			}
		}
		t.Logf("σ %g, κ %g, %d trials: %v held of %d, %d knees", c.sigma, c.kappa, c.trials, held, runs, knees)
		for name, n := range held {
			if n < runs*88/100 {
				t.Errorf("σ %g, κ %g: the interval of %s held the truth in %d of %d", c.sigma, c.kappa, name, n, runs)
			}
		}
		// The peak of the first is so near the highest level that little falls beyond it.
		if c.kappa > 1e-3 && knees < runs*80/100 {
			t.Errorf("σ %g, κ %g: a knee was seen in %d of %d", c.sigma, c.kappa, knees, runs)
		}
	}
}

// Where nothing falls no knee is claimed.
func TestScalingWithoutAKnee(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	claimed, named, runs := 0, map[string]int{}, 0
	for i := range 320 {
		rate, noise := 30e6*math.Exp(rng.NormFloat64()), 0.01+0.1*rng.Float64()
		corner := 1 + 60*rng.Float64()
		truth := []func(float64) float64{
			func(n float64) float64 { return rate * n },
			func(n float64) float64 { return rate * min(n, corner) }, // a link is full
			usl(rate, 0.01+0.3*rng.Float64(), 0),
			func(float64) float64 { return rate },
		}[i%4]
		s, err := fitScaling(scalingRun(rng, octaves[rng.IntN(3):], 3+rng.IntN(6), noise, 0.05*rng.Float64(), truth), 0.95, uint64(i), 100)
		if err != nil {
			t.Fatal(err)
		}
		runs++
		named[s.Law]++
		if s.Knee {
			claimed++
			t.Logf("case %d: peak %+v, falls p %g, likelier %g, misfit %g", i%4, s.Peak, s.Falls, s.Likelier, s.Misfit)
		} else if s.Why == "" {
			t.Error("no knee, and no reason")
		}
	}
	t.Logf("%d knees in %d, laws %v", claimed, runs, named)
	if claimed*100 > runs {
		t.Errorf("a knee was claimed in %d of %d experiments without one", claimed, runs)
	}
}

func TestScalingNamesTheLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for want, truth := range map[string]func(float64) float64{Proportional: usl(1e6, 0, 0), Contention: usl(1e6, 0.1, 0), Coherency: usl(1e6, 0.05, 2e-3)} {
		right := 0
		for i := range 20 {
			s, err := fitScaling(scalingRun(rng, octaves, 5, 0.03, 0, truth), 0.95, uint64(i), 20)
			if err != nil {
				t.Fatal(err)
			}
			if s.Law == want {
				right++
			}
		}
		if right < 14 {
			t.Errorf("%s was named in %d of 20", want, right)
		}
	}
}

// The search finds what a general minimizer finds.
func TestScalingFindsTheLeastSquares(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 60 {
		truth := usl(1e6, 0.3*rng.Float64(), 0.01*rng.Float64())
		if i%3 == 0 {
			truth = func(n float64) float64 { return min(n, 10) }
		}
		levels, err := levelsOf(scalingRun(rng, octaves, 3, 0.1, 0, truth))
		if err != nil {
			t.Fatal(err)
		}
		means := meansOf(levels)
		ours := bestLaw(levels, means, true, true)
		least := math.Inf(1)
		for _, start := range [][]float64{{0.1, 0.1}, {0.5, 1}, {0.01, 3}} {
			res, _ := optimize.Minimize(optimize.Problem{Func: func(x []float64) float64 {
				return lawAt(levels, means, min(1, sq(x[0])), sq(x[1]/64)).ss
			}}, start, nil, &optimize.NelderMead{})
			least = min(least, res.F)
		}
		if ours.ss > least*(1+1e-3)+1e-9 {
			t.Errorf("case %d: squares %g, a simplex finds %g", i, ours.ss, least)
		}
	}
}

// What cannot be told is refused with a reason.
func TestScalingRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	truth := usl(1e6, 0.02, 4e-3) // the peak is at 15.7
	if _, err := FitScaling(scalingRun(rng, []float64{1, 8, 64}, 5, 0.02, 0, truth), 0.95, 1); err == nil {
		t.Error("three levels were fitted")
	}
	if _, err := FitScaling(scalingRun(rng, octaves, 1, 0.02, 0, truth), 0.95, 1); err == nil {
		t.Error("single trials were fitted")
	}
	if _, err := FitScaling([]Load{{1, math.NaN(), 0}}, 0.95, 1); err == nil {
		t.Error("a throughput that is no number was fitted")
	}
	for _, levels := range [][]float64{{1, 2, 4, 8, 12}, {32, 64, 128, 256}} {
		s, err := fitScaling(scalingRun(rng, levels, 6, 0.02, 0, truth), 0.95, 1, 200)
		if err != nil || s.Knee || s.Why == "" {
			t.Errorf("levels %v: a knee outside of them: %+v, %v", levels, s.Peak, err)
		}
	}
	// The same trials give the same numbers.
	trials := scalingRun(rng, octaves, 6, 0.02, 0, truth)
	a, _ := fitScaling(trials, 0.95, 1, 50)
	b, _ := fitScaling(trials, 0.95, 1, 50)
	if a.Peak != b.Peak || !a.Knee {
		t.Errorf("%+v, then %+v", a.Peak, b.Peak)
	}
	if got := a.At(8) / truth(8); math.Abs(got-1) > 0.05 {
		t.Errorf("the curve at 8 is off by %g", got)
	}
}
