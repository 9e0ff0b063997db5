package analysis

import (
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// gainConfidence is the confidence of the gain of the best configuration: every report names one,
// so if no knob has an effect, fewer than one in a hundred reports may claim a gain.
const gainConfidence = 0.99

// Tuning is the factorial of one system under one set of conditions: the effect of each of its
// knobs (the factors that a user may choose) on a time.
type Tuning struct {
	Name     string // system and conditions, if there are several
	Factors  []stats.FactorialFactor
	Effects  []Effect
	Best     *Cell // the best configuration; nil: none is known
	Base     *Cell // the default: the first of the cells
	Tied     []*Cell
	Gain     stats.Interval // time of the best divided by that of the default
	Warnings []string

	metric string
	knob   func(path string) bool
	cells  []*Cell
	levels map[*Cell][]int
}

// Effect is the factor by which a level, or two levels together, multiply the time.
type Effect struct {
	stats.FactorialEffect
	Name        string
	significant bool
	partial     bool // significant among the trials that succeeded, but not among all
}

// Tune fits the model of main effects and interactions of two for each system and set
// of conditions, and finds the best configuration.
func Tune(f *Frame, metric string, knob func(path string) bool) []*Tuning {
	var all []*Tuning
	at := map[string]*Tuning{}
	for _, c := range f.Cells {
		t := at[c.Pair]
		if t == nil {
			t = &Tuning{metric: metric, knob: knob, levels: map[*Cell][]int{}, Base: c}
			t.Name = t.names(c, false)
			if len(f.Systems) > 1 {
				t.Name = strings.TrimSuffix(c.System+", "+t.Name, ", ")
			}
			at[c.Pair], all = t, append(all, t)
		}
		t.cells = append(t.cells, c)
	}
	for _, t := range all {
		t.setFactors(f)
		t.fit(f)
	}
	return all
}

// Levels lists the levels of a cell's knobs.
func (t *Tuning) Levels(c *Cell) string { return t.names(c, true) }

// names lists the levels of a cell's knobs or, with false, of its conditions.
func (t *Tuning) names(c *Cell, knobs bool) string {
	return c.levels(", ", func(x Factor) bool { return x.Path != "system" && t.knob(x.Path) == knobs })
}

// setFactors sets the knobs that vary, with their levels in the order of the plan.
func (t *Tuning) setFactors(f *Frame) {
	var paths []string
	for _, of := range t.cells[0].Factors {
		value := func(c *Cell) string { x, _ := c.Factor(of.Path); return x.Value }
		varies := func(c *Cell) bool { return value(c) != of.Value }
		if t.knob(of.Path) && slices.ContainsFunc(t.cells, varies) {
			paths = append(paths, of.Path)
			t.Factors = append(t.Factors, stats.FactorialFactor{Name: of.Label})
		}
	}
	for k, path := range paths {
		var values []string
		for _, c := range f.Cells {
			x, has := c.Factor(path)
			if has && c.System == t.cells[0].System && !slices.Contains(values, x.Value) {
				values, t.Factors[k].Levels = append(values, x.Value), append(t.Factors[k].Levels, x.Text())
			}
		}
		for _, c := range t.cells {
			x, _ := c.Factor(path)
			t.levels[c] = append(t.levels[c], slices.Index(values, x.Value))
		}
	}
}

// fit computes effects, the best configuration and its gain. Effects are estimated from the
// trials that succeeded, and are significant only if they also are with the failed trials, which
// count as long as they were watched, or as the longest. Cells with failed trials are not
// considered for the best, because their other trials would be biased.
func (t *Tuning) fit(f *Frame) {
	var done, whole, never []stats.FactorialObs
	longest := 0.0
	for _, c := range t.cells {
		var own []stats.FactorialObs
		lost := len(never)
		for _, tr := range f.ValidTrials(c) {
			o := stats.FactorialObs{Levels: t.levels[c], Block: tr.Block, Value: tr.Metrics[t.metric]}
			if tr.Outcomes[record.OK.String()] > 0 && o.Value > 0 {
				own, longest = append(own, o), max(longest, o.Value)
				continue
			}
			o.Value = tr.Seconds
			never = append(never, o)
		}
		done = append(done, own...)
		if len(never) == lost {
			whole = append(whole, own...)
		}
	}
	if len(t.Factors) == 0 || len(done) == 0 {
		return
	}
	for i := range never {
		never[i].Value = max(never[i].Value, longest)
	}
	model, err := stats.Factorial(t.Factors, done, Confidence)
	if err != nil {
		t.Warnings = append(t.Warnings, "effects could not be computed: "+err.Error())
		return
	}
	all, err := stats.Factorial(t.Factors, append(done, never...), Confidence)
	t.Warnings = append(t.Warnings, model.Warnings...)
	for i, e := range model.Effects {
		var names []string
		for i, k := range e.Factors {
			names = append(names, t.Factors[k].Name+" "+t.Factors[k].Levels[e.Levels[i]])
		}
		x := Effect{FactorialEffect: e, Name: strings.Join(names, " × "), significant: significant(e)}
		if a := all.Effects; x.significant && (err != nil || !significant(a[i]) ||
			(a[i].Ratio.Mid > 1) != (e.Ratio.Mid > 1)) {
			x.significant, x.partial = false, true
		}
		t.Effects = append(t.Effects, x)
	}
	if len(whole) > 0 {
		t.compareBest(whole)
	}
}

func significant(e stats.FactorialEffect) bool {
	return e.Ratio.Bounded() && (e.Ratio.Lo > 1 || e.Ratio.Hi < 1) && e.PHolm <= 1-Confidence
}

// compareBest finds the best configuration, its gain over the default, and those that
// are not significantly worse (multiple comparisons with the best).
func (t *Tuning) compareBest(obs []stats.FactorialObs) {
	best, gain, err := stats.Best(t.Factors, obs, Confidence, gainConfidence)
	if err != nil {
		t.Warnings = append(t.Warnings, "configurations could not be compared: "+err.Error())
		return
	}
	hasBase := false
	for _, c := range best {
		has := func(x *Cell) bool { return slices.Equal(t.levels[x], c.Levels) }
		cell := t.cells[slices.IndexFunc(t.cells, has)]
		hasBase = hasBase || cell == t.Base
		switch {
		case c.Ratio.Lo == 1 && c.Ratio.Hi == 1:
			t.Best = cell
		case c.Tied:
			t.Tied = append(t.Tied, cell)
		}
	}
	if hasBase && t.Base != t.Best {
		t.Gain = gain
	}
}

// NoGain says why there is no gain over the default; empty if there is one.
func (t *Tuning) NoGain() string {
	switch {
	case t.Best == t.Base:
		return "the default itself"
	case t.Gain.N == 0:
		return "not all trials of the default succeeded"
	}
	return ""
}

// Result returns the effect as an entry of a table.
func (e *Effect) Result() Value {
	v := Text("not significant")
	switch {
	case !e.Ratio.Bounded():
		v.Text = "inconclusive"
	case e.partial:
		v.Text = "only of trials that succeeded"
	case e.significant && len(e.Factors) == 2:
		v.Text, v.Tone = "interaction", Neutral
	case e.significant && e.Ratio.Mid < 1:
		v.Text, v.Tone = "faster", Good
	case e.significant:
		v.Text, v.Tone = "slower", Warn
	}
	return v
}
