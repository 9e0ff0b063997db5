package sync

import (
	"cmp"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

const (
	alpha = 1 - analysis.Confidence
	// gainConfidence is that of the gain of the best configuration: every report names
	// one, so of those in which no knob does anything fewer than one in a hundred may
	// praise one.
	gainConfidence = 0.99
)

// tuning is the factorial of one system under one set of conditions.
type tuning struct {
	name       string // system and conditions, where there are several
	factors    []stats.FactorialFactor
	cells      []*analysis.Cell
	levels     map[*analysis.Cell][]int
	effects    []effect
	best, base *analysis.Cell
	gain       stats.Interval // time of the best divided by that of the default
	tied       []*analysis.Cell
	warnings   []string
}

// effect is what a level, or two levels together, multiplies the time by.
type effect struct {
	stats.FactorialEffect
	name        string
	significant bool
	partial     bool // significant among the nodes that came to serve, and not among all
}

// tune fits the model of main effects and interactions of two for each system and set
// of conditions, and finds the best configuration.
func tune(f *analysis.Frame) []*tuning {
	var all []*tuning
	at := map[string]*tuning{}
	for _, c := range f.Cells {
		t := at[c.Pair]
		if t == nil {
			t = &tuning{name: levelNames(c, false), levels: map[*analysis.Cell][]int{}}
			if len(f.Systems) > 1 {
				t.name = strings.TrimSuffix(c.System+", "+t.name, ", ")
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

// levelNames are the levels of a cell's knobs or, with false, of its conditions.
func levelNames(c *analysis.Cell, knobs bool) string {
	var names []string
	for _, x := range c.Factors {
		if x.Path != "system" && knob(x.Path) == knobs {
			names = append(names, x.Label+" "+x.Text())
		}
	}
	return strings.Join(names, ", ")
}

// setFactors takes the knobs that vary, their levels in the order of the plan: the first
// cell of the system has every default, also where these cells lack it.
func (t *tuning) setFactors(f *analysis.Frame) {
	var paths, preset []string
	for _, first := range t.cells[0].Factors {
		value := func(c *analysis.Cell) string { x, _ := c.Factor(first.Path); return x.Value }
		varies := func(c *analysis.Cell) bool { return value(c) != first.Value }
		if knob(first.Path) && slices.ContainsFunc(t.cells, varies) {
			paths = append(paths, first.Path)
			preset = append(preset, first.Label+" "+defaults(f)[first.Path])
			t.factors = append(t.factors, stats.FactorialFactor{Name: first.Label})
		}
	}
	for k, path := range paths {
		var values []string
		for _, c := range f.Cells {
			x, has := c.Factor(path)
			if has && c.System == t.cells[0].System && !slices.Contains(values, x.Value) {
				values, t.factors[k].Levels = append(values, x.Value), append(t.factors[k].Levels, x.Text())
			}
		}
		for _, c := range t.cells {
			x, _ := c.Factor(path)
			t.levels[c] = append(t.levels[c], slices.Index(values, x.Value))
		}
	}
	if i := slices.IndexFunc(t.cells, func(c *analysis.Cell) bool { return c.Baseline }); i >= 0 {
		t.base = t.cells[i]
	} else if len(paths) > 0 {
		t.warnings = append(t.warnings, "the default ("+strings.Join(preset, ", ")+
			") is not among the cells, so nothing is compared with it: let `where` keep it")
	}
}

// fit computes effects, the best configuration and its gain. Effects are of the trials that
// came to serve, and significant only if they are with the others, too, which then count as
// long as they were watched, or as the longest. Cells with such a trial are not considered
// for the best: their others would flatter them.
func (t *tuning) fit(f *analysis.Frame) {
	var served, whole, never []stats.FactorialObs
	longest := 0.0
	for _, c := range t.cells {
		var own []stats.FactorialObs
		lost := len(never)
		for _, tr := range f.ValidTrials(c) {
			o := stats.FactorialObs{Levels: t.levels[c], Block: tr.Block, Value: tr.Metrics["sync_time"]}
			if tr.Outcomes[record.OK.String()] > 0 && o.Value > 0 {
				own, longest = append(own, o), max(longest, o.Value)
				continue
			}
			o.Value = tr.Seconds
			never = append(never, o)
		}
		served = append(served, own...)
		if len(never) == lost {
			whole = append(whole, own...)
		}
	}
	if len(t.factors) == 0 || len(served) == 0 {
		return
	}
	for i := range never {
		never[i].Value = max(never[i].Value, longest)
	}
	model, err := stats.Factorial(t.factors, served, analysis.Confidence)
	if err != nil {
		t.warnings = append(t.warnings, "effects could not be computed: "+err.Error())
		return
	}
	all, err := stats.Factorial(t.factors, append(served, never...), analysis.Confidence)
	t.warnings = append(t.warnings, model.Warnings...)
	for i, e := range model.Effects {
		var names []string
		for i, k := range e.Factors {
			names = append(names, t.factors[k].Name+" "+t.factors[k].Levels[e.Levels[i]])
		}
		x := effect{FactorialEffect: e, name: strings.Join(names, " × "), significant: significant(e)}
		if a := all.Effects; x.significant && (err != nil || !significant(a[i]) ||
			(a[i].Ratio.Mid > 1) != (e.Ratio.Mid > 1)) {
			x.significant, x.partial = false, true
		}
		t.effects = append(t.effects, x)
	}
	if len(whole) > 0 {
		t.compareBest(whole)
	}
}

func significant(e stats.FactorialEffect) bool {
	return e.Ratio.Bounded() && (e.Ratio.Lo > 1 || e.Ratio.Hi < 1) && e.PHolm <= alpha
}

// compareBest finds the best configuration, its gain over the default, and those that
// are not significantly worse (multiple comparisons with the best).
func (t *tuning) compareBest(obs []stats.FactorialObs) {
	best, err := stats.Best(t.factors, obs, analysis.Confidence)
	if err != nil {
		t.warnings = append(t.warnings, "configurations could not be compared: "+err.Error())
		return
	}
	hasBase := false
	for _, c := range best.Cells {
		has := func(x *analysis.Cell) bool { return slices.Equal(t.levels[x], c.Levels) }
		cell := t.cells[slices.IndexFunc(t.cells, has)]
		hasBase = hasBase || cell == t.base
		switch {
		case c.Ratio.Lo == 1 && c.Ratio.Hi == 1:
			t.best = cell
		case c.Tied:
			t.tied = append(t.tied, cell)
		}
	}
	if !hasBase || t.base == t.best {
		return
	}
	g, err := stats.BestGain(t.factors, obs, gainConfidence)
	if err != nil {
		t.warnings = append(t.warnings, "the best could not be compared with the default: "+err.Error())
		return
	}
	t.gain = g.Ratio
}

// limits are what the effects of knobs do not say: those that lost trials mix
// with each other, and where the model does not describe the trials.
func (v *view) limits(*analysis.Result) (cases []analysis.Case) {
	for _, t := range v.tunings {
		for _, w := range t.warnings {
			cases = append(cases, analysis.Case{Where: t.name, Name: cmp.Or(t.name, "effects"), Text: w})
		}
	}
	return cases
}

// tables are the effects of the knobs and the best configurations.
func (v *view) tables(f *analysis.Frame) []analysis.Table {
	v.tunings = tune(f)
	best, effects := f.View.Head("best"), f.View.Head("effects")
	for _, t := range v.tunings {
		for _, e := range t.effects {
			effects.Add(t.name, e.name, e.Kind, analysis.Estimate(e.Ratio), e.PHolm, e.result())
		}
		if t.best == nil || len(t.factors) == 0 {
			continue
		}
		var tied []string
		for _, c := range t.tied {
			tied = append(tied, levelNames(c, true))
		}
		gain := analysis.Text(t.noGain())
		if gain.Text == "" {
			gain = analysis.Estimate(t.gain)
		}
		best.Add(t.name, levelNames(t.best, true), gain, strings.Join(tied, "; "))
	}
	return []analysis.Table{best, effects}
}

// noGain is why there is no gain over the default; empty: there is one.
func (t *tuning) noGain() string {
	switch {
	case t.best == t.base:
		return "the default itself"
	case t.base == nil:
		return "the default is not among the cells"
	case t.gain.N == 0:
		return "not all trials of the default served"
	}
	return ""
}

func (e *effect) result() analysis.Value {
	v := analysis.Text("not significant")
	switch {
	case !e.Ratio.Bounded():
		v.Text = "inconclusive"
	case e.partial:
		v.Text = "only of nodes that came to serve"
	case e.significant && e.Kind == stats.Interaction:
		v.Text, v.Tone = "interaction", analysis.Neutral
	case e.significant && e.Ratio.Mid < 1:
		v.Text, v.Tone = "faster", analysis.Good
	case e.significant:
		v.Text, v.Tone = "slower", analysis.Warn
	}
	return v
}

// verdictWords say of one system and set of conditions which configuration is best.
const verdictWords = "{{with .Where}}{{.}}: {{end}}{{if .Time}}{{.Best}} is fastest: {{.Time}} of the default's time" +
	"{{else if .Why}}{{.Best}} is fastest; {{.Why}}{{else}}no configuration is significantly faster than the " +
	"default{{end}}"

// verdict names the best configuration of each system and set of conditions.
func (v *view) verdict(r *analysis.Result) *analysis.Verdict {
	tone := analysis.Neutral
	var parts []string
	for _, t := range v.tunings {
		if t.best == nil {
			continue
		}
		said := map[string]string{"Where": t.name, "Best": levelNames(t.best, true)}
		if t.gain.N > 0 && t.gain.Hi < 1 {
			tone, said["Time"] = analysis.Good, words.Range(t.gain.Mid, t.gain.Lo, t.gain.Hi, "×")
		} else if t.best != t.base {
			said["Why"] = t.noGain()
		}
		parts = append(parts, analysis.Fill(verdictWords, said))
	}
	if len(parts) == 0 {
		return nil
	}
	text := words.Capital(strings.Join(parts, "; ")) + "."
	if r.Found("never-served") {
		text += " In some trials the node never served."
		tone = analysis.Bad
	}
	return &analysis.Verdict{Text: text, Tone: tone}
}
