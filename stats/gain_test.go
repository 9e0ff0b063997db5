package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestGainOfTheBest(t *testing.T) {
	factors := factorsOf(2, 2)
	var obs []FactorialObs
	for b := range 4 {
		for _, l := range [][]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
			// A halves the time, B multiplies it by 1.1, and each block by its own factor.
			v := math.Pow(0.5, float64(l[0])) * math.Pow(1.1, float64(l[1])) * math.Pow(3, float64(b)) * (1 +
				0.001*float64((b*7+l[0]*3+l[1])%5))
			obs = append(obs, FactorialObs{Levels: l, Block: b, Value: v})
		}
	}
	_, g, err := Best(factors, obs, 0.95, 0.99)
	if err != nil || math.Abs(g.Mid-0.5) > 0.005 || !g.Contains(0.5) || g.Hi-g.Lo > 0.02 {
		t.Errorf("%+v, %v", g, err)
	}
	if _, g, err := Best(factors, obs[1:2], 0.95, 0.99); err != nil || g.N != 0 {
		t.Error("a default without trials has a gain")
	}
}

// The interval of the gain contains the true gain of the combination that was observed as the
// lowest, with the promised confidence.
func TestGainOfTheBestCovers(t *testing.T) {
	for _, noise := range trialNoises {
		t.Run(noise.name, func(t *testing.T) {
			t.Parallel()
			w := world{factors: factorsOf(2, 3), main: [][]float64{{1, 0.98}, {1, 0.95, 0.97}}, blocks: 5, block: 0.2,
				noise: noise.draw}
			covered := share(15, func(r *rand.Rand, _ int) bool {
				obs := w.run(r)
				cells, g, err := Best(w.factors, obs, 0.95, 0.99)
				must(t, err)
				to := cells[0].Levels
				return slices.Equal(to, []int{0, 0}) || g.Contains(w.truth(to)/w.truth([]int{0, 0}))
			})
			atLeast(t, "covered", covered, 0.99)
		})
	}
}
