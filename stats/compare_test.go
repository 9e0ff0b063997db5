package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// If throughput reaches a plateau, at most one run in a hundred reports a fall. If it falls by a
// fifth, with 4 % noise, nearly every run does.
func TestFall(t *testing.T) {
	said := func(at64 float64) float64 {
		return share(1, func(r *rand.Rand, _ int) bool {
			var trials []Load
			for n := 1.0; n <= 64; n *= 2 {
				truth := math.Min(n, 8)
				if n == 64 {
					truth = at64
				}
				for range 6 {
					trials = append(trials, Load{n, truth * math.Exp(0.04*r.NormFloat64())})
				}
			}
			levels, p := Fall(trials)
			if len(levels) != 7 || levels[6].N != 64 {
				t.Fatalf("%+v, %v", levels, p)
			}
			return p < 0.01
		})
	}
	atMost(t, "a plateau falls", said(8), 0.01)
	if p := said(8 * 0.8); p < 0.98 {
		t.Errorf("a fall of a fifth is seen in %.4f of runs only", p)
	}
	for _, few := range [][]Load{nil, {{1, 2}, {1, 3}}, {{1, 2}, {2, 3}, {2, 4}}} {
		if _, p := Fall(few); !math.IsNaN(p) {
			t.Errorf("%v: %v", few, p)
		}
	}
}
