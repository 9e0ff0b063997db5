package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// world is an experiment with a known truth.
type world struct {
	factors []FactorialFactor
	main    [][]float64                              // factor of the value, by factor and level
	pair    func(levels []int) float64               // additional factor for a combination of levels; nil: 1
	noise   func(r *rand.Rand, levels []int) float64 // factor of a trial's value; nil: none
	blocks  int
	block   float64                                          // standard deviation of ln between blocks
	lost    func(r *rand.Rand, levels []int, block int) bool // nil: none
	only    func(levels []int) bool                          // combinations that are executed; nil: all
}

func (w world) truth(levels []int) float64 {
	v := 10.0
	for f, l := range levels {
		v *= w.main[f][l]
	}
	if w.pair != nil {
		v *= w.pair(levels)
	}
	return v
}

// combinations returns all combinations of levels, in order.
func (w world) combinations() [][]int {
	all := [][]int{{}}
	for _, f := range w.factors {
		var longer [][]int
		for _, levels := range all {
			for l := range f.Levels {
				longer = append(longer, append(slices.Clone(levels), l))
			}
		}
		all = longer
	}
	return all
}

func (w world) run(r *rand.Rand) (obs []FactorialObs) {
	for b := range w.blocks {
		shift := math.Exp(w.block * r.NormFloat64())
		for _, levels := range w.combinations() {
			if w.only != nil && !w.only(levels) {
				continue
			}
			v := w.truth(levels) * shift
			if w.noise != nil {
				v *= w.noise(r, levels)
			}
			if w.lost == nil || !w.lost(r, levels, b) {
				obs = append(obs, FactorialObs{Levels: levels, Block: b, Value: v})
			}
		}
	}
	return obs
}

// expected returns an effect according to its definition, from the true value of each cell.
func (w world) expected(e FactorialEffect) float64 {
	sum, n := 0.0, 0
	for _, levels := range w.combinations() {
		if slices.ContainsFunc(e.Factors, func(f int) bool { return levels[f] != 0 }) {
			continue
		}
		n++
		at := func(set ...int) float64 {
			l := slices.Clone(levels)
			for i, v := range set {
				if v != 0 {
					l[e.Factors[i]] = e.Levels[i]
				}
			}
			return math.Log(w.truth(l))
		}
		if len(e.Factors) == 2 {
			sum += at(1, 1) - at(1, 0) - at(0, 1) + at(0, 0)
			continue
		}
		// Average over all levels of the other factors, including those that interact.
		sum += at(1) - at(0)
	}
	return math.Exp(sum / float64(n))
}

func factorsOf(levels ...int) []FactorialFactor {
	var all []FactorialFactor
	for f, n := range levels {
		factor := FactorialFactor{Name: string(rune('A' + f))}
		for l := range n {
			factor.Levels = append(factor.Levels, fmt.Sprint(l))
		}
		all = append(all, factor)
	}
	return all
}

// trio returns a 2 × 3 × 2 experiment with an interaction of the first two factors.
func trio() world {
	return world{
		factors: factorsOf(2, 3, 2),
		main:    [][]float64{{1, 0.5}, {1, 0.9, 1.4}, {1, 0.8}},
		pair: func(l []int) float64 {
			if l[0] == 1 && l[1] == 2 {
				return 0.6
			}
			return 1
		},
		blocks: 4, block: 0.3,
	}
}

// fit fits the model to one run.
func (w world) fit(t testing.TB) FactorialFit {
	t.Helper()
	return factorial(t, w, w.run(rand.New(rand.NewPCG(1, 1))))
}

func factorial(t testing.TB, w world, obs []FactorialObs) FactorialFit {
	t.Helper()
	fit, err := Factorial(w.factors, obs, 0.95)
	must(t, err)
	return fit
}

func wantWarning(t *testing.T, fit FactorialFit, word string) {
	t.Helper()
	if !strings.Contains(strings.Join(fit.Warnings, "; "), word) {
		t.Errorf("warnings %q, want %q", fit.Warnings, word)
	}
}

func TestFactorialRecoversExactly(t *testing.T) {
	w := trio()
	fit := w.fit(t)
	if len(fit.Effects) != 4+5 {
		t.Errorf("%d effects", len(fit.Effects))
	}
	for _, e := range fit.Effects {
		if want := w.expected(e); math.Abs(e.Ratio.Mid/want-1) > 1e-6 {
			t.Errorf("%v %v: %v, want %v", e.Factors, e.Levels, e.Ratio, want)
		}
		if estimated := math.Abs(math.Log(e.Ratio.Mid)) > 1e-6; estimated != (e.PHolm < 0.01) {
			t.Errorf("%v %v: ratio %v with p %v", e.Factors, e.Levels, e.Ratio.Mid, e.PHolm)
		}
	}
}

// The classical example, three factors with two levels and repeated trials, agrees with the
// textbook's formulas for effects and their standard error.
func TestFactorialIsTheTextbooksWhereThatApplies(t *testing.T) {
	w := world{factors: factorsOf(2, 2, 2), main: [][]float64{{1, 0.7}, {1, 1.1}, {1, 1}}, blocks: 5,
		noise: lognormal(0.1)}
	obs := w.run(rand.New(rand.NewPCG(2, 2)))
	fit := factorial(t, w, obs)
	d, err := newDesign(w.factors, obs)
	must(t, err)
	model := d.model()
	if model.freedom != 29 {
		t.Fatalf("%v degrees of freedom, want 40 − 1 − 4 − 6", model.freedom)
	}
	for _, e := range fit.Effects[:3] {
		mean := [2]float64{}
		for _, o := range obs {
			mean[o.Levels[e.Factors[0]]] += math.Log(o.Value) / 20
		}
		se := model.sigma * 2 / math.Sqrt(40)
		const t29 = 2.045230 // Student's t with 29 degrees of freedom, 97.5 %
		lo, hi := math.Exp(mean[1]-mean[0]-t29*se), math.Exp(mean[1]-mean[0]+t29*se)
		if math.Abs(e.Ratio.Lo/lo-1) > 1e-6 || math.Abs(e.Ratio.Hi/hi-1) > 1e-6 {
			t.Errorf("%v: [%v, %v], want [%v, %v]", e.Factors, e.Ratio.Lo, e.Ratio.Hi, lo, hi)
		}
	}
}

func lognormal(sd float64) func(*rand.Rand, []int) float64 {
	return func(r *rand.Rand, _ []int) float64 { return math.Exp(sd * r.NormFloat64()) }
}

func TestFactorialLostTrials(t *testing.T) {
	for name, c := range map[string]struct {
		lost    func(l []int, b int) bool
		effects string // effects that are not estimated, or only together with others
		warn    string
	}{
		"some":          {func(l []int, b int) bool { return b == 1 && l[0] == 1 && l[2] == 0 }, "", ""},
		"a combination": {func(l []int, _ int) bool { return l[0] == 1 && l[1] == 2 && l[2] == 1 }, "", ""},
		"a pair of levels": {func(l []int, _ int) bool { return l[0] == 1 && l[1] == 2 }, "[0][1] [1][2] [0 1][1 2]",
			""},
		"a level": {func(l []int, _ int) bool { return l[1] == 2 }, "[1][2] [0 1][1 2] [1 2][2 1]",
			"3 of 9 effects are not estimated"},
		"each block a level": {func(l []int, b int) bool { return l[2] != b%2 }, "", "blocks are not in the model"},
	} {
		t.Run(name, func(t *testing.T) {
			w := trio()
			w.block = 0
			w.lost = func(_ *rand.Rand, l []int, b int) bool { return c.lost(l, b) }
			w.noise = lognormal(1e-7)
			fit := w.fit(t)
			for _, e := range fit.Effects {
				spoilt := strings.Contains(" "+c.effects+" ", fmt.Sprintf(" %v%v ", e.Factors, e.Levels))
				estimated := e.Ratio.Bounded()
				if c.effects == "" || !strings.Contains(c.effects, fmt.Sprint(e.Factors)) {
					if !estimated || name != "a level" && math.Abs(e.Ratio.Mid/w.expected(e)-1) > 1e-4 {
						t.Errorf("%v %v: %+v, want %v", e.Factors, e.Levels, e, w.expected(e))
					}
				} else if spoilt && estimated {
					t.Errorf("%v %v is estimated: %+v", e.Factors, e.Levels, e)
				}
			}
			wantWarning(t, fit, c.warn)
		})
	}
}

func TestFactorialSeesWhatTheModelLacks(t *testing.T) {
	w := trio()
	w.noise = lognormal(0.05)
	w.pair = func(l []int) float64 {
		if l[0] == 1 && l[1] == 1 && l[2] == 1 {
			return 2 // interaction of three factors
		}
		return 1
	}
	wantWarning(t, w.fit(t), "more than two factors")
}

func TestFactorialErrors(t *testing.T) {
	two := factorsOf(2, 2)
	for want, c := range map[string]struct {
		factors []FactorialFactor
		obs     []FactorialObs
	}{
		"no factors":   {nil, nil},
		"no trials":    {two, nil},
		"no logarithm": {two, []FactorialObs{{Levels: []int{0, 1}}}},
	} {
		if _, err := Factorial(c.factors, c.obs, 0.95); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// With one trial of each combination, effects are estimated, but not their noise.
func TestFactorialWithoutRepetition(t *testing.T) {
	w := world{factors: factorsOf(2, 2), main: [][]float64{{1, 0.5}, {1, 2}}, blocks: 1}
	fit := w.fit(t)
	if e := fit.Effects[0]; math.Abs(e.Ratio.Mid-0.5) > 1e-9 || e.Ratio.Bounded() || len(fit.Warnings) == 0 {
		t.Errorf("%+v, warnings %q", e, fit.Warnings)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
