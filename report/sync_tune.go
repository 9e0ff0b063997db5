package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/stats"
)

// Tuning is what the knobs of one system do under one set of conditions, or, with
// All, what all factors do over all conditions.
type Tuning struct {
	System  string        `json:"system"`
	Where   string        `json:"where,omitempty"` // the conditions; empty: none vary
	All     bool          `json:"all,omitempty"`   // conditions are factors, too
	Factors []TunedFactor `json:"factors"`
	Cells   int           `json:"cells"`  // combinations with a trial that came to serve
	Trials  int           `json:"trials"` // valid ones that came to serve
	Absent  int           `json:"absent"` // combinations of the levels without one
	// Unfinished are valid trials that never came to serve. They are in no effect; one
	// that they speak against, and that is not there when they count, is not shown.
	Unfinished int          `json:"unfinished"`
	Whole      int          `json:"whole"`             // combinations all of whose trials came to serve: the best is one of these
	Default    string       `json:"default,omitempty"` // cells; empty: none of its trials came to serve
	Best       string       `json:"best,omitempty"`
	Gain       *Ratio       `json:"gain,omitempty"`  // time of the best found, divided by that of the default
	Alike      []AsGood     `json:"alike,omitempty"` // what cannot be told from the best
	Effects    []KnobEffect `json:"effects,omitempty"`
	Sigma      Num          `json:"sigma"`       // standard deviation of the noise of ln(time)
	BlockSD    Num          `json:"block_sd"`    // of ln(time) between blocks, that of the noise taken off; null: they are not in the model
	Freedom    int          `json:"freedom"`     // degrees of freedom of it
	LackOfFit  Num          `json:"lack_of_fit"` // p of: no more than two factors act together
	Warnings   []string     `json:"warnings,omitempty"`

	best, base *Cell
	factors    []syncFactor
	cells      []*Synced
	gain       Ratio
	before     Num // seconds: the geometric means that the gain is of
	after      Num
}

// TunedFactor is a factor with its levels, the default first.
type TunedFactor struct {
	Path   string   `json:"path"`
	Label  string   `json:"label"`
	Levels []string `json:"levels"`
}

// Level is a factor at one of its levels.
type Level struct {
	Path  string `json:"path"`
	Label string `json:"label"`
	Value string `json:"value"`

	text string
}

// name is the level in words: "storage ram".
func (l *Level) name() string { return l.Label + " " + l.text }

// KnobEffect is a ratio of times: of a level to the default, over all levels of the
// other factors; or, of two, by what the one ratio is multiplied by the other.
type KnobEffect struct {
	Kind    string   `json:"kind"` // "main", "interaction"
	Of      []Level  `json:"of"`
	Value   Num      `json:"value"`
	Lo      Num      `json:"lo"`
	Hi      Num      `json:"hi"`
	P       Num      `json:"p"`
	PHolm   Num      `json:"p_holm"`
	Shown   bool     `json:"shown"` // false: nothing is shown ("~")
	Aliases []string `json:"aliases,omitempty"`
	Warn    string   `json:"warn,omitempty"`
	// Survivors: it is that of the trials that came to serve, and not there when the
	// others count as longer than any.
	Survivors bool `json:"survivors,omitempty"`
	// Of an interaction: what the second level does when the first is at its default,
	// and when it is not; then the other way round.
	Given []Ratio `json:"given,omitempty"`

	factors, levels []int
}

// interaction reports whether the effect is one of two factors.
func (e *KnobEffect) interaction() bool { return e.Kind == stats.Interaction }

// name is the effect in words: "storage ram", "storage ram × subscribers none".
func (e *KnobEffect) name() string {
	var words []string
	for _, l := range e.Of {
		words = append(words, l.name())
	}
	return strings.Join(words, " × ")
}

// words is the effect in numbers, with "~" when nothing is shown.
func (e *KnobEffect) words() string {
	f := e.found()
	return f.Words()
}

// small reports whether the whole interval lies below what a verdict speaks of: the
// effect is known, and none to speak of.
func (e *KnobEffect) small() bool {
	f := e.found()
	return f.Small()
}

// AsGood is a combination that cannot be told from the best.
type AsGood struct {
	Cell    string `json:"cell"`
	Changed string `json:"changed"`
	Changes int    `json:"changes"`
	Ratio   Ratio  `json:"ratio"` // of its time to the best's
}

// tune analyses each system under each set of conditions, and, where conditions
// vary, over all of them together.
func (r *Report) tune() {
	type place struct{ system, where string }
	of := map[place][]*Synced{}
	var order []place
	systems := map[string][]*Synced{}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		p := place{s.System, s.Where}
		if of[p] == nil {
			order = append(order, p)
		}
		of[p], systems[s.System] = append(of[p], s), append(systems[s.System], s)
	}
	r.Tunings = []Tuning{}
	places := map[string]int{}
	for _, p := range order {
		places[p.system]++
		var knobs []syncFactor
		for _, f := range r.factors {
			if f.knob() {
				knobs = append(knobs, f)
			}
		}
		t := Tuning{System: p.system, Where: p.where, factors: knobs, cells: of[p], Sigma: unknown, BlockSD: unknown, LackOfFit: unknown}
		r.analyse(&t)
		r.Tunings = append(r.Tunings, t)
	}
	for _, sys := range r.Systems {
		if places[sys.Name] > 1 {
			t := Tuning{System: sys.Name, All: true, factors: r.factors, cells: systems[sys.Name], Sigma: unknown, BlockSD: unknown, LackOfFit: unknown}
			r.analyse(&t)
			r.Tunings = append(r.Tunings, t)
		}
	}
}

// varied leaves of the factors those that vary among the cells.
func varied(factors []syncFactor, cells []*Synced) []syncFactor {
	return slices.DeleteFunc(slices.Clone(factors), func(f syncFactor) bool {
		seen := map[int]bool{}
		for _, s := range cells {
			seen[f.level(s.cell)] = true
		}
		return len(seen) < 2
	})
}

// analyse fills a tuning from the trials of its cells.
func (r *Report) analyse(t *Tuning) {
	t.factors = varied(t.factors, t.cells)
	t.Factors = []TunedFactor{}
	var factors []stats.FactorialFactor
	for _, f := range t.factors {
		tf := TunedFactor{Path: f.Path, Label: f.Label}
		sf := stats.FactorialFactor{Name: f.Label}
		for _, l := range f.Levels {
			tf.Levels, sf.Levels = append(tf.Levels, l.Value), append(sf.Levels, l.Text())
		}
		t.Factors, factors = append(t.Factors, tf), append(factors, sf)
	}
	var obs, whole, never []stats.FactorialObs
	longest := 0.0
	for _, s := range t.cells {
		levels := t.levels(s.cell)
		var own []stats.FactorialObs
		for _, tr := range s.trials {
			if v := tr.Metrics["sync_time"]; tr.served() && v > 0 {
				own = append(own, stats.FactorialObs{Levels: levels, Block: tr.Block, Value: v})
				longest = max(longest, v)
			} else {
				never = append(never, stats.FactorialObs{Levels: levels, Block: tr.Block, Value: tr.end - tr.begun})
			}
		}
		t.Trials += len(own)
		t.Unfinished += len(s.trials) - len(own)
		if len(own) == 0 {
			continue
		}
		t.Cells++
		obs = append(obs, own...)
		if len(own) < len(s.trials) {
			continue
		}
		whole = append(whole, own...)
		t.Whole++
		if s.cell.Baseline && !t.All {
			t.base, t.Default = s.cell, s.cell.ID
		}
	}
	if len(factors) == 0 {
		if t.best = t.base; t.best != nil {
			t.Best = t.best.ID
		}
		return
	}
	if len(obs) > 0 {
		r.effects(t, factors, obs)
		for i := range never {
			never[i].Value = max(never[i].Value, longest)
		}
		t.doubt(factors, append(obs, never...), never)
	}
	if len(whole) > 0 && !t.All {
		r.compareBest(t, factors, whole)
	}
}

// levels are the levels of a cell, by factor.
func (t *Tuning) levels(c *Cell) []int {
	var levels []int
	for i := range t.factors {
		levels = append(levels, t.factors[i].level(c))
	}
	return levels
}

// cellAt is the cell at levels; nil: there is none.
func (t *Tuning) cellAt(levels []int) *Synced {
	for _, s := range t.cells {
		if slices.Equal(t.levels(s.cell), levels) {
			return s
		}
	}
	return nil
}

// levelOf is a factor at a level.
func (t *Tuning) levelOf(factor, level int) Level {
	f := &t.factors[factor]
	return Level{f.Path, f.Label, f.Levels[level].Value, f.Levels[level].Text()}
}

// effects fits the model of main effects and interactions of two.
func (r *Report) effects(t *Tuning, factors []stats.FactorialFactor, obs []stats.FactorialObs) {
	fit, err := stats.Factorial(factors, obs, Confidence)
	if err != nil {
		t.Warnings = append(t.Warnings, "effects could not be computed: "+err.Error())
		return
	}
	t.Sigma, t.Freedom, t.LackOfFit, t.Absent = Num(fit.Sigma), int(fit.DF), Num(fit.LackOfFit), len(fit.Missing)
	t.Warnings = append(t.Warnings, fit.Warnings...)
	if fit.Blocked {
		t.BlockSD = Num(fit.BlockSD)
	}
	if fit.DF == 0 {
		t.Sigma, t.BlockSD = unknown, unknown
	}
	for _, e := range fit.Effects {
		x := KnobEffect{Kind: e.Kind, Value: Num(e.Ratio.Mid), Lo: Num(e.Ratio.Lo), Hi: Num(e.Ratio.Hi), P: Num(e.P), PHolm: Num(e.PHolm), Aliases: e.AliasedWith, Warn: e.Ratio.Warn, factors: e.Factors, levels: e.Levels}
		if !e.Ratio.Bounded() {
			x.Lo, x.Hi = unknown, unknown
		}
		for i := range e.Factors {
			x.Of = append(x.Of, t.levelOf(e.Factors[i], e.Levels[i]))
		}
		x.Shown = x.Lo.Known() && x.Hi.Known() && (x.Lo > 1 || x.Hi < 1) && float64(x.PHolm) <= alpha
		if x.interaction() {
			x.Given = r.given(t, &x)
		}
		t.Effects = append(t.Effects, x)
	}
}

// doubt takes back what is only shown of the trials that came to serve: a knob that
// makes most nodes stall may well speed up the others. An effect is doubted when more
// of the trials on its faster side never served, and taken back when it is not shown
// once these count, each at the time for which it was watched or at the longest of
// any, whichever is more: what it would have taken is more still. all has them, too.
func (t *Tuning) doubt(factors []stats.FactorialFactor, all, never []stats.FactorialObs) {
	if len(never) == 0 {
		return
	}
	fit, err := stats.Factorial(factors, all, Confidence)
	limit := math.Log1p(EffectFloor)
	for i := range t.Effects {
		e := &t.Effects[i]
		more, counts := t.never(e, all, never)
		small, shown := e.small(), e.Shown && (e.Value < 1 && more > 0 || e.Value > 1 && more < 0)
		if !shown && !(small && more != 0) {
			continue
		}
		same := slices.IndexFunc(fit.Effects, func(x stats.FactorialEffect) bool {
			return slices.Equal(x.Factors, e.factors) && slices.Equal(x.Levels, e.levels)
		})
		if err == nil && same >= 0 && fit.Effects[same].Ratio.Bounded() {
			x := fit.Effects[same]
			lo, hi := x.Ratio.Lo, x.Ratio.Hi
			if shown && x.PHolm <= alpha && (hi < 1 && e.Value < 1 || lo > 1 && e.Value > 1) || !shown && max(math.Abs(math.Log(lo)), math.Abs(math.Log(hi))) < limit {
				continue
			}
		}
		e.Survivors, e.Shown = true, false
		e.Warn = joined([]string{e.Warn, "of the nodes that came to serve alone: never served " + counts})
	}
}

// never is how much larger the share of the trials that never came to serve is at an
// effect's levels than at the default's: of an interaction, than the two factors by
// themselves make it; and the counts: "4 of 24 with timeouts short, 0 of 24 with
// timeouts default".
func (t *Tuning) never(e *KnobEffect, all, never []stats.FactorialObs) (more float64, words string) {
	with := func(obs []stats.FactorialObs, levels []int) int {
		n := 0
		for _, o := range obs {
			is := true
			for k, f := range e.factors {
				is = is && o.Levels[f] == levels[k]
			}
			if is {
				n++
			}
		}
		return n
	}
	var said []string
	for corner := 1<<len(e.levels) - 1; corner >= 0; corner-- {
		levels, sign := slices.Clone(e.levels), 1.0
		var names []string
		for k, f := range e.factors {
			if corner>>k&1 == 0 {
				levels[k], sign = 0, -sign
			}
			l := t.levelOf(f, levels[k])
			names = append(names, l.name())
		}
		n, of := with(never, levels), with(all, levels)
		more += sign * float64(n) / float64(max(1, of))
		said = append(said, fmt.Sprintf("%d of %d with %s", n, of, strings.Join(names, " and ")))
	}
	if math.Abs(more) < 1e-9 {
		more = 0
	}
	return more, strings.Join(said, ", ")
}

// given is what each of two levels does while the other factor is at its default,
// and at the other level: pairs of trials of one block that differ in nothing else.
func (r *Report) given(t *Tuning, e *KnobEffect) []Ratio {
	var all []Ratio
	for _, which := range []int{1, 0} {
		other := 1 - which
		for _, at := range []int{0, e.levels[other]} {
			var logs []float64
			for _, s := range t.cells {
				levels := t.levels(s.cell)
				if levels[e.factors[other]] != at || levels[e.factors[which]] != 0 {
					continue
				}
				levels[e.factors[which]] = e.levels[which]
				with := t.cellAt(levels)
				if with == nil {
					continue
				}
				xs, ys, _ := paired(with.cell.Metrics[r.headline], s.cell.Metrics[r.headline])
				for i := range xs {
					logs = append(logs, math.Log(xs[i]/ys[i]))
				}
			}
			q := ratioOfLogs(logs)
			all = append(all, q)
		}
	}
	return all
}
