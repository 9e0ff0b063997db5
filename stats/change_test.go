package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestChangeIsSeldomFalse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs, alpha = 300, 0.05
	n := 0
	for seed := range uint64(runs) {
		values := make([]float64, 8)
		for i := range values {
			values[i] = 10 + rng.NormFloat64()
		}
		values[4] = math.NaN()
		if _, p := Change(values, seed); p <= alpha {
			n++
		}
	}
	if n > 27 || n < 4 { // 5 % of 300 are 15, with a standard deviation of 3.8
		t.Errorf("%d changes in %d runs at %g", n, runs, alpha)
	}
}

func TestChange(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values       []float64
		change, most float64 // p: at most so much; NaN: there is none
	}{
		{[]float64{0, -0.05, -0.11, -0.15, -0.19, -0.25, -0.3}, -0.3, 0.001},
		{[]float64{0, 0.1, nan, 0.3, 0.4, 0.5, 0.6}, 0.6, 0.01},
		{[]float64{1, 1, 1, 1, 1, 1}, 0, 1},
		{[]float64{1, 2, 3, 4}, 3, nan},
		{[]float64{1, nan, nan, nan, nan}, 0, nan},
		{nil, 0, nan},
	} {
		change, p := Change(c.values, 1)
		if math.Abs(change-c.change) > 0.01 || math.IsNaN(p) != math.IsNaN(c.most) || p > c.most {
			t.Errorf("%v: change %g, p %g", c.values, change, p)
		}
	}
}
