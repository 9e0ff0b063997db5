package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// drawSyncs makes the figures of the scenario sync.
func (r *Report) drawSyncs(*input) error {
	times := r.timesFigure()
	if n := len(times.Panels); n > 0 {
		hero := times
		hero.ID, hero.First = "hero", r.mostGained(hero)
		r.Hero = &hero
		if n > 1 {
			r.add(times)
		}
	}
	r.add(r.effectsFigure())
	r.add(r.interactionFigure())
	r.add(r.studyFigure())
	r.add(r.shapeFigure("time"))
	r.add(r.shapeFigure("useful"))
	r.add(r.heightFigure("blocks"))
	r.add(r.heightFigure("wire"))
	r.add(r.lineFigure())
	r.add(r.peersFigure())
	r.add(r.usedFigure())
	return nil
}

// mostGained is the panel of the conditions under which the best gains most.
func (r *Report) mostGained(f Figure) int {
	first, least := 0, Num(1)
	for _, t := range r.tunings() {
		for i := range f.Panels {
			if f.Panels[i].Title == r.place(t) && t.gain.Shown && t.gain.Value < least {
				first, least = i, t.gain.Value
			}
		}
	}
	return first
}

// pairWords are the interactions of two factors: of several the least and the
// largest.
func (t *Tuning) pairWords(factors []int) string {
	var least, most *KnobEffect
	for i := range t.Effects {
		e := &t.Effects[i]
		if !slices.Equal(e.factors, factors) || !e.Value.Known() {
			continue
		}
		if least == nil || e.Value < least.Value {
			least = e
		}
		if most == nil || e.Value > most.Value {
			most = e
		}
	}
	if least == most {
		return least.words()
	}
	return least.words() + " to " + most.words()
}

// mostRows bounds the configurations of a figure; the tables have all.
const mostRows = 24

// rowsOf picks the cells of a tuning that are drawn: slow ones first, the default and
// the best always among them, those nearest to the best before the others.
func (r *Report) rowsOf(t *Tuning) (cells []*Synced, left int) {
	for _, s := range t.cells {
		if s.Trials > 0 {
			cells = append(cells, s)
		}
	}
	at := func(s *Synced) float64 {
		if v := s.metric("sync_time"); !math.IsNaN(v) {
			return v
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(cells, func(a, b *Synced) int {
		switch x, y := at(a), at(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	if left = len(cells) - mostRows; left <= 0 {
		return cells, 0
	}
	kept := cells[left:]
	if t.base != nil && !slices.ContainsFunc(kept, func(s *Synced) bool { return s.cell == t.base }) {
		kept = append([]*Synced{r.synced(t.base)}, kept[1:]...)
	}
	return kept, left
}

// Parts of the time until a node serves, with their colours.
var syncParts = []struct{ name, colour string }{
	{"before the first block", "var(--o-cancelled)"},
	{"until the chain is whole", "var(--s1)"},
	{"until what subscribes has followed", "var(--s5)"},
}

// leftWords say what a figure leaves out.
func leftWords(left int) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf(" The %s that are slowest are in the table alone.", plural(int64(left), "configuration", "configurations"))
}

// timesFigure is the time of each configuration.
func (r *Report) timesFigure() Figure {
	f := Figure{ID: "times", Title: "Time until a fresh node serves, by configuration", Better: "shorter is better", Choose: "conditions",
		Reads: "Each bar is the geometric mean over the trials of one configuration, named by what it changes of the default, slowest first (where some never served, the median, with these longer than any); it is divided as the time of one trial was, that with the middle share before the first block. The line is its interval, points are trials. The dashed mark is the load line of the configuration."}
	for _, p := range syncParts {
		f.Legend = append(f.Legend, Legend{p.name, p.colour, "bar"})
	}
	f.Legend = append(f.Legend, Legend{"interval", "var(--ink)", "stroke"})
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"time", true}, Column{"low", true}, Column{"high", true}, Column{"first block", true}, Column{"net", true}, Column{"index behind", true}, Column{"trials", true}, Column{"never", true})
	trials, left, lined := 0, 0, false
	for i := range r.Syncs {
		s := &r.Syncs[i]
		trials += s.Trials
		m := s.time
		of := func(key string) Entry { return number(Num(s.metric(key)), "s") }
		f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, number(m.Median, "s"), number(m.Lo, "s"), number(m.Hi, "s"), of("first_block"), of("net_time"), of("index_lag"), integer(s.Trials), integer(s.unfinished())))
	}
	for _, t := range r.tunings() {
		cells, more := r.rowsOf(t)
		left = max(left, more)
		if len(cells) == 0 {
			continue
		}
		var labels []string
		most := 0.0
		for _, s := range cells {
			words := r.configured(s.cell) + ": "
			m := s.time
			switch {
			case m.Median.Known():
				words += show(float64(m.Median), "s")
				most = max(most, float64(m.Median))
				if m.Hi.Known() {
					most = max(most, float64(m.Hi))
				}
			default:
				words += "never"
			}
			if q, ok := s.cell.Ratios["sync_time"]; ok && q.Value.Known() {
				words += ", " + q.gainWords()
			}
			if n := s.unfinished(); n > 0 && m.Median.Known() {
				words += fmt.Sprintf("; %d of %d never", n, s.Trials)
			}
			if t.best == s.cell && t.best != t.base {
				words = "★ " + words
			}
			labels = append(labels, words)
		}
		p := newRows(labels)
		parts := make([][]spec, len(syncParts))
		var intervals, points, lines []spec
		for i, s := range cells {
			m := s.time
			lines = append(lines, s.lineMark(p, i)...)
			if !m.Median.Known() || !s.StartUp.Known() {
				continue
			}
			at := 0.0
			for k, share := range []Num{s.StartUp, s.Net, s.Index} {
				to := at + float64(share)*float64(m.Median)
				if to > at {
					parts[k] = append(parts[k], spec{"y": p.y(i), "x": at, "x2": to, "tip": fmt.Sprintf("%s: %s, %s of %s", labels[i], syncParts[k].name, percent(float64(share)), show(float64(m.Median), "s"))})
				}
				at = to
			}
			if m.N > 1 && m.Lo.Known() && m.Hi.Known() {
				intervals = append(intervals, spec{"y": p.y(i), "x": m.Lo, "x2": m.Hi, "tip": showRange(m.Median, m.Lo, m.Hi, "s")})
			}
			if len(r.Trials) <= manyTrials {
				for _, tr := range s.trials {
					if v, ok := tr.Metrics["sync_time"]; ok && tr.served() {
						most = max(most, v)
						points = append(points, spec{"y": p.y(i), "x": v, "tip": fmt.Sprintf("%s in %s", show(v, "s"), record.BlockName(tr.Block))})
					}
				}
			}
		}
		for k := range parts {
			p.bar(parts[k], spec{"color": syncParts[k].colour}, nil)
		}
		p.bar(intervals, spec{"strokeWidth": 1.75, "color": "var(--ink)"}, nil)
		p.add(points, spec{"type": "point", "filled": true, "size": 12, "opacity": 0.55, "color": "var(--ink)"}, spec{"x": spec{"field": "x", "type": "quantitative"}, "tooltip": spec{"field": "tip", "type": "nominal"}})
		if len(p.layers) > 0 {
			lined = p.limits(lines) || lined
			f.Panels = append(f.Panels, p.panel(r.place(t), f.Title, secondsAxis(most)))
		}
	}
	if lined {
		f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
	}
	f.Reads += leftWords(left)
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}

// mostEffects bounds the rows of the figure of effects; the table has all.
const mostEffects = 28

// effectsFigure is a forest of main effects and interactions.
func (r *Report) effectsFigure() Figure {
	f := Figure{ID: "effects", Title: "What each knob does, and each pair", Better: "further left is faster", Choose: "conditions",
		Legend: []Legend{{"one factor", "var(--s1)", "circle"}, {"a pair", "var(--s2)", "diamond"}, {"not shown", "var(--ink)", "hollow"}},
		Reads:  "Ratios of the time with their intervals. A circle is a level against the default, averaged over all levels of the others; a diamond is by what that ratio is multiplied when the second is changed too: at 1 the two do not depend on each other, left of it they gain more together than each promises, right of it less. The band is " + percent(EffectFloor) + " around no change. Hollow marks are not shown, after correction for all of them, or are those of the nodes that came to serve alone."}
	f.Table = r.effectsTable()
	trials, left := 0, 0
	for i := range r.Tunings {
		t := &r.Tunings[i]
		var all []*KnobEffect
		for j := range t.Effects {
			if e := &t.Effects[j]; e.Value.Known() && e.Lo.Known() && e.Hi.Known() && e.Lo > 0 {
				all = append(all, e)
			}
		}
		if len(all) == 0 {
			continue
		}
		if !t.All {
			trials += t.Trials
		}
		slices.SortStableFunc(all, func(a, b *KnobEffect) int { return strings.Compare(b.Kind, a.Kind) }) // main effects first
		for len(all) > mostEffects {
			k := -1
			for j, e := range all {
				if e.interaction() && !e.Shown {
					k = j
				}
			}
			if k < 0 {
				break
			}
			all = slices.Delete(all, k, k+1)
			left++
		}
		var labels []string
		lo, hi := 1/1.1, 1.1
		for _, e := range all {
			labels = append(labels, e.name()+": "+e.words())
			lo, hi = min(lo, float64(e.Lo)), max(hi, float64(e.Hi))
		}
		lo, hi = max(lo, 1e-3), min(hi, 1e3)
		pad := math.Pow(hi/lo, 0.04)
		p := newRows(labels)
		x := spec{"field": "x", "type": "quantitative"}
		// At each row by itself, so that the labels between stay clear.
		var band, zero []spec
		for j := range all {
			top, bottom := p.y(j)-rowMark/2-2, p.y(j)+rowMark/2+2
			band = append(band, spec{"x": 1 / (1 + EffectFloor), "x2": 1 + EffectFloor, "y": top, "y2": bottom})
			zero = append(zero, spec{"x": 1, "y": top, "y2": bottom})
		}
		p.add(band, spec{"type": "rect", "color": "var(--line)", "opacity": 0.7}, spec{"x": x, "x2": spec{"field": "x2"}, "y2": spec{"field": "y2"}})
		p.add(zero, spec{"type": "rule", "color": "var(--ink)", "strokeWidth": 1.25}, spec{"x": x, "y2": spec{"field": "y2"}})
		for _, kind := range []struct {
			pair          bool
			colour, shape string
		}{{false, "var(--s1)", "circle"}, {true, "var(--s2)", "diamond"}} {
			var lines, full, open []spec
			for j, e := range all {
				if e.interaction() != kind.pair {
					continue
				}
				tip := labels[j]
				if e.PHolm.Known() {
					tip += ", p (Holm) " + chance(e.PHolm).Text
				}
				if e.Survivors {
					tip += "; " + e.Warn
				}
				if len(e.Aliases) > 0 {
					tip += "; mixed with " + list(e.Aliases)
				}
				lines = append(lines, spec{"y": p.y(j), "x": max(e.Lo, Num(lo)), "x2": min(e.Hi, Num(hi)), "tip": tip})
				point := spec{"y": p.y(j), "x": e.Value, "tip": tip}
				if e.Shown {
					full = append(full, point)
				} else {
					open = append(open, point)
				}
			}
			p.bar(lines, spec{"strokeWidth": 2, "color": kind.colour}, nil)
			point := spec{"x": x, "tooltip": spec{"field": "tip", "type": "nominal"}}
			p.add(full, spec{"type": "point", "filled": true, "shape": kind.shape, "size": 80, "opacity": 1, "color": kind.colour}, point)
			p.add(open, spec{"type": "point", "filled": true, "shape": kind.shape, "size": 70, "opacity": 1, "fill": "var(--paper)", "stroke": kind.colour, "strokeWidth": 1.75}, point)
		}
		f.Panels = append(f.Panels, p.panel(r.place(t), f.Title, spec{"field": "x", "type": "quantitative", "scale": spec{"type": "log", "domain": []float64{lo / pad, hi * pad}, "nice": false, "clamp": true},
			"axis": spec{"title": "ratio of times", "grid": true, "tickCount": 5, "labelExpr": "format(datum.value, '~g') + '×'"}}))
	}
	if left > 0 {
		f.Reads += fmt.Sprintf(" %s that %s not shown are in the table alone.", capital(plural(int64(left), "pair", "pairs")), map[bool]string{true: "is", false: "are"}[left == 1])
	}
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}

// interactionFigure shows the pairs that depend on each other.
func (r *Report) interactionFigure() Figure {
	f := Figure{ID: "interactions", Title: "Knobs that depend on each other", Better: "lower is better",
		Reads: "Geometric means of the time over all levels of the other factors, at each level of two that depend on each other; small marks are the single configurations. On this logarithmic scale lines are parallel where two do not. The title has the ratio of ratios with its interval, of several the least and the largest."}
	f.Table.Head = []Column{{"system", false}, {"conditions", false}, {"pair", false}, {"first", false}, {"second", false}, {"time", true}, {"configurations", true}}
	trials := 0
	colours := []string{"var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)"}
	legend := map[string]bool{}
	for i := range r.Tunings {
		t := &r.Tunings[i]
		seen := map[string]bool{}
		for j := range t.Effects {
			e := &t.Effects[j]
			if !e.interaction() || !e.Shown || e.small() || seen[fmt.Sprint(e.factors)] || len(f.Panels) >= manyPanels {
				continue
			}
			seen[fmt.Sprint(e.factors)] = true
			a, b := &t.factors[e.factors[0]], &t.factors[e.factors[1]]
			var means, single []spec
			var order, series []string
			lo, hi := math.Inf(1), 0.0
			for lb := range b.Levels {
				for la := range a.Levels {
					var logs []float64
					for _, s := range t.cells {
						v := s.metric("sync_time")
						if a.level(s.cell) == la && b.level(s.cell) == lb && v > 0 && s.unfinished() == 0 {
							logs = append(logs, math.Log(v))
							lo, hi = min(lo, v), max(hi, v)
							single = append(single, spec{"a": a.words(la), "b": b.words(lb), "y": v, "tip": r.syncName(s) + ": " + show(v, "s")})
						}
					}
					if len(logs) == 0 {
						continue
					}
					if w := a.words(la); !slices.Contains(order, w) {
						order = append(order, w)
					}
					if w := b.words(lb); !slices.Contains(series, w) {
						series = append(series, w)
					}
					mean := math.Exp(total(logs) / float64(len(logs)))
					means = append(means, spec{"a": a.words(la), "b": b.words(lb), "y": mean, "tip": fmt.Sprintf("%s, %s: %s over %s", a.words(la), b.words(lb), show(mean, "s"), plural(int64(len(logs)), "configuration", "configurations"))})
					f.Table.Rows = append(f.Table.Rows, []Entry{{Text: t.System, Raw: t.System}, {Text: r.place(t)}, {Text: a.Label + " × " + b.Label}, {Text: a.words(la)}, {Text: b.words(lb)}, number(Num(mean), "s"), integer(len(logs))})
				}
			}
			if len(means) < 3 {
				continue
			}
			trials = max(trials, t.Trials)
			var used, shapes []string
			for k, w := range series {
				used, shapes = append(used, colours[k%len(colours)]), append(shapes, pointShapes[1+k%(len(pointShapes)-1)])
				if !legend[w] {
					legend[w] = true
					f.Legend = append(f.Legend, Legend{w, used[k], shapes[k]})
				}
			}
			col := spec{"field": "b", "type": "nominal", "scale": spec{"domain": series, "range": used}, "legend": nil}
			shp := spec{"field": "b", "type": "nominal", "scale": spec{"domain": series, "range": shapes}, "legend": nil}
			tip := spec{"field": "tip", "type": "nominal"}
			title := joined([]string{r.place(t), fmt.Sprintf("%s × %s: %s", a.Label, b.Label, t.pairWords(e.factors))})
			f.Panels = append(f.Panels, Panel{Title: title, Spec: spec{"$schema": vegaLite, "description": f.Title + ", " + title,
				"encoding": spec{"x": spec{"field": "a", "type": "ordinal", "sort": nil, "scale": spec{"domain": order}, "axis": spec{"title": nil, "labelAngle": 0, "labelLimit": 160}},
					"y": spec{"field": "y", "type": "quantitative", "scale": spec{"type": "log", "domain": []float64{lo / 1.15, hi * 1.15}, "nice": false}, "axis": logAxis("s")}},
				"layer": []spec{
					{"data": spec{"values": single}, "mark": spec{"type": "point", "filled": true, "size": 16, "opacity": 0.5}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
					{"data": spec{"values": means}, "mark": spec{"type": "line", "strokeWidth": 2}, "encoding": spec{"color": col}},
					{"data": spec{"values": means}, "mark": spec{"type": "point", "filled": true, "size": 80, "opacity": 1}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
				}}})
		}
	}
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}
