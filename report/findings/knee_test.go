package findings

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/stats"
)

// curve is one of 1 to 64 users at once with 5 % noise.
func curve(rng *rand.Rand, truth func(n float64) float64) Curve {
	c := Curve{System: "a", Latency: map[float64]float64{}, Limited: map[float64]Limit{},
		Show: func(x float64) string { return fmt.Sprintf("%.0f B/s", x) }, Time: func(s float64) string { return fmt.Sprintf("%.3g s", s) }}
	for n := 1.0; n <= 64; n *= 2 {
		c.Latency[n] = n / truth(n)
		for b := range 6 {
			c.Trials = append(c.Trials, stats.Load{N: n, X: truth(n) * math.Exp(0.05*rng.NormFloat64()), Block: b})
		}
	}
	return c
}

func falls(n float64) float64 { return 1000 * n / (1 + 0.02*(n-1) + 4e-3*n*(n-1)) } // N* = 15.7

func kneesOf(curves ...Curve) map[string]Finding {
	said := map[string]Finding{}
	for _, f := range SayKnees(Knees(curves, 0.95, 1)) {
		said[f.Rule] = f
	}
	return said
}

func TestKneeIsSaidWithItsFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	f, ok := kneesOf(curve(rng, falls))["knee"]
	if !ok || f.Try == "" || len(f.Evidence) != 1 {
		t.Fatalf("%+v", f)
	}
	for _, want := range []string{"a: N* = 1", " at 64", "σ = ", "κ = ", "(n = 42, 7 levels)", "median time of an operation"} {
		if !strings.Contains(f.Evidence[0], want) {
			t.Errorf("%q lacks %q", f.Evidence[0], want)
		}
	}
}

// Curves that fall and have no peak of the law between their levels: that they fall is
// said, and never that they do not.
func TestKneeOfAFallElsewhere(t *testing.T) {
	for name, truth := range map[string]func(float64) float64{
		"from the first": func(n float64) float64 { return 1000 / n },
		"at the last": func(n float64) float64 {
			if n == 64 {
				return 100
			}
			return 1000 * n
		},
		"a cliff": func(n float64) float64 {
			if n > 8 {
				return 500
			}
			return 1000 * n
		},
	} {
		c := curve(rand.New(rand.NewPCG(5, 5)), truth)
		said := kneesOf(c)
		f, ok := said["throughput-falls"]
		if !ok || f.Tone != Warn || f.Try == "" || len(f.Evidence) != 1 || len(said) != 1 {
			t.Errorf("%s: said %+v", name, said)
			continue
		}
		k := Knees([]Curve{c}, 0.95, 1)[0]
		if where, figures := k.Beyond(); where != map[string]string{"from the first": "with 64 at once than with 1", "at the last": "with 64 at once than with 32", "a cliff": "with 64 at once than with 8"}[name] || !strings.HasPrefix(figures, where+": ") || !strings.Contains(figures, ", not ") {
			t.Errorf("%s: in short %q, %q", name, where, figures)
		}
		for _, want := range []string{"a: ", " at 64, 0.0", "× as much (p = ", "n = 12", "no N*: "} {
			if !strings.Contains(f.Evidence[0], want) {
				t.Errorf("%s: %q lacks %q", name, f.Evidence[0], want)
			}
		}
	}
}

// Where the link is full there is no knee of the system.
func TestKneeOfALinkIsNone(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	c := curve(rng, func(n float64) float64 { return 1000 * min(n, 10) })
	c.Limited[16], c.Limited[32], c.Limited[64] = Link, Link, Link
	said := kneesOf(c)
	if e := strings.Join(said["no-knee"].Evidence, ""); len(said) != 1 || !strings.Contains(e, "none up to 64") || !strings.Contains(e, "at 16, 32 and 64 the link is the limit") {
		t.Errorf("said %v", said)
	}
	if where, figures := Knees([]Curve{c}, 0.95, 1)[0].Beyond(); where+figures != "" {
		t.Errorf("in short %q, %q", where, figures)
	}
	c.Limited[8] = Generator
	if e := strings.Join(kneesOf(c)["no-knee"].Evidence, ""); !strings.Contains(e, "too few levels are left") || !strings.Contains(e, "at 8 the generator is the limit") {
		t.Errorf("said %q", e)
	}
}

func TestKneeSaysNothingOfFewLevels(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	c := curve(rng, falls)
	var few []stats.Load
	for _, l := range c.Trials {
		if l.N == 1 || l.N == 8 || l.N == 64 {
			few = append(few, l)
		}
	}
	c.Trials = few
	if said := kneesOf(c); len(said) != 0 {
		t.Errorf("said %v", said)
	}
}

// Curves that grow, level off or stay where they are: at most one run in a hundred
// says that they fall.
func TestKneeOfNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const runs = 200
	wrong := 0
	for range runs {
		var curves []Curve
		for range 1 + rng.IntN(2) {
			corner, sigma := 1+60*rng.Float64(), 0.3*rng.Float64()
			curves = append(curves, curve(rng, []func(float64) float64{
				func(n float64) float64 { return n },
				func(n float64) float64 { return min(n, corner) },
				func(n float64) float64 { return n / (1 + sigma*(n-1)) },
				func(float64) float64 { return 1 },
			}[rng.IntN(4)]))
		}
		said := kneesOf(curves...)
		_, knee := said["knee"]
		if _, falls := said["throughput-falls"]; falls || knee {
			wrong++
		}
	}
	if wrong*100 > runs {
		t.Errorf("a knee or a fall was said in %d of %d runs without one", wrong, runs)
	}
}

func kneeCases() map[string]example {
	say := func(c Curve) []Finding { return SayKnees(Knees([]Curve{c}, 0.95, 1)) }
	grows := curve(rand.New(rand.NewPCG(6, 6)), func(n float64) float64 { return 1000 * n })
	peaks := curve(rand.New(rand.NewPCG(1, 1)), falls)
	worse := curve(rand.New(rand.NewPCG(5, 5)), func(n float64) float64 { return 1000 / n })
	return map[string]example{
		"knee":             when(say, peaks, grows),
		"throughput-falls": when(say, worse, grows),
		"no-knee":          when(say, grows, peaks),
	}
}
