package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// One slow block in one group must not take the mean out of the groups' ratios.
func TestMeanOfRatiosLiesAmongThem(t *testing.T) {
	groups := [][2][]float64{
		{{98, 98.2, 97.9, 98.1, 98, 76}, {100, 100, 100, 100, 100, 100}},
		{{98.3, 98.1, 98.4, 70, 98.3, 98.2}, {100, 100, 100, 100, 100, 100}},
	}
	i := MeanPairedRatio(groups, 0.95, 1)
	if i.Mid < 0.98 || i.Mid > 0.983 || i.N != 2 || !(i.Lo <= i.Mid && i.Mid <= i.Hi) || i.Conf != 0.95 {
		t.Errorf("%+v, want a mean from 0.98 to 0.983", i)
	}
	groups = append(groups, [2][]float64{{0, 0, 0}, {1, 1, 1}}, [2][]float64{}, [2][]float64{{1, 2}, {3}})
	if more := MeanPairedRatio(groups, 0.95, 1); more != i {
		t.Errorf("groups without a ratio changed it: %+v, then %+v", i, more)
	}
	if i := MeanPairedRatio(groups[2:], 0.95, 1); !math.IsNaN(i.Mid) || i.N != 0 {
		t.Errorf("no group has a ratio: %+v", i)
	}
	if i := MeanPairedRatio([][2][]float64{{{2, 2}, {1, 1}}, {{8}, {1}}}, 0.95, 1); math.Abs(i.Mid-4) > 1e-9 || i.Bounded() {
		t.Errorf("a single pair gave an interval: %+v", i)
	}
}

func TestMeanPairedRatioCovers(t *testing.T) {
	noises := map[string]func(*rand.Rand) float64{"lognormal": spreadNoises["lognormal"],
		"a slow trial in ten": func(r *rand.Rand) float64 {
			if r.Float64() < 0.1 {
				return 0.78
			}
			return math.Exp(0.01 * r.NormFloat64())
		}}
	const times = 50
	for name, draw := range noises {
		for n, least := range map[int]float64{4: 0.88, 5: 0.88, 6: 0.88} {
			rng := rand.New(rand.NewPCG(17, uint64(n)))
			covered, width := 0, 0.0
			for seed := range times {
				var groups [][2][]float64
				for g := range 6 {
					var pairs [2][]float64
					for range n {
						block := math.Exp(0.1 * rng.NormFloat64())
						pairs[0] = append(pairs[0], 1.2*float64(1+g)*block*draw(rng))
						pairs[1] = append(pairs[1], float64(1+g)*block*draw(rng))
					}
					groups = append(groups, pairs)
				}
				i := MeanPairedRatio(groups, 0.95, uint64(seed))
				if i.Contains(1.2) {
					covered++
				}
				width += math.Log(i.Hi/i.Lo) / times
			}
			if share := float64(covered) / times; share < least {
				t.Errorf("%s, %d pairs: the interval covers the truth in %.0f %%", name, n, 100*share)
			}
			if width > 0.25 {
				t.Errorf("%s, %d pairs: an interval of %.2f is of no use", name, n, width)
			}
		}
	}
}
