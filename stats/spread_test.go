package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// spreadNoises are what values may scatter like.
var spreadNoises = map[string]func(*rand.Rand) float64{
	"lognormal": func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) },
	"skewed":    func(r *rand.Rand) float64 { return 1 + r.ExpFloat64() },
	"heavy":     func(r *rand.Rand) float64 { return math.Exp(0.05 * r.NormFloat64() / math.Sqrt(r.ExpFloat64())) },
	"uniform":   func(r *rand.Rand) float64 { return 0.5 + r.Float64() },
}

// Where nothing changed but the median, a change of the spread may be found
// little more often than the level says, and less often than 5 % at half of it.
func TestSpreadFalsePositives(t *testing.T) {
	const pairs = 1500
	for name, draw := range spreadNoises {
		for _, n := range [][2]int{{6, 6}, {7, 7}, {10, 10}, {6, 12}, {16, 16}} {
			rng := rand.New(rand.NewPCG(11, uint64(n[0]*100+n[1])))
			found, half := 0, 0
			for range pairs {
				p := SpreadP(drawn(rng, n[0], 3, draw), drawn(rng, n[1], 1, draw))
				if p <= 0.05 {
					found++
				}
				if p <= 0.025 {
					half++
				}
			}
			if share := float64(found) / pairs; share > 0.085 {
				t.Errorf("%s, %d and %d values: %.1f %% of null pairs have p ≤ 0.05", name, n[0], n[1], 100*share)
			}
			if share := float64(half) / pairs; share > 0.05 {
				t.Errorf("%s, %d and %d values: %.1f %% of null pairs have p ≤ 0.025", name, n[0], n[1], 100*share)
			}
		}
	}
}

func TestSpreadIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	found := 0
	const pairs = 500
	for range pairs {
		xs := drawn(rng, 12, 1, func(r *rand.Rand) float64 { return math.Exp(0.3 * r.NormFloat64()) })
		ys := drawn(rng, 12, 1, func(r *rand.Rand) float64 { return math.Exp(0.05 * r.NormFloat64()) })
		if SpreadP(xs, ys) <= 0.05 && SpreadRatio(xs, ys) > 1 {
			found++
		}
	}
	if found < pairs*9/10 {
		t.Errorf("six times the spread was found in %d of %d pairs", found, pairs)
	}
	if p := SpreadP([]float64{1, 2, 3, 4, 5, 0}, []float64{1, 2, 3, 4, 5, 6}); !math.IsNaN(p) {
		t.Errorf("a value of 0 gave p = %v", p)
	}
}

func drawn(rng *rand.Rand, n int, scale float64, draw func(*rand.Rand) float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = scale * draw(rng)
	}
	return xs
}
