package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSlope(t *testing.T) {
	x, y := upTo(12), make([]float64, 12)
	for i := range x {
		y[i] = 3 - 0.5*x[i]
	}
	y[4] = 1e9 // one point that is far off
	s := Slope(x, y, 0.95)
	if s.Mid != -0.5 || !s.Contains(-0.5) || !s.Bounded() || !s.Exact || s.Conf < 0.95 || s.N != 12 || s.Warn != "" {
		t.Errorf("%+v", s)
	}
}

// Shares of permutations that can be counted by hand.
func TestSlopeExactConfidence(t *testing.T) {
	for _, c := range []struct {
		n, k int
		conf float64
	}{
		{4, 0, 0},            // 1 − 2/24 is too little
		{5, 1, 1 - 2./120},   // the identity alone
		{6, 2, 1 - 2*6./720}, // and its 5 neighbours; with two inversions 20: too many
	} {
		k, kept := slopeOrderExact(c.n, 0.95)
		if k != c.k {
			t.Errorf("n=%d: k=%d, want %d", c.n, k, c.k)
		}
		near(t, fmt.Sprint("confidence of ", c.n), kept, c.conf)
	}
	// The approximation meets the exact count where it begins to be used.
	exact, _ := slopeOrderExact(exactLimit, 0.95)
	normal := slopeOrderNormal(upTo(exactLimit), exactLimit*(exactLimit-1)/2, 0.95)
	if d := exact - normal; d < -3 || d > 3 {
		t.Errorf("exact k=%d, approximately %d", exact, normal)
	}
}

func TestSlopeOfTooFew(t *testing.T) {
	for n := 2; n < 6; n++ {
		s := Slope(upTo(n), upTo(n), 0.95)
		if s.Mid != 1 || !strings.Contains(s.Warn, fmt.Sprintf("%d points", n)) || s.Bounded() != (n == 5) {
			t.Errorf("n=%d: %+v", n, s)
		}
	}
	for name, s := range map[string]Interval{
		"0 points":   Slope(nil, nil, 0.95),
		"all at one": Slope([]float64{2, 2, 2, 2, 2, 2, 2}, upTo(7), 0.95),
		"7 values":   Slope(upTo(7), upTo(6), 0.95),
		"finite":     Slope(upTo(7), []float64{1, 2, 3, math.NaN(), 5, 6, 7}, 0.95),
		"not finite": Slope([]float64{1, 2, 3, math.Inf(1), 5, 6, 7}, upTo(7), 0.95),
		"confidence": Slope(upTo(7), upTo(7), 1),
	} {
		if s.Bounded() || !math.IsNaN(s.Mid) || !strings.Contains(s.Warn, name) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestSlopeIntervalCovers(t *testing.T) {
	const slope = -2.5
	for _, shape := range shapes {
		for _, c := range []struct {
			n    int
			x    func(i int) float64
			name string
		}{
			{6, func(i int) float64 { return float64(i) }, "different x"},
			{12, func(i int) float64 { return float64(i * i) }, "different x"},
			{60, func(i int) float64 { return float64(i) }, "different x"},
			{30, func(i int) float64 { return float64(i / 6) }, "tied x"},
		} {
			said := 0.0
			covered := share(9, func(r *rand.Rand, _ int) bool {
				x, y := make([]float64, c.n), make([]float64, c.n)
				for i := range x {
					x[i] = c.x(i)
					y[i] = slope*x[i] + shape.draw(r)
				}
				s := Slope(x, y, 0.95)
				said = s.Conf
				return s.Contains(slope)
			})
			if math.Abs(covered-said) > simulationError(said)+0.005 {
				t.Errorf("%s, n=%d, %s: covers %.4f, says %.4f", shape.name, c.n, c.name, covered, said)
			}
		}
	}
	// Ties among y, such as of a coarse clock: never narrower.
	covered := share(10, func(r *rand.Rand, _ int) bool {
		y := make([]float64, 15)
		for i := range y {
			y[i] = float64(r.IntN(3))
		}
		return Slope(upTo(15), y, 0.95).Contains(0)
	})
	if covered < 0.95-simulationError(0.95) {
		t.Errorf("tied y: covers %.4f", covered)
	}
}

// Of values with an autocorrelation that do not rise, few are said to; a rise is found.
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
	for what, n := range map[string]int{"rise": rises, "fall": falls} {
		if share := float64(n) / repetitions; math.Abs(share-0.05) > simulationError(0.05) {
			t.Errorf("%.3f without a slope %s", share, what)
		}
	}
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
