package findings

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// kept is a load test of 100 polls, one in ten of which is not answered.
func kept(rng *rand.Rand, mean func(u float64) float64) Redundant {
	r := Redundant{Name: "siad", Asked: 3, Copies: 3.02, PerFile: 126e6, Waited: true}
	for i := range 100 {
		m := mean(float64(i) / 100)
		if rng.Float64() < 0.1 {
			m = math.NaN()
		}
		r.At, r.Mean, r.Most = append(r.At, 360*float64(i)), append(r.Mean, m), append(r.Most, 1.2*m)
	}
	return r
}

func TestRedundancy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	grows := func(to float64) func(float64) float64 { return func(u float64) float64 { return to * min(1, 0.5+u) } }
	bytes := kept(rng, grows(3))
	bytes.Copies = 5.3
	small := kept(rng, grows(3))
	small.Copies, small.Metadata = 4, true
	for _, c := range []struct {
		name string
		r    Redundant
		rule string
		want string
	}{
		{"by its word", kept(rng, grows(5.3)), "more-than-asked", "up to 5.30× instead of 3.00×"},
		{"by the bytes", bytes, "more-than-asked", "5.30× instead of 3.00×; 126 MB for each object"},
		{"small", small, "small-objects", "4.00× instead"},
		{"never", kept(rng, grows(2)), "redundancy-never", "2.00× at most and 2.00× at the end, of 3.00×"},
	} {
		f := Redundancy([]Redundant{c.r})
		if len(f) != 1 || f[0].Rule != c.rule || !strings.Contains(f[0].Evidence[0], c.want) || f[0].Try == "" {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestRedundancyOfNothing(t *testing.T) {
	const runs = 300
	said := 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 2))
		r := kept(rng, func(u float64) float64 { return 3*min(1, 0.2+2*u) + 0.05*rng.NormFloat64() })
		r.Copies = 3 * (1 + 0.03*rng.NormFloat64())
		early := kept(rng, func(u float64) float64 { return u })
		early.Waited = false // it goes on
		if f := Redundancy([]Redundant{r, early, {Name: "nothing is known"}}); f != nil {
			said++
			t.Logf("%+v", f)
		}
	}
	if said > runs/100 {
		t.Errorf("said %d times in %d", said, runs)
	}
}
