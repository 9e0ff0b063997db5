package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Series without a change, by correlation, tails and length: the long ones are
// reduced to blocks.
func TestChangesAreNotMadeUp(t *testing.T) {
	for _, phi := range []float64{0, 0.7} {
		for name, draw := range map[string]func(*rand.Rand) float64{"normal": normal, "heavy tails": student3} {
			t.Run(fmt.Sprint(phi, name), func(t *testing.T) {
				t.Parallel()
				found, series := 0, 0
				for _, trend := range []float64{0, 2} {
					for _, n := range []int{40, 100, 200, 3000} {
						r := rand.New(rand.NewPCG(uint64(n), 11))
						for range long(50) {
							e := autoregression(r, n, phi, draw)
							x := factors(n, func(i int) float64 { return float64(i) })
							y := factors(n, func(i int) float64 { return (1 + trend*x[i]/float64(n)) * math.Exp(0.2*e[i]) })
							series++
							if c := Changes(x, y); len(c) > 0 {
								found++
								t.Logf("n %d, trend %v: %+v", n, trend, c)
							}
						}
					}
				}
				t.Logf("%d of %d", found, series)
				if limit := 0.01 + 3*math.Sqrt(0.01*0.99/float64(series)); float64(found) > limit*float64(series) {
					t.Errorf("changes are found in %d of %d series that have none", found, series)
				}
			})
		}
	}
}

// changed is 1 before u = 0.6 (or from 0.4 to 0.6, for a bump).
func changed(kind string, size, u float64) float64 {
	switch {
	case kind == LevelChange && u >= 0.6, kind == "bump" && u >= 0.4 && u < 0.6:
		return 1 + size
	case kind == SlopeChange && u >= 0.6:
		return 1 + 3*size*(u-0.6)
	}
	return 1
}

func TestChangesAreFound(t *testing.T) {
	for _, phi := range []float64{0, 0.7} {
		for _, c := range []struct {
			kind string
			size float64
		}{{LevelChange, 1}, {LevelChange, 0.3}, {SlopeChange, 1}, {"bump", 1}} {
			t.Run(fmt.Sprint(c.kind, c.size, phi), func(t *testing.T) {
				t.Parallel()
				const n = 3000
				r := rand.New(rand.NewPCG(9, 9))
				found, covered, kinds, times := 0, 0, 0, long(40)
				at, want, kind := 0.6, 1, c.kind
				if c.kind == "bump" {
					at, want, kind = 0.4, 2, LevelChange
				}
				for range times {
					e := autoregression(r, n, phi, normal)
					x := factors(n, func(i int) float64 { return 60 * float64(i) })
					y := factors(n, func(i int) float64 { return 1e6 * changed(c.kind, c.size, float64(i)/n) * math.Exp(0.1*e[i]) })
					changes := Changes(x, y)
					if len(changes) != want {
						continue
					}
					found++
					first := changes[0]
					count(&covered, first.Interval.Contains(60*at*n))
					count(&kinds, first.Kind == kind)
					if x[first.Index] != first.X {
						t.Fatalf("index %d is at %v, not %v", first.Index, x[first.Index], first.X)
					}
					before, after := 1e6, 1e6*(1+c.size)
					if kind == SlopeChange {
						before, after = 0, 1e6*3*c.size/(60*n)
					}
					if first.Kind == kind && math.Abs(first.After-after)+math.Abs(first.Before-before) > 0.3*math.Abs(after-before) {
						t.Errorf("from %v to %v, not %v to %v", first.Before, first.After, before, after)
					}
				}
				t.Logf("found %d, covered %d, kind %d of %d", found, covered, kinds, times)
				if found < times*9/10 || covered < found*9/10 || kinds < found*9/10 {
					t.Errorf("of %d, %d found, %d covered, %d of the right kind", times, found, covered, kinds)
				}
			})
		}
	}
}

func TestChangesOfExactSeries(t *testing.T) {
	x := factors(100, func(i int) float64 { return float64(i) })
	y := factors(100, func(i int) float64 {
		if i < 37 {
			return 5
		}
		return 7
	})
	if c := Changes(x, y); len(c) != 1 || c[0].Index != 37 || c[0].Kind != LevelChange || math.Abs(c[0].Before-5) > 1e-6 || math.Abs(c[0].After-7) > 1e-6 {
		t.Errorf("a step: %+v", c)
	}
	for name, y := range map[string][]float64{
		"zero":     make([]float64, 100),
		"constant": factors(100, func(int) float64 { return 3 }),
		"a line":   factors(100, func(i int) float64 { return 3 + 0.1*float64(i) }),
		"NaN":      factors(100, func(i int) float64 { return math.Log(float64(i) - 1) }),
	} {
		if c := Changes(x, y); len(c) != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if c := Changes(x[:10], y[:10]); len(c) != 0 {
		t.Errorf("ten points: %+v", c)
	}
}

func BenchmarkChanges(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	e := autoregression(r, 50_000, 0.7, normal)
	x := factors(len(e), func(i int) float64 { return float64(i) })
	y := factors(len(e), func(i int) float64 { return changed(LevelChange, 1, float64(i)/50_000) * math.Exp(0.1*e[i]) })
	for range b.N {
		Changes(x, y)
	}
}
