package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Where throughput levels off at most one run in a hundred says that it falls; where it
// falls by a fifth at 4 % noise nearly every run does.
func TestFall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	said := func(truth func(n float64) float64) (times int) {
		for range 500 {
			var trials []Load
			for n := 1.0; n <= 64; n *= 2 {
				for range 6 {
					trials = append(trials, Load{n, truth(n) * math.Exp(0.04*rng.NormFloat64())})
				}
			}
			levels, p, err := Fall(trials)
			if err != nil || len(levels) != 7 || levels[6].N != 64 {
				t.Fatalf("%+v, %v", levels, err)
			}
			if p < 0.01 {
				times++
			}
		}
		return times
	}
	if n := said(func(n float64) float64 { return math.Min(n, 8) }); n > 10 {
		t.Errorf("a plateau falls in %d of 500 runs", n)
	}
	if n := said(func(n float64) float64 {
		return math.Min(n, 8) * map[bool]float64{false: 1,
			true: 0.8}[n > 32]
	}); n < 490 {
		t.Errorf("a fall of a fifth is seen in %d of 500 runs only", n)
	}
	for _, few := range [][]Load{nil, {{1, 2}, {1, 3}}, {{1, 2}, {2, 3}, {2, 4}}, {{1, 0}, {1, 1}, {2, 1}, {2, 2}}} {
		if _, _, err := Fall(few); err == nil {
			t.Errorf("%v: no error", few)
		}
	}
}
