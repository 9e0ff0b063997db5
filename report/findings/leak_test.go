package findings

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// living is a process seen once in ten seconds for two hours.
func living(name string, at func(hours float64) float64) Life {
	l := Life{Name: name, Things: 5000, Thing: "object"}
	for i := range 720 {
		h := float64(i) / 360
		l.Hours, l.Memory, l.Files, l.Thread = append(l.Hours, h), append(l.Memory, at(h)), append(l.Files, 20), append(l.Thread, 8)
	}
	return l
}

// alike is noise of which each value keeps a part of the one before.
func alike(rng *rand.Rand, phi, step float64) func() float64 {
	v := 0.0
	return func() float64 {
		v = phi*v + step*rng.NormFloat64()
		return v
	}
}

func TestLeak(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	e := alike(rng, 0.9, 5e5)
	leaking := living("siad/renter", func(h float64) float64 { return 100e6 + 30e6*h + e() })
	for i := range leaking.Files {
		leaking.Files[i] += math.Floor(50 * leaking.Hours[i])
	}
	all := Leak([]Life{leaking, living("siad/host", func(float64) float64 { return 100e6 + e() })})
	if len(all) != 2 || all[0].Rule != "leak-memory" || all[1].Rule != "leak-files" {
		t.Fatalf("%+v", all)
	}
	for _, want := range []string{"siad/renter: resident memory", "MB per hour", "per 1,000 objects", "n = 540"} {
		if len(all[0].Evidence) != 1 || !strings.Contains(all[0].Evidence[0], want) || all[0].Try == "" {
			t.Errorf("%q lacks %q", all[0].Evidence, want)
		}
	}
}

// steadily is a process that is seen once in ten seconds for so many hours.
func steadily(hours float64, at func(hours float64) float64) Life {
	l := Life{Name: "p"}
	for s := 0.0; s < hours*3600; s += 10 {
		h := s / 3600
		l.Hours, l.Memory, l.Files, l.Thread = append(l.Hours, h), append(l.Memory, at(h)), append(l.Files, 20), append(l.Thread, 8)
	}
	return l
}

// What leaks at an even rate is not passed over in silence, whatever lies over it; of
// one that is plain it is said that it goes on.
func TestLeaksAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		hours         float64
		goesOn, found float64 // least shares of runs
		at            func(rng *rand.Rand) func(h float64) float64
	}{
		"plain": {1, 0.95, 0.95, func(rng *rand.Rand) func(float64) float64 {
			return func(h float64) float64 { return 100e6*(1+h) + 2e6*rng.NormFloat64() }
		}},
		"noise": {1, 0.6, 0.95, func(rng *rand.Rand) func(float64) float64 {
			return func(h float64) float64 { return 100e6*(1+0.5*h) + 5e6*rng.NormFloat64() }
		}},
		// Every fourth is taken for a random walk, of which a thousandth would go as far.
		"noise that lasts": {1, 0, 0.7, func(rng *rand.Rand) func(float64) float64 {
			e := alike(rng, 0.9, 2e6) // 5 MB
			return func(h float64) float64 { return 100e6*(1+h) + e() }
		}},
		"saw-teeth": {1, 0, 0.8, func(rng *rand.Rand) func(float64) float64 {
			period, phase := 0.02+0.2*rng.Float64(), rng.Float64()
			return func(h float64) float64 { return 100e6 * (1 + h + 0.5*math.Mod(h/period+phase, 1)) }
		}},
		"saw-teeth, soon": {1. / 3, 0, 0.8, func(rng *rand.Rand) func(float64) float64 {
			period, phase := 0.01+0.04*rng.Float64(), rng.Float64()
			return func(h float64) float64 { return 100e6 * (1 + 1.5*h + 0.3*math.Mod(h/period+phase, 1)) }
		}},
		"steps at random": {1, 0, 0.8, func(rng *rand.Rand) func(float64) float64 {
			held := 100e6
			return func(float64) float64 {
				if rng.Float64() < 30./360 {
					held += 20e6
				}
				return held
			}
		}},
	} {
		const runs = 100
		goes, found := 0., 0.
		for seed := range uint64(runs) {
			f := Leak([]Life{steadily(c.hours, c.at(rand.New(rand.NewPCG(seed, 3))))})
			switch {
			case findingOf(f, "leak-memory") != nil:
				goes++
				found++
			case findingOf(f, "grew") != nil:
				found++
			}
		}
		t.Logf("%s: in %v runs of %d, %v of them said to go on", name, found, runs, goes)
		if found < c.found*runs || goes < c.goesOn*runs {
			t.Errorf("%s: found in %v runs of %d, and said to go on in %v", name, found, runs, goes)
		}
	}
}

// Warm-up that saturates, saw-teeth of a garbage collector, a level that moves
// once, and noise that wanders are no leaks. Of these only what saturates grows.
func TestLeakOfNothing(t *testing.T) {
	for name, at := range map[string]func(rng *rand.Rand) func(h float64) float64{
		"noise": func(rng *rand.Rand) func(float64) float64 {
			e := alike(rng, 0.95, 2e6)
			return func(float64) float64 { return 100e6 + e() }
		},
		"random walk": func(rng *rand.Rand) func(float64) float64 {
			e := alike(rng, 1, 1e6)
			return func(float64) float64 { return 200e6 + e() }
		},
		"saturates": func(rng *rand.Rand) func(float64) float64 {
			e, tau := alike(rng, 0.9, 3e5), 0.1+1.5*rng.Float64()
			return func(h float64) float64 { return 150e6 - 80e6*math.Exp(-h/tau) + e() }
		},
		"saw-teeth": func(rng *rand.Rand) func(float64) float64 {
			period, phase, height := 0.02+rng.Float64(), rng.Float64(), 60e6*rng.Float64()
			return func(h float64) float64 { return 100e6 + height*math.Mod(h/period+phase, 1) }
		},
		"a step": func(rng *rand.Rand) func(float64) float64 {
			e, when := alike(rng, 0, 1e5), 2*rng.Float64()
			return func(h float64) float64 {
				if h > when {
					return 160e6 + e()
				}
				return 100e6 + e()
			}
		},
	} {
		const runs = 200
		said := 0
		for seed := range uint64(runs) {
			f := Leak([]Life{living("p", at(rand.New(rand.NewPCG(seed, 2))))})
			if name == "saturates" {
				f = slices.DeleteFunc(f, func(f Finding) bool { return f.Rule == "grew" })
			}
			if len(f) > 0 {
				said++
				t.Logf("%s, seed %d: %q", name, seed, f[0].Evidence)
			}
		}
		if said > runs/100 {
			t.Errorf("%s: said %d times in %d", name, said, runs)
		}
	}
	full := living("a cache that is full", func(h float64) float64 { return 150e6 - 80e6*math.Exp(-h/0.4) })
	if f := Leak([]Life{full}); f != nil {
		t.Errorf("it slowed down clearly: %+v", f)
	}
	short := living("short", func(h float64) float64 { return 100e6 * (1 + h) })
	for i := range short.Hours {
		short.Hours[i] /= 100
	}
	if f := Leak([]Life{short, {Name: "nothing"}}); f != nil {
		t.Errorf("%+v", f)
	}
}
