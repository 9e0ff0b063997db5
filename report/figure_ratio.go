package report

import (
	"fmt"
	"math"
	"slices"
)

// ratioFigure draws a metric's ratio to the baseline with its interval, and a
// line at 1, where the two are equal.
func (r *Report) ratioFigure(key string) Figure { return r.ratioFigureWith(key, 0, "") }

// ratioFigureWith draws a dashed line at a goal, too; 0: there is none.
func (r *Report) ratioFigureWith(key string, goal float64, called string) Figure {
	m, ok := r.metric(key)
	if !ok || r.Baseline == "" {
		return Figure{}
	}
	f := Figure{ID: key + "-ratio", Title: capital(m.Name) + ", relative to " + r.Baseline, Better: better(m.Better),
		Reads: fmt.Sprintf("Each mark is the %s divided by that of %s within the same block, the middle of all blocks, with its interval. An interval that crosses the line at 1 shows no difference; hollow marks are differences that are not shown.", m.Name, r.Baseline)}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"ratio", true}, Column{"low", true}, Column{"high", true}, Column{"p (Holm)", true}, Column{"pairs", true}, Column{"difference", false})
	for _, l := range r.systemLegend() {
		if l.Label != r.Baseline+" (baseline)" {
			f.Legend = append(f.Legend, l)
		}
	}
	lo, hi, n := 1.0, 1.0, 0
	if goal > 0 {
		f.Reads += fmt.Sprintf(" The dashed line is %s.", called)
		f.Legend = append(f.Legend, Legend{called, "var(--ink)", "dash"})
		lo, hi = min(lo, goal), max(hi, goal)
	}
	reach := func(v Num) {
		if v > 0 { // 0 has no place on the scale and is drawn at its end
			lo, hi = min(lo, float64(v)), max(hi, float64(v))
		}
	}
	data := map[string][]spec{}
	for _, c := range r.cells() {
		q, has := c.Ratios[key]
		if !has || !q.Value.Known() {
			continue
		}
		n += q.N
		kind := "shown"
		if !q.Shown {
			kind = "open"
		}
		row := spec{"kind": kind, "system": c.System, "x": r.dodge(c, 0), "y": q.Value, "tip": fmt.Sprintf("%s: %s", r.shape.named(c), q.words())}
		reach(q.Value)
		if q.Lo.Known() && q.Hi.Known() {
			row["lo"], row["hi"] = q.Lo, q.Hi
			reach(q.Lo)
			reach(q.Hi)
		}
		k := r.shape.panel(c)
		data[k] = append(data[k], row)
		f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System},
			number(q.Value, "×"), number(q.Lo, "×"), number(q.Hi, "×"), number(q.PHolm, ""), integer(q.N), Entry{Text: q.word(), Raw: q.word()}))
	}
	if n == 0 {
		return Figure{}
	}
	// Ratios are symmetric on a log scale: half and double are equally far from 1.
	pad := math.Pow(hi/lo, 0.08) * 1.02
	for _, u := range r.unpaired(key) {
		k := r.shape.panel(u.swarm.cell)
		if len(data[k]) == 0 {
			continue // in words only
		}
		edge := hi * pad
		if u.base {
			edge = lo / pad
		}
		data[k] = append(data[k], spec{"kind": u.kind(), "system": u.swarm.System, "x": r.dodge(u.swarm.cell, 0), "edge": edge, "tip": fmt.Sprintf("%s: no ratio, %s", r.shape.named(u.swarm.cell), u.why)})
	}
	f.unpaired(r.unpaired(key), r.Baseline)
	f.N = "n = " + plural(int64(n), "pair of valid trials", "pairs of valid trials") + " from the same blocks"
	colour, shape := r.systemScales()
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	shp := spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}
	tip := spec{"field": "tip", "type": "nominal"}
	is := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
	layers := []spec{
		{"data": spec{"values": []spec{{"equal": 1}}}, "mark": spec{"type": "rule", "color": "var(--ink)", "strokeWidth": 1.25},
			"encoding": spec{"x": spec{"value": 0}, "x2": spec{"value": "width"}, "y": spec{"field": "equal", "type": "quantitative"}}},
		{"mark": spec{"type": "line", "strokeWidth": 1.5, "opacity": 0.5}, "encoding": spec{"color": col}},
		{"mark": spec{"type": "rule", "strokeWidth": 1.75}, "encoding": spec{"color": col, "y": spec{"field": "lo", "type": "quantitative"}, "y2": spec{"field": "hi"}}},
		{"transform": is("shown"), "mark": spec{"type": "point", "filled": true, "size": 64, "opacity": 1}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
		{"transform": is("open"), "mark": spec{"type": "point", "filled": true, "fill": "var(--paper)", "size": 60, "strokeWidth": 1.75, "opacity": 1}, "encoding": spec{"stroke": col, "shape": shp, "tooltip": tip}},
	}
	if goal > 0 {
		layers = slices.Insert(layers, 1, spec{"data": spec{"values": []spec{{"goal": goal}}}, "mark": spec{"type": "rule", "color": "var(--ink)", "strokeWidth": 1.25, "strokeDash": []int{6, 4}},
			"encoding": spec{"x": spec{"value": 0}, "x2": spec{"value": "width"}, "y": spec{"field": "goal", "type": "quantitative"}}})
	}
	edge := spec{"field": "edge", "type": "quantitative"}
	for _, kind := range []string{slowerThanAny, fasterThanAny} {
		layers = append(layers, spec{"transform": is(kind), "mark": spec{"type": "point", "filled": true, "shape": kind, "size": 64, "opacity": 1}, "encoding": spec{"color": col, "y": edge, "tooltip": tip}})
	}
	for _, k := range r.shape.groups {
		if len(data[k]) == 0 {
			continue
		}
		y := spec{"field": "y", "type": "quantitative", "scale": spec{"type": "log", "domain": []float64{lo / pad, hi * pad}, "nice": false, "clamp": true},
			"axis": spec{"title": nil, "tickCount": 5, "labelExpr": "format(datum.value, '~g') + '×'"}}
		f.Panels = append(f.Panels, r.panelOf(k, f.Title, data[k], layers, y))
	}
	return f
}

// words is a ratio in one line: "0.62× (0.58–0.66)" or "~ (0.97–1.04)".
func (q Ratio) words() string {
	s := showRange(q.Value, q.Lo, q.Hi, "×")
	if !q.Shown {
		return "~ " + s
	}
	return s
}

func (q Ratio) word() string {
	switch {
	case !q.Shown:
		return "~ not shown"
	case q.Better > 0:
		return "better"
	case q.Better < 0:
		return "worse"
	}
	return "below the effect floor"
}
