package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestChangeIsSeldomFalse(t *testing.T) {
	said := share(1, func(r *rand.Rand, i int) bool {
		values := sample(r, 8, shapes[0].draw)
		values[4] = math.NaN()
		_, p := Change(values, uint64(i))
		return p <= 0.05
	})
	about(t, "runs without a change have one", said, 0.05)
}

func TestChange(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values       []float64
		change, most float64 // most: upper limit of p; NaN: p is NaN
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
