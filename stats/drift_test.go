package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// memory is a series of n points over an hour, in MB.
func memory(n int, at func(u float64) float64) (x, y []float64) {
	for i := range n {
		u := (float64(i) + 0.5) / float64(n)
		x, y = append(x, u), append(y, at(u))
	}
	return x, y
}

// walk is noise of which a point keeps phi of the one before; 1: a random walk.
func walk(rng *rand.Rand, phi, step float64) func(float64) float64 {
	v := 0.0
	return func(float64) float64 {
		v = phi*v + step*rng.NormFloat64()
		return v
	}
}

func TestDriftIsFound(t *testing.T) {
	for name, noise := range map[string]func(rng *rand.Rand) func(float64) float64{
		"white":     func(rng *rand.Rand) func(float64) float64 { return walk(rng, 0, 3) },
		"alike":     func(rng *rand.Rand) func(float64) float64 { return walk(rng, 0.9, 1) },
		"saw-teeth": func(rng *rand.Rand) func(float64) float64 { return sawTeeth(rng, 20, 10) },
	} {
		const runs = 100
		found, covered := 0, 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 1))
			e := noise(rng)
			f := Drift(memoryOf(1000, func(u float64) float64 { return 100 + 40*u + e(u) }, 0.25))
			if f.P < 0.001 {
				found++
			}
			if f.Slope.Contains(40) {
				covered++
			}
		}
		if found < runs*9/10 || covered < runs*9/10 {
			t.Errorf("%s: of %d found %d, covered %d", name, runs, found, covered)
		}
	}
}

func memoryOf(n int, at func(u float64) float64, leave float64) (x, y []float64, share float64) {
	x, y = memory(n, at)
	return x, y, leave
}

// sawTeeth rise and fall so many times, each as long as it likes.
func sawTeeth(rng *rand.Rand, times int, height float64) func(float64) float64 {
	ends := []float64{0}
	for ends[len(ends)-1] < 1 {
		ends = append(ends, ends[len(ends)-1]+(0.5+rng.Float64())/float64(times))
	}
	k := 0
	return func(u float64) float64 {
		for u >= ends[k+1] {
			k++
		}
		return height * (u - ends[k]) / (ends[k+1] - ends[k])
	}
}

func TestDriftOfNothing(t *testing.T) {
	for name, noise := range map[string]func(rng *rand.Rand) func(float64) float64{
		"white":       func(rng *rand.Rand) func(float64) float64 { return walk(rng, 0, 3) },
		"alike":       func(rng *rand.Rand) func(float64) float64 { return walk(rng, 0.97, 1) },
		"very alike":  func(rng *rand.Rand) func(float64) float64 { return walk(rng, 0.998, 1) },
		"random walk": func(rng *rand.Rand) func(float64) float64 { return walk(rng, 1, 1) },
		"saw-teeth":   func(rng *rand.Rand) func(float64) float64 { return sawTeeth(rng, 2+rng.IntN(30), 10) },
		"one step": func(rng *rand.Rand) func(float64) float64 {
			at, e := rng.Float64(), walk(rng, 0, 0.1)
			return func(u float64) float64 {
				if u > at {
					return 30 + e(u)
				}
				return e(u)
			}
		},
	} {
		const runs = 400
		found := 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 2))
			e := noise(rng)
			if f := Drift(memoryOf(600, func(u float64) float64 { return 100 + e(u) }, 0.25)); f.P < 0.001 {
				found++
			}
		}
		if found > runs/100 {
			t.Errorf("%s: found in %d of %d", name, found, runs)
		}
	}
}

func TestDriftTellsWhatSaturates(t *testing.T) {
	for _, tau := range []float64{0.1, 0.3, 0.5, 1} {
		f := Drift(memoryOf(600, func(u float64) float64 { return 100 - 50*math.Exp(-u/tau) }, 0.25))
		if f.Late > 0.7*f.Early {
			t.Errorf("τ = %g: %+v", tau, f)
		}
	}
	if f := Drift(memoryOf(600, func(u float64) float64 { return 100 + 50*u }, 0.25)); math.Abs(f.Late/f.Early-1) > 1e-6 || f.P > 1e-9 {
		t.Errorf("a line: %+v", f)
	}
}

func TestDriftOfTooFew(t *testing.T) {
	for name, f := range map[string]DriftFit{
		"none":    Drift(nil, nil, 0),
		"few":     Drift(memoryOf(10, func(u float64) float64 { return u }, 0)),
		"one x":   Drift([]float64{1, 1, 1}, []float64{1, 2, 3}, 0),
		"lengths": Drift([]float64{1, 2}, []float64{1}, 0),
	} {
		if f.Why == "" || !math.IsNaN(f.P) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
