package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// trialNoises are the factors by which noise multiplies a trial's value.
var trialNoises = []struct {
	name   string
	lo, hi float64 // limits of the share of 95 % intervals that cover the truth
	draw   func(r *rand.Rand, levels []int) float64
}{
	{"normal", 0.93, 0.97, func(r *rand.Rand, _ []int) float64 { return max(1+0.1*r.NormFloat64(), 0.1) }},
	{"lognormal", 0.93, 0.97, lognormal(0.3)},
	// Documented: wider than necessary if noise differs much or has heavy tails.
	{"unequal", 0.93, 0.99, func(r *rand.Rand, l []int) float64 {
		return math.Exp([]float64{0.02, 0.3, 0.1}[l[1]] * r.NormFloat64())
	}},
	{"pareto", 0.93, 0.98, func(r *rand.Rand, _ []int) float64 { return math.Pow(1-r.Float64(), -0.2) }},
	// Its variance is infinite.
	{"student's t with two degrees of freedom", 0.93, 0.99,
		func(r *rand.Rand, _ []int) float64 {
			return math.Exp(0.1 * r.NormFloat64() / math.Sqrt(r.ExpFloat64()))
		}},
}

// TestFactorialIntervalsCover tests the interval of each effect, with five blocks of 2 × 2 × 2
// combinations, and of 2 × 3 × 2 with a tenth of the trials lost.
func TestFactorialIntervalsCover(t *testing.T) {
	for _, noise := range trialNoises {
		for _, c := range []struct {
			levels []int
			lost   float64
		}{{[]int{2, 2, 2}, 0}, {[]int{2, 3, 2}, 0.1}} {
			t.Run(fmt.Sprint(noise.name, c), func(t *testing.T) {
				t.Parallel()
				w := trio()
				w.factors, w.blocks, w.block, w.noise = factorsOf(c.levels...), 5, 0.2, noise.draw
				w.lost = func(r *rand.Rand, _ []int, _ int) bool { return r.Float64() < c.lost }
				var truth []float64
				var covered []int
				share(11, func(r *rand.Rand, _ int) bool {
					for i, e := range factorial(t, w, w.run(r)).Effects {
						if i == len(truth) {
							truth, covered = append(truth, w.expected(e)), append(covered, 0)
						}
						count(&covered[i], e.Ratio.Contains(truth[i]))
					}
					return true
				})
				for i, n := range covered {
					within(t, fmt.Sprint("effect ", i), n, noise.lo, noise.hi)
				}
			})
		}
	}
}

// TestFactorialAccusesNoInnocent has one real effect. In at most 5 % of the experiments, any of the
// others may be significant after Holm.
func TestFactorialAccusesNoInnocent(t *testing.T) {
	for _, noise := range trialNoises {
		t.Run(noise.name, func(t *testing.T) {
			t.Parallel()
			w := world{
				factors: factorsOf(2, 3, 2), main: [][]float64{{1, 0.5}, {1, 1, 1}, {1, 1}}, blocks: 5, block: 0.2,
				noise: noise.draw,
			}
			found := 0
			wrong := share(12, func(r *rand.Rand, _ int) bool {
				effects := factorial(t, w, w.run(r)).Effects
				count(&found, effects[0].PHolm <= 0.05)
				return slices.ContainsFunc(effects[1:], func(e FactorialEffect) bool { return e.PHolm <= 0.05 })
			})
			atMost(t, "an innocent is accused", wrong, 0.05)
			if found < repetitions*95/100 {
				t.Errorf("a halving is found in %d of %d", found, repetitions)
			}
		})
	}
}
