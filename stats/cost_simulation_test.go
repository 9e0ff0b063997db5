package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// costTruth is a system with known costs and known noise.
type costTruth struct {
	a, r, b  float64
	sizes    []float64
	rtts     []float64
	trials   int
	noise    float64                         // relative: standard deviation of the logarithm
	noiseOf  func(rtt, size float64) float64 // replaces noise
	floor    float64                         // seconds, additive
	outliers float64                         // share of trials that take 2 to 10 times as long
	misfit   float64                         // relative, of a cell: shared by all its replicates
	block    float64                         // relative, of a block: shared by all its cells
}

func (c costTruth) measure(rng *rand.Rand) []CostPoint {
	var points []CostPoint
	cell, blocks := 0, make([]float64, c.trials)
	for b := range blocks {
		blocks[b] = math.Exp(c.block * rng.NormFloat64())
	}
	for _, size := range c.sizes {
		for _, rtt := range c.rtts {
			noise := c.noise
			if c.noiseOf != nil {
				noise = c.noiseOf(rtt, size)
			}
			mid := (c.a + c.r*rtt + c.b*size) * math.Exp(c.misfit*rng.NormFloat64())
			for b, effect := range blocks {
				t := 0.0
				for !(t > 0) {
					t = effect*mid*math.Exp(noise*rng.NormFloat64()) + c.floor*rng.NormFloat64()
				}
				if rng.Float64() < c.outliers {
					t *= 2 + 8*rng.Float64()
				}
				points = append(points, CostPoint{RTT: rtt, Size: size, Time: t, Cell: cell, Block: b})
			}
			cell++
		}
	}
	return points
}

func milliseconds(ms ...float64) []float64 {
	for i := range ms {
		ms[i] /= 1000
	}
	return ms
}

// ladder returns n sizes from 1 B to 10 MB, evenly spaced in their logarithm.
func ladder(n int) []float64 {
	sizes := make([]float64, n)
	for i := range sizes {
		sizes[i] = math.Round(math.Pow(10, 7*float64(i)/float64(n-1)))
	}
	return sizes
}

// study returns the round trips of most experiments.
func study() []float64 { return milliseconds(0, 10, 20, 40, 80) }

// anyTruth draws costs in the range observed in storage systems: 0 to 800 ms, 0 to 9 round trips,
// 23 kB/s to 1 GB/s.
func anyTruth(rng *rand.Rand) costTruth {
	logUniform := func(from, to float64) float64 { return from * math.Pow(to/from, rng.Float64()) }
	c := costTruth{
		a: logUniform(0.2e-3, 0.8), r: float64(rng.IntN(10)), b: 1 / logUniform(23e3, 1e9),
		sizes: ladder(5 + rng.IntN(6)), rtts: study(), trials: 6,
		noise: 0.02 + 0.13*rng.Float64(), floor: 20e-6, outliers: 0.03,
	}
	if rng.IntN(5) == 0 && c.r > 0 { // no constant part; then a round trip must take time
		c.a, c.rtts[0] = 0, 5e-3
	}
	return c
}

func TestCostIntervalsCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	costsCover(t, "any truth", rng, func() costTruth { return anyTruth(rng) }, 0.93, 0.97)
}

// costsCover checks in which share of the repetitions the intervals of A, R and B contain the
// truth.
func costsCover(t *testing.T, name string, rng *rand.Rand, draw func() costTruth, lo, hi float64) {
	t.Helper()
	var a, r, b int
	for range repetitions {
		truth := draw()
		m, err := FitCost(truth.measure(rng), 0.95)
		if err != nil {
			t.Fatalf("%+v: %v", truth, err)
		}
		count(&a, m.A.Contains(truth.a))
		count(&b, m.B.Contains(truth.b))
		count(&r, m.R.Contains(truth.r))
	}
	within(t, name+": A", a, lo, hi)
	within(t, name+": R", r, lo, hi)
	within(t, name+": B", b, lo, hi)
}

func count(n *int, yes bool) {
	if yes {
		*n++
	}
}

// Designs and misfits that are not ideal.
func TestCostIntervalsCoverWhenItIsHard(t *testing.T) {
	t.Parallel()
	longer := func(rtt, _ float64) float64 {
		if rtt > 0 {
			return 0.01
		}
		return 0.1
	}
	larger := func(_, size float64) float64 {
		if size > 1e5 {
			return 0.15
		}
		return 0.02
	}
	for name, truth := range map[string]costTruth{
		"two round trips, three sizes, three trials": {sizes: ladder(3), rtts: milliseconds(5, 80), trials: 3,
			noise: 0.05},
		"nothing repeated": {sizes: ladder(6), rtts: study(), trials: 1, noise: 0.05},
		"cells off by 5 %, with their replicates": {sizes: ladder(8), rtts: study(), trials: 6, noise: 0.02,
			misfit: 0.05},
		"noise that is mostly additive": {sizes: ladder(7), rtts: study(), trials: 6, noise: 0.001,
			floor: 1e-3},
		"noise of the machine, not of the link": {sizes: ladder(8), rtts: study(), trials: 6, noiseOf: longer},
		"noise of large transfers":              {sizes: ladder(8), rtts: study(), trials: 6, noiseOf: larger},
		"blocks that differ by 5 %": {sizes: ladder(6), rtts: study(), trials: 6, noise: 0.05,
			block: 0.05},
		"blocks that differ by 10 %": {sizes: ladder(6), rtts: study(), trials: 6, noise: 0.05,
			block: 0.1},
	} {
		truth.a, truth.r, truth.b, truth.outliers = 0.05, 3, 1e-7, 0.03
		least := 0.91
		if truth.noiseOf != nil {
			least = 0.88 // six trials do not determine a cell's spread well
		}
		costsCover(t, name, rand.New(rand.NewPCG(2, 2)), func() costTruth { return truth }, least, 0.98)
	}
}

// Cells that deviate for other reasons than the noise of trials are detected.
func TestCostMisfitIsFound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	holds := 0
	for range repetitions {
		truth := costTruth{a: 0.05, r: 3, b: 1e-7, sizes: ladder(8), rtts: study(), trials: 6, noise: 0.02,
			misfit: 0.05, outliers: 0.03}
		m, err := FitCost(truth.measure(rng), 0.95)
		must(t, err)
		count(&holds, m.Holds)
	}
	within(t, "models with misfit are said to hold", holds, 0, 0.05)
}
