package findings

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// moving is a trial of some minutes, seen once a second.
func moving(rng *rand.Rand, pause func() float64) Moving {
	m := Moving{Name: "boxo, concurrency 8", Resolution: 1}
	at := 0.0
	for at < 300 {
		d := 1 + math.Floor(pause())
		m.Pauses = append(m.Pauses, Silent{Trial: 4, From: at, To: at + d})
		at += d
	}
	return m
}

func TestStalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m := moving(rng, func() float64 { return 0.5 * rng.ExpFloat64() })
	m.Pauses[50].To = m.Pauses[50].From + 30
	f := Stalls([]Moving{m, moving(rng, func() float64 { return 0 })})
	if len(f) != 1 || len(f[0].Evidence) != 1 || !strings.Contains(f[0].Evidence[0], "nothing for 30.0 s from") || !strings.Contains(f[0].Evidence[0], "in trial 4") {
		t.Errorf("%+v", f)
	}
}

func TestStallsOfNothing(t *testing.T) {
	const runs = 400
	said := 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 2))
		mean, spread := 10*rng.Float64(), rng.Float64()
		for _, pause := range []func() float64{
			func() float64 { return mean * rng.ExpFloat64() },
			func() float64 { return mean * math.Exp(spread*rng.NormFloat64()) },
			func() float64 { return mean }, // all end together
		} {
			if f := Stalls([]Moving{moving(rng, pause)}); f != nil {
				said++
			}
		}
	}
	if said > 3*runs/100 {
		t.Errorf("said %d times in %d", said, 3*runs)
	}
	if f := Stalls([]Moving{{Name: "few", Resolution: 1, Pauses: []Silent{{1, 0, 1}, {1, 1, 90}}}}); f != nil {
		t.Errorf("%+v", f)
	}
}
