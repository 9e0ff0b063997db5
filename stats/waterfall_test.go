package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func waterfallOf(t *testing.T, w world, obs []FactorialObs, order []int) WaterfallFit {
	t.Helper()
	fit, err := Waterfall(w.factors, obs, order, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	return fit
}

// TestWaterfall: steps and shares against the truth of each combination.
func TestWaterfall(t *testing.T) {
	w := trio() // the best: 0.5 · 1.4 · 0.6 · 0.8 (1, 2, 1) against 0.5 · 0.9 · 0.8 (1, 1, 1)
	w.noise = lognormal(1e-6)
	obs := w.run(t, rand.New(rand.NewPCG(1, 1)))
	at := func(l ...int) float64 { return w.truth(l) }
	for name, c := range map[string]struct {
		order []int
		path  [][]int
	}{
		"greedy": {nil, [][]int{{0, 0, 0}, {1, 0, 0}, {1, 2, 0}, {1, 2, 1}}},
		"given":  {[]int{2, 1}, [][]int{{0, 0, 0}, {0, 0, 1}, {0, 2, 1}, {1, 2, 1}}},
	} {
		fit := waterfallOf(t, w, obs, c.order)
		if name == "greedy" {
			// The gain of C (0.8) comes before that of B (0.84 after A).
			c.path[2] = []int{1, 0, 1}
		}
		total := at(1, 2, 1) / at(0, 0, 0)
		if !slices.Equal(fit.To, []int{1, 2, 1}) || math.Abs(fit.Total.Mid/total-1) > 1e-4 || len(fit.Warnings) != 0 {
			t.Fatalf("%s: to %v, %v; %q", name, fit.To, fit.Total, fit.Warnings)
		}
		shares := 0.0
		for i, s := range fit.Steps {
			want := at(c.path[i+1]...) / at(c.path[i]...)
			if !slices.Equal(s.After, c.path[i+1]) || math.Abs(s.Ratio.Mid/want-1) > 1e-4 || s.FromModel || s.Level != fit.To[s.Factor] {
				t.Errorf("%s: step %d: %+v, want %v by %v", name, i, s, c.path[i+1], want)
			}
			shares += s.Share
		}
		if math.Abs(shares-1) > 1e-9 {
			t.Errorf("%s: the steps are %v of the total", name, shares)
		}
		// Only A and B act together: each gets half of that, in the logarithm.
		for i, want := range []float64{0.5 * math.Sqrt(0.6), 1.4 * math.Sqrt(0.6), 0.8} {
			if s := fit.Shapley[i]; s.Factor != i || math.Abs(s.Ratio.Mid/want-1) > 1e-4 {
				t.Errorf("%s: share %+v, want %v", name, s, want)
			}
		}
	}
}

// With a combination on the way that was not executed, the model stands in.
func TestWaterfallOverMissingCombinations(t *testing.T) {
	w := trio()
	w.noise = lognormal(1e-6)
	w.only = func(l []int) bool { return !slices.Equal(l, []int{1, 0, 0}) }
	obs := w.run(t, rand.New(rand.NewPCG(1, 1)))
	fit := waterfallOf(t, w, obs, []int{0, 1, 2})
	s := fit.Steps[0]
	if !s.FromModel || fit.Steps[2].FromModel || math.Abs(s.Ratio.Mid/0.5-1) > 1e-4 || !strings.Contains(strings.Join(fit.Warnings, "; "), "taken from the model") {
		t.Errorf("%+v; %q", fit.Steps, fit.Warnings)
	}
	for i, want := range []float64{0.5 * math.Sqrt(0.6), 1.4 * math.Sqrt(0.6), 0.8} {
		if s := fit.Shapley[i]; math.Abs(s.Ratio.Mid/want-1) > 1e-4 {
			t.Errorf("share %+v, want %v", s, want)
		}
	}
}

func TestWaterfallWithoutGain(t *testing.T) {
	w := world{factors: factorsOf(2, 2), main: [][]float64{{1, 2}, {1, 3}}, blocks: 3, noise: lognormal(0.01)}
	obs := w.run(t, rand.New(rand.NewPCG(1, 1)))
	if fit := waterfallOf(t, w, obs, nil); len(fit.Steps)+len(fit.Shapley) != 0 || fit.Total.Mid != 1 {
		t.Errorf("%+v", fit)
	}
	for _, order := range [][]int{{2}, {0, 0}} {
		if _, err := Waterfall(w.factors, obs, order, 0.95); err == nil || !strings.Contains(err.Error(), "order") {
			t.Errorf("order %v: %v", order, err)
		}
	}
}

// TestWaterfallIntervalsCover although the best combination and the order are
// chosen by the trials: where one is clearly best, and where none is.
func TestWaterfallIntervalsCover(t *testing.T) {
	for name, main := range map[string][][]float64{
		"clear": {{1, 0.5}, {1, 0.7}, {1, 0.8}},
		"none":  {{1, 1}, {1, 1}, {1, 1}},
	} {
		for _, noise := range trialNoises {
			t.Run(name+", "+noise.name, func(t *testing.T) {
				t.Parallel()
				w := world{factors: factorsOf(2, 2, 2), main: main, blocks: 5, block: 0.2, noise: noise.draw}
				kinds := map[string][2]int{}
				note := func(kind string, i Interval, truth float64) {
					n := kinds[kind]
					n[0]++
					if i.Contains(truth) {
						n[1]++
					}
					kinds[kind] = n
				}
				share(13, func(r *rand.Rand, _ int) bool {
					fit := waterfallOf(t, w, w.run(t, r), nil)
					if len(fit.Steps) > 0 {
						note("total", fit.Total, w.truth(fit.To)/w.truth(fit.From))
						at := fit.From
						for i, s := range fit.Steps {
							note(fmt.Sprint("step ", i), s.Ratio, w.truth(s.After)/w.truth(at))
							at = s.After
						}
					}
					for _, s := range fit.Shapley {
						note("share", s.Ratio, main[s.Factor][s.Level]) // nothing acts together
					}
					return true
				})
				for kind, n := range kinds {
					if got := float64(n[1]) / float64(n[0]); n[0] > repetitions/2 && got < 0.95-simulationError(0.95) {
						t.Errorf("%s is covered in %.4f", kind, got)
					}
				}
			})
		}
	}
}
