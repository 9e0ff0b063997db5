package findings

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plimsoll-project/plimsoll/stats"
)

// curve is one of 1 to 64 operations at once with 5 % noise.
func curve(rng *rand.Rand, truth func(n float64) float64) Curve {
	c := Curve{System: "a", Limited: map[float64]Limit{}, Show: func(x float64) string { return fmt.Sprintf("%.0f B/s", x) }}
	for n := 1.0; n <= 64; n *= 2 {
		for range 6 {
			c.Trials = append(c.Trials, stats.Load{N: n, X: truth(n) * math.Exp(0.05*rng.NormFloat64())})
		}
	}
	return c
}

func TestFallsOfACurve(t *testing.T) {
	cliff := func(n float64) float64 {
		if n > 8 {
			return 500
		}
		return 1000 * n
	}
	c := curve(rand.New(rand.NewPCG(5, 5)), cliff)
	falls := Falls([]Curve{c})
	if len(falls) != 1 || falls[0].best().N != 8 || len(SayFalls(falls)) != 1 {
		t.Fatalf("%+v", falls)
	}
	if where, _ := falls[0].Words(); where != "with 64 at once than with 8" {
		t.Error(where)
	}
	for n := 16.0; n <= 64; n *= 2 {
		c.Limited[n] = Link
	}
	if falls := Falls([]Curve{c}); falls != nil {
		t.Errorf("a full link is a fall: %+v", falls)
	}
}

// Of curves that grow or level off at most one run in a hundred says that they fall.
func TestFallsOfNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	wrong := 0
	for range 200 {
		if Falls([]Curve{curve(rng, func(float64) float64 { return 1000 }), curve(rng, func(n float64) float64 { return 1000 * math.Min(n, 8) })}) != nil {
			wrong++
		}
	}
	if wrong > 5 {
		t.Errorf("%d of 200 runs", wrong)
	}
}

func fallCases() map[string]example {
	rng := rand.New(rand.NewPCG(6, 6))
	say := func(c []Curve) []Finding { return SayFalls(Falls(c)) }
	return map[string]example{
		"throughput-falls": when(say, []Curve{curve(rng, func(n float64) float64 { return 1000 / n })}, []Curve{curve(rng, func(n float64) float64 { return 1000 * n })}),
	}
}
