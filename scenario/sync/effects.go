package sync

import (
	"cmp"
	"fmt"
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
	unfinished int // valid trials that never came to serve; they are in no effect
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
	note        string
}

// tune fits the model of main effects and interactions of two for each system and set
// of conditions, and finds the best configuration.
func tune(f *analysis.Frame) []*tuning {
	var all []*tuning
	at := map[string]*tuning{}
	for _, c := range f.Cells {
		t := at[c.Pair]
		if t == nil {
			t = &tuning{name: condition(f, c), levels: map[*analysis.Cell][]int{}}
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

// condition names the system and the conditions of a cell, as far as they vary.
func condition(f *analysis.Frame, c *analysis.Cell) string {
	var names []string
	if len(f.Systems) > 1 {
		names = append(names, c.System)
	}
	for _, x := range c.Factors {
		if x.Path != "system" && !knob(x.Path) {
			names = append(names, x.Label+" "+x.Text())
		}
	}
	return strings.Join(names, ", ")
}

// configuration names the knobs of a cell.
func configuration(c *analysis.Cell) string {
	var names []string
	for _, x := range c.Factors {
		if knob(x.Path) {
			names = append(names, x.Label+" "+x.Text())
		}
	}
	return strings.Join(names, ", ")
}

// setFactors takes the knobs that vary, their levels in the order of the plan: the first
// cell of the system has every default, also where these cells lack it.
func (t *tuning) setFactors(f *analysis.Frame) {
	type level struct{ value, text string }
	var paths []string
	labels, levels := map[string]string{}, map[string][]level{}
	for _, c := range f.Cells {
		for _, x := range c.Factors {
			l := level{x.Value, x.Text()}
			if !knob(x.Path) || c.System != t.cells[0].System {
				continue
			}
			if levels[x.Path] == nil {
				paths = append(paths, x.Path)
				labels[x.Path] = x.Label
			}
			if !slices.Contains(levels[x.Path], l) {
				levels[x.Path] = append(levels[x.Path], l)
			}
		}
	}
	paths = slices.DeleteFunc(paths, func(p string) bool {
		first, _ := t.cells[0].Factor(p)
		return !slices.ContainsFunc(t.cells, func(c *analysis.Cell) bool { x, _ := c.Factor(p); return x.Value != first.Value })
	})
	for _, p := range paths {
		x := stats.FactorialFactor{Name: labels[p]}
		for _, l := range levels[p] {
			x.Levels = append(x.Levels, l.text)
		}
		t.factors = append(t.factors, x)
	}
	for _, c := range t.cells {
		for _, p := range paths {
			x, _ := c.Factor(p)
			t.levels[c] = append(t.levels[c], slices.Index(levels[p], level{x.Value, x.Text()}))
		}
		if c.Baseline {
			t.base = c
		}
	}
	if t.base == nil && len(t.factors) > 0 {
		var names []string
		for _, p := range paths {
			names = append(names, labels[p]+" "+defaults(f)[p])
		}
		t.warnings = append(t.warnings, "the default ("+strings.Join(names, ", ")+") is not among the cells, so nothing is compared with it: let `where` keep it")
	}
}

// fit computes effects, the best configuration and its gain. Cells with a trial that
// never came to serve are not considered for the best: their others would flatter them.
func (t *tuning) fit(f *analysis.Frame) {
	var obs, whole, never []stats.FactorialObs
	longest := 0.0
	for _, c := range t.cells {
		var own []stats.FactorialObs
		lost := 0
		for _, tr := range f.ValidTrials(c) {
			o := stats.FactorialObs{Levels: t.levels[c], Block: tr.Block, Value: tr.Metrics["sync_time"]}
			if tr.Outcomes[record.OK.String()] > 0 && o.Value > 0 {
				own, longest = append(own, o), max(longest, o.Value)
				continue
			}
			lost++
			o.Value = tr.Seconds
			never = append(never, o)
		}
		t.unfinished += lost
		obs = append(obs, own...)
		if lost == 0 {
			whole = append(whole, own...)
		}
	}
	if len(t.factors) == 0 || len(obs) == 0 {
		return
	}
	model, err := stats.Factorial(t.factors, obs, analysis.Confidence)
	if err != nil {
		t.warnings = append(t.warnings, "effects could not be computed: "+err.Error())
		return
	}
	t.warnings = append(t.warnings, model.Warnings...)
	for _, e := range model.Effects {
		x := effect{FactorialEffect: e}
		var names []string
		for i, k := range e.Factors {
			names = append(names, t.factors[k].Name+" "+t.factors[k].Levels[e.Levels[i]])
		}
		x.name = strings.Join(names, " × ")
		x.significant = e.Ratio.Bounded() && (e.Ratio.Lo > 1 || e.Ratio.Hi < 1) && e.PHolm <= alpha
		t.effects = append(t.effects, x)
	}
	t.doubt(obs, never, longest)
	if len(whole) > 0 {
		t.compareBest(whole)
	}
}

// doubt takes back effects that hold only of the trials that came to serve: a knob that
// makes most nodes stall may well speed up the others. Trials that never served count
// as long as they were watched, or as the longest of the others.
func (t *tuning) doubt(obs, never []stats.FactorialObs, longest float64) {
	if len(never) == 0 {
		return
	}
	for i := range never {
		never[i].Value = max(never[i].Value, longest)
	}
	all := append(slices.Clone(obs), never...)
	model, err := stats.Factorial(t.factors, all, analysis.Confidence)
	for i := range t.effects {
		e := &t.effects[i]
		more := e.lost(all, never)
		if !e.significant || !(e.Ratio.Mid < 1 && more > 0 || e.Ratio.Mid > 1 && more < 0) {
			continue
		}
		k := slices.IndexFunc(model.Effects, func(x stats.FactorialEffect) bool {
			return slices.Equal(x.Factors, e.Factors) && slices.Equal(x.Levels, e.Levels)
		})
		if err == nil && k >= 0 {
			if q := model.Effects[k]; q.PHolm <= alpha && (q.Ratio.Hi < 1 && e.Ratio.Mid < 1 || q.Ratio.Lo > 1 && e.Ratio.Mid > 1) {
				continue
			}
		}
		e.significant, e.note = false, "only of nodes that came to serve"
	}
}

// lost is how much larger the share of trials that never served is at an effect's
// levels than at the default's; of an interaction, than the two factors by themselves
// make it.
func (e *effect) lost(all, never []stats.FactorialObs) float64 {
	with := func(obs []stats.FactorialObs, levels []int) (n float64) {
		for _, o := range obs {
			is := true
			for k, f := range e.Factors {
				is = is && o.Levels[f] == levels[k]
			}
			if is {
				n++
			}
		}
		return n
	}
	more := 0.0
	for corner := range 1 << len(e.Levels) {
		levels, sign := slices.Clone(e.Levels), 1.0
		for k := range e.Factors {
			if corner>>k&1 == 0 {
				levels[k], sign = 0, -sign
			}
		}
		more += sign * with(never, levels) / max(1, with(all, levels))
	}
	if more < 1e-9 && more > -1e-9 {
		return 0
	}
	return more
}

// compareBest finds the best configuration, its gain over the default, and those that
// are not significantly worse (multiple comparisons with the best).
func (t *tuning) compareBest(obs []stats.FactorialObs) {
	best, err := stats.Best(t.factors, obs, analysis.Confidence)
	if err != nil {
		t.warnings = append(t.warnings, "configurations could not be compared: "+err.Error())
		return
	}
	at := func(levels []int) *analysis.Cell {
		for _, c := range t.cells {
			if slices.Equal(t.levels[c], levels) {
				return c
			}
		}
		return nil
	}
	for _, c := range best.Cells {
		if c.Ratio.Lo == 1 && c.Ratio.Hi == 1 {
			t.best = at(c.Levels)
		}
	}
	for _, c := range best.Cells {
		if cell := at(c.Levels); c.Tied && cell != t.best {
			t.tied = append(t.tied, cell)
		}
	}
	if t.base == nil || t.best == nil || t.base == t.best || !slices.ContainsFunc(obs, func(o stats.FactorialObs) bool { return slices.Equal(o.Levels, t.levels[t.base]) }) {
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
func (v *view) tables(f *analysis.Frame) ([]analysis.Table, error) {
	v.tunings = tune(f)
	effects := analysis.Table{ID: "effects", Title: "What each knob buys",
		Caption: "Factor by which a level multiplies the time, over all levels of the other knobs; an interaction is what two levels together add to that. Least squares on ln(time), Holm-corrected.",
		Head: []analysis.TableColumn{{Key: "where", Name: "under"}, {Key: "effect", Name: "change", Narrow: true}, {Key: "kind", Name: "kind"},
			{Key: "ratio", Name: "time", Unit: "×", Narrow: true}, {Key: "p", Name: "p (Holm)", Unit: "1", Narrow: true}, {Key: "result", Name: "result", Narrow: true}}}
	best := analysis.Table{ID: "best", Title: "Best configuration", Caption: "The fastest whose trials all came to serve, its time relative to the default (99 % interval), and those not significantly slower.",
		Head: []analysis.TableColumn{{Key: "where", Name: "under"}, {Key: "best", Name: "best", Narrow: true}, {Key: "gain", Name: "time", Unit: "×", Narrow: true},
			{Key: "tied", Name: "not significantly slower", Narrow: true}}}
	for _, t := range v.tunings {
		for _, e := range t.effects {
			ratio := analysis.Value{Number: analysis.Num(e.Ratio.Mid), Lo: analysis.Unknown, Hi: analysis.Unknown}
			if e.Ratio.Bounded() {
				ratio.Lo, ratio.Hi = analysis.Num(e.Ratio.Lo), analysis.Num(e.Ratio.Hi)
			}
			effects.Rows = append(effects.Rows, []analysis.Value{analysis.Text(t.name), analysis.Text(e.name), analysis.Text(e.Kind), ratio,
				analysis.Number(e.PHolm), e.result()})
		}
		if t.best == nil || len(t.factors) == 0 {
			continue
		}
		var tied []string
		for _, c := range t.tied {
			tied = append(tied, configuration(c))
		}
		gain := analysis.Value{Number: analysis.Num(t.gain.Mid), Lo: analysis.Num(t.gain.Lo), Hi: analysis.Num(t.gain.Hi)}
		switch {
		case t.best == t.base:
			gain = analysis.Text("the default itself")
		case t.base == nil:
			gain = analysis.Text("the default is not among the cells")
		case t.gain.N == 0:
			gain = analysis.Text("unknown: not all trials of the default served")
		}
		best.Rows = append(best.Rows, []analysis.Value{analysis.Text(t.name), analysis.Text(configuration(t.best)), gain, analysis.Text(strings.Join(tied, "; "))})
	}
	var all []analysis.Table
	for _, t := range []analysis.Table{best, effects} {
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all, nil
}

func (e *effect) result() analysis.Value {
	v := analysis.Text("not significant")
	switch {
	case !e.Ratio.Bounded():
		v.Text = "inconclusive"
	case e.note != "":
		v.Text = e.note
	case e.significant && e.Ratio.Mid < 1:
		v.Text, v.Tone = "faster", analysis.Good
	case e.significant:
		v.Text, v.Tone = "slower", analysis.Warn
	}
	if e.significant && e.Kind == stats.Interaction {
		v.Text, v.Tone = "interaction", analysis.Neutral
	}
	return v
}

// verdict names the best configuration of each system and set of conditions.
func (v *view) verdict(r *analysis.Result) *analysis.Verdict {
	if !slices.ContainsFunc(v.tunings, func(t *tuning) bool { return len(t.factors) > 0 && t.best != nil }) {
		return nil
	}
	tone := analysis.Neutral
	var parts []string
	for _, t := range v.tunings {
		if t.best == nil {
			continue
		}
		where := ""
		if t.name != "" {
			where = t.name + ": "
		}
		switch {
		case t.gain.N > 0 && t.gain.Hi < 1:
			tone = analysis.Good
			parts = append(parts, fmt.Sprintf("%s%s is fastest: %s of the default's time", where, configuration(t.best),
				words.Range(t.gain.Mid, t.gain.Lo, t.gain.Hi, "×")))
		case t.base == nil:
			parts = append(parts, where+configuration(t.best)+" is fastest; the default is not among the cells")
		case t.best != t.base && t.gain.N == 0:
			parts = append(parts, where+configuration(t.best)+" is fastest; the default has no time to compare with")
		default:
			parts = append(parts, where+"no configuration is significantly faster than the default")
		}
	}
	text := words.Capital(strings.Join(parts, "; ")) + "."
	if r.Found("never-served") {
		text += " In some trials the node never came to serve."
		tone = analysis.Bad
	}
	return &analysis.Verdict{Text: text, Tone: tone}
}
