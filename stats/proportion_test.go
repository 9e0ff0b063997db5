package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func TestConcentrated(t *testing.T) {
	of := func(failures ...float64) (all []Count) {
		for _, f := range failures {
			all = append(all, Count{K: 1000 - f, N: 1000})
		}
		return all
	}
	for _, c := range []struct {
		clusters []Count
		want     bool
	}{
		{of(0, 0, 0, 0, 0, 0), false},
		{of(1, 0, 0, 0, 0, 0), false},
		{of(2, 0, 0, 0, 0, 0), false}, // by chance: 1 in 6
		{of(5, 0, 0, 0, 0, 0), true},
		{of(5, 4, 6, 5, 4, 6), false},
		{of(50, 3, 2, 4, 3, 2), true},
		{of(50, 20, 20, 20, 20, 20), false},                                      // not most failures
		{[]Count{{K: 9000, N: 9100}, {K: 100, N: 101}, {K: 100, N: 101}}, false}, // also has most operations
	} {
		if got := Concentrated(c.clusters); got != c.want {
			t.Errorf("%v: %t", c.clusters, got)
		}
	}
}

// With a true rate of 98.9 % and a gate of 99.1 %, each pass is false. If trials differ in a skewed
// way, passes with most failures in one trial must be withdrawn.
func TestConcentratedTakesFalsePassesBack(t *testing.T) {
	const n, failing, limit = 1000, 0.011, 0.991
	rates := map[string]func(rng *rand.Rand) float64{
		"all alike":       func(*rand.Rand) float64 { return failing },
		"skewed, sigma 1": func(rng *rand.Rand) float64 { return failing * math.Exp(rng.NormFloat64()-0.5) },
		"skewed, sigma 2": func(rng *rand.Rand) float64 {
			return min(1, failing*math.Exp(2*rng.NormFloat64()-2))
		},
		"1 trial of 10 is bad":  func(rng *rand.Rand) float64 { return either(rng, 0.1, 0.08, 0.003333) },
		"1 trial of 100 is bad": func(rng *rand.Rand) float64 { return either(rng, 0.01, 0.8, 0.00303) },
	}
	for _, m := range []int{6, 20} {
		for name, rate := range rates {
			rng := rand.New(rand.NewPCG(uint64(m), 7))
			before, after, honest := 0, 0, 0
			for range repetitions {
				clusters, good := make([]Count, m), make([]Count, m)
				for i := range clusters {
					clusters[i] = Count{K: n - distuv.Binomial{N: n, P: rate(rng), Src: rng}.Rand(), N: n}
					good[i] = Count{K: n - distuv.Binomial{N: n, P: 0.003, Src: rng}.Rand(), N: n}
				}
				passes := ClusteredProportion(clusters, false, 0.90).Lo >= limit
				count(&before, passes)
				count(&after, passes && !Concentrated(clusters))
				count(&honest, Concentrated(good))
			}
			what := fmt.Sprintf("%d trials, %s: ", m, name)
			if name == "skewed, sigma 2" && m == 6 && after == before || after > before {
				t.Errorf("%s%d false passes before, %d after", what, before, after)
			}
			within(t, what+"good trials are taken for concentrated", honest, 0, 0.02)
			if name == "all alike" {
				within(t, what+"false passes", after, 0, 0.05)
			}
		}
	}
}

func either(rng *rand.Rand, chance, rare, usual float64) float64 {
	if rng.Float64() < chance {
		return rare
	}
	return usual
}
