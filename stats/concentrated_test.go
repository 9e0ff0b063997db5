package stats

import (
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
		{of(2, 0, 0, 0, 0, 0), false}, // chance: 1 in 6
		{of(5, 0, 0, 0, 0, 0), true},
		{of(5, 4, 6, 5, 4, 6), false},
		{of(50, 3, 2, 4, 3, 2), true},
		{of(50, 20, 20, 20, 20, 20), false},                                      // not most
		{[]Count{{K: 9000, N: 9100}, {K: 100, N: 101}, {K: 100, N: 101}}, false}, // most operations
	} {
		if got := Concentrated(c.clusters); got != c.want {
			t.Errorf("%v: %t", c.clusters, got)
		}
	}
}

// A pass is false where the truth is 98.9 % and the gate 99.1 %. Where trials differ in
// a skewed way, those that hold most failures in one trial are taken back.
func TestConcentratedTakesFalsePassesBack(t *testing.T) {
	const runs, n, failing, limit = 300, 1000, 0.011, 0.991
	rates := map[string]func(rng *rand.Rand) float64{
		"all alike":       func(*rand.Rand) float64 { return failing },
		"skewed, sigma 1": func(rng *rand.Rand) float64 { return failing * math.Exp(rng.NormFloat64()-0.5) },
		"skewed, sigma 2": func(rng *rand.Rand) float64 {
			return min(1,
				failing*math.Exp(2*rng.NormFloat64()-2))
		},
		"1 trial of 10 is bad":  func(rng *rand.Rand) float64 { return either(rng, 0.1, 0.08, 0.003333) },
		"1 trial of 100 is bad": func(rng *rand.Rand) float64 { return either(rng, 0.01, 0.8, 0.00303) },
	}
	for _, m := range []int{6, 20} {
		for name, rate := range rates {
			rng := rand.New(rand.NewPCG(uint64(m), 7))
			before, after, honest := 0, 0, 0
			for range runs {
				clusters, good := make([]Count, m), make([]Count, m)
				for i := range clusters {
					clusters[i] = Count{K: n - distuv.Binomial{N: n, P: rate(rng), Src: rng}.Rand(), N: n}
					good[i] = Count{K: n - distuv.Binomial{N: n, P: 0.003, Src: rng}.Rand(), N: n}
				}
				if ClusteredProportion(clusters, false, 0.90).Lo >= limit {
					before++
					if !Concentrated(clusters) {
						after++
					}
				}
				if Concentrated(good) {
					honest++
				}
			}
			t.Logf("%2d trials, %-22s false passes %4.1f %% before, %4.1f %% after; good trials taken for "+
				"concentrated %.1f %%", m, name,
				100*float64(before)/runs, 100*float64(after)/runs, 100*float64(honest)/runs)
			if name == "skewed, sigma 2" && m == 6 && after == before {
				t.Errorf("%d false passes before and after", before)
			}
			if after > before || float64(honest) > 0.02*runs || name == "all alike" && float64(after) > 0.05*runs {
				t.Errorf("%d trials, %s: %d false passes before, %d after, %d honest ones taken back", m, name, before,
					after, honest)
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
