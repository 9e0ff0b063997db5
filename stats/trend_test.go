package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSlope(t *testing.T) {
	x, y := upTo(12), make([]float64, 12)
	for i := range x {
		y[i] = 3 - 0.5*x[i]
	}
	y[4] = 1e9 // one outlier
	for _, i := range []Interval{TrendSlope(x, y, 0.5, 0.95),
		BlockSlope(x, y, []int{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, 0.95)} {
		if i.Mid != -0.5 || !i.Contains(-0.5) || !i.Bounded() || i.Conf != 0.95 || i.N != 12 {
			t.Errorf("%+v", i)
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct{ x, y []float64 }{
		{nil, nil}, {[]float64{2, 2, 2, 2, 2}, upTo(5)}, {upTo(5), []float64{1, 2, nan, 4, 5}},
		{upTo(5), []float64{inf, inf, 3, 4, 5}},
	} {
		trend, blocks := TrendSlope(c.x, c.y, 0.5, 0.95), BlockSlope(c.x, c.y, make([]int, len(c.x)), 0.95)
		if !math.IsNaN(trend.Mid) || trend.Bounded() || !math.IsNaN(blocks.Mid) ||
			blocks.Bounded() {
			t.Errorf("%v over %v: %+v, %+v", c.y, c.x, trend, blocks)
		}
	}
	for n := 2; n < 6; n++ { // all in one block
		trend, blocks := TrendSlope(upTo(n), upTo(n), 0.5, 0.95), BlockSlope(upTo(n), upTo(n), make([]int, n), 0.95)
		if trend.Mid != 1 || trend.Bounded() != (n >= 4) || blocks.Mid != 1 || blocks.Bounded() {
			t.Errorf("%d points: %+v, %+v", n, trend, blocks)
		}
	}
}

// The interval contains the truth if a block is incomplete and far from the others, and is the same
// in each call.
func TestBlockSlopeOfAnIncompleteBlock(t *testing.T) {
	for _, left := range []int{1, 2} { // sizes of the last of eight blocks
		covered := share(uint64(left), func(r *rand.Rand, _ int) bool {
			var x, y []float64
			var blocks []int
			for b := range 8 {
				shift, sizes := 2*r.NormFloat64(), 3
				if b == 7 {
					shift, sizes = 20, left
				}
				for _, size := range []float64{4, 2, 1}[:sizes] {
					x, y = append(x, size), append(y, 3*size+shift+r.NormFloat64())
					blocks = append(blocks, b)
				}
			}
			i := BlockSlope(x, y, blocks, 0.95)
			for range 5 {
				if again := BlockSlope(x, y, blocks, 0.95); again != i {
					t.Fatalf("%+v, then %+v", i, again)
				}
			}
			return i.Contains(3)
		})
		t.Logf("%d sizes left: covers in %.3f", left, covered)
		about(t, "covers", covered, 0.95)
	}
}

// Autocorrelated values without a trend seldom count as rising; a rise is found.
func TestRising(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	series := func(slope float64) float64 {
		x, y, last := upTo(8), make([]float64, 8), rng.NormFloat64()
		for i := range y {
			last = 0.5*last + math.Sqrt(0.75)*rng.NormFloat64()
			y[i] = slope*x[i] + last
		}
		return Rising(x, y, 0.5)
	}
	var rises, falls, found int
	for range repetitions {
		p := series(0)
		count(&rises, p <= 0.05)
		count(&falls, 1-p <= 0.05)
		count(&found, series(2) <= 0.05)
	}
	about(t, "without a slope rises", float64(rises)/float64(repetitions), 0.05)
	about(t, "without a slope falls", float64(falls)/float64(repetitions), 0.05)
	if found < repetitions*9/10 {
		t.Errorf("of %d rises %d are found", repetitions, found)
	}
	if p := Rising(upTo(3), upTo(3), 0.5); !math.IsNaN(p) {
		t.Errorf("three values have p = %v", p)
	}
	if p := Rising([]float64{1, 1, 1, 1}, upTo(4), 0.5); !math.IsNaN(p) {
		t.Errorf("values at one x have p = %v", p)
	}
}

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
