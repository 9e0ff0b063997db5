package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/plimsoll-project/plimsoll/record"
)

// drawing is how one metric becomes a figure.
type drawing struct {
	id, metric, title string
	reads             string
	zero              bool   // the axis starts at zero
	log               bool   // the axis is logarithmic
	line              string // the metric that is its load line; empty: none
}

// manyPanels is from how many panels on a figure shows one at a time.
const manyPanels = 12

// manyTrials is the number of trials above which a metric's figure leaves the
// single ones out, for the page's size.
const manyTrials = 1000

// add puts a figure on the page, unless there is nothing in it.
func (r *Report) add(f Figure) {
	if len(f.Panels) > manyPanels && f.Choose == "" {
		f.Choose = "cells"
	}
	if len(f.Panels) > 0 {
		r.Figures = append(r.Figures, f)
	}
}

func (r *Report) resourceFigure(id, metric, title, reads string) Figure {
	return r.metricFigure(drawing{id: id, metric: metric, title: title, reads: reads, zero: true})
}

// metricFigure draws a metric's medians with intervals against the axis, the
// single trials behind them, and invalid trials as hollow marks.
func (r *Report) metricFigure(d drawing) Figure {
	m, ok := r.metric(d.metric)
	if !ok {
		return Figure{}
	}
	f := Figure{ID: d.id, Title: d.title, Better: better(m.Better), Legend: r.systemLegend()}
	f.Reads = d.reads + " Large marks are medians over trials with their interval; small ones are single trials."
	many := len(r.Trials) > manyTrials
	if many {
		f.Reads = d.reads + " Marks are medians over trials with their interval; there are too many trials to draw each."
	}
	tops, points, invalid := map[string]float64{}, 0, 0
	data := map[string][]spec{}
	for i := range r.Trials {
		t := &r.Trials[i]
		v, has := t.Metrics[d.metric]
		if t.Warmup || t.State != record.Done || !has || math.IsNaN(v) || math.IsInf(v, 0) || !Supported(d.metric, t.Trial) {
			continue
		}
		row := spec{"kind": "trial", "system": t.Info.System, "x": r.dodge(t.Info, 0.45), "y": v,
			"tip": fmt.Sprintf("%s, %s: %s (%s)", t.Info.System, r.shape.where(t.Info), show(v, m.Unit), record.BlockName(t.Block))}
		if !t.Valid() {
			row["kind"] = "invalid"
			row["tip"] = fmt.Sprintf("%s; invalid: %s", row["tip"], list(t.Invalid))
			invalid++
		} else {
			points++
		}
		k := r.shape.panel(t.Info)
		tops[k] = max(tops[k], v)
		if !many || !t.Valid() {
			data[k] = append(data[k], row)
		}
	}
	if points+invalid == 0 {
		return Figure{}
	}
	f.Table = Table{Head: append(r.factorColumns(), Column{"system", false}, Column{m.Name, true}, Column{"low", true}, Column{"high", true}, Column{"trials", true})}
	for _, c := range r.cells() {
		s, has := c.Metrics[d.metric]
		if !has {
			continue
		}
		k := r.shape.panel(c)
		row := spec{"kind": "median", "system": c.System, "x": r.dodge(c, 0), "y": s.Median,
			"tip": fmt.Sprintf("%s: median %s of %s", r.shape.named(c), showRange(s.Median, s.Lo, s.Hi, m.Unit), plural(int64(s.N), "trial", "trials"))}
		if s.Lo.Known() && s.Hi.Known() && s.N > 1 {
			row["lo"], row["hi"] = s.Lo, s.Hi
			tops[k] = max(tops[k], float64(s.Hi))
		}
		data[k] = append(data[k], row)
		f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System},
			number(s.Median, m.Unit), number(s.Lo, m.Unit), number(s.Hi, m.Unit), integer(s.N)))
	}
	limits := map[string][]spec{}
	if d.line != "" {
		if lines := r.machineRows(m); len(lines) > 0 {
			for k, rows := range lines {
				for _, row := range rows {
					data[k], tops[k] = append(data[k], row), max(tops[k], float64(row["y"].(Num)))
				}
			}
			f.Legend = append(f.Legend, Legend{"machine line", "var(--ink)", "bar"})
			f.Reads += machineWords
		}
		own := false
		for _, p := range r.loadLines(d.line) {
			limits[p.panel] = append(limits[p.panel], r.limitRow(p, m.Unit))
			own = own || p.system != ""
			tops[p.panel] = max(tops[p.panel], p.y)
		}
		if len(limits) > 0 {
			f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
		}
		if own {
			f.Reads += " Systems that connect differently have load lines of their own, in their colour."
		}
	}
	if invalid > 0 {
		f.Legend = append(f.Legend, Legend{"invalid trial", "var(--ink)", "hollow"})
	}
	f.N = r.basis(points, invalid)
	if shareTop(tops) {
		f.Reads += ownScales
	}
	for _, k := range r.shape.groups {
		if len(data[k]) == 0 {
			continue
		}
		layers := []spec{}
		if len(limits[k]) > 0 {
			layers = append(layers, r.limitLayer(limits[k]))
		}
		layers = append(layers, r.metricLayers()...)
		top := tops[k]
		y := spec{"field": "y", "type": "quantitative", "axis": r.valueAxis(m.Unit, top),
			"scale": spec{"domain": []float64{0, top * 1.06}, "nice": true, "zero": d.zero}}
		if d.log {
			y["axis"], y["scale"] = logAxis(m.Unit), spec{"type": "log", "domain": []float64{leastOf(slices.Concat(data[k], limits[k]), top) / 1.25, top * 1.25}, "nice": false, "clamp": true}
		}
		f.Panels = append(f.Panels, r.panelOf(k, f.Title, data[k], layers, y))
	}
	return f
}

// leastOf is the least positive value of a panel's rows.
func leastOf(rows []spec, top float64) float64 {
	lo := top
	for _, row := range rows {
		for _, key := range []string{"y", "lo"} {
			switch v := row[key].(type) {
			case float64:
				if v > 0 {
					lo = min(lo, v)
				}
			case Num:
				if v > 0 {
					lo = min(lo, float64(v))
				}
			}
		}
	}
	return lo
}

const ownScales = " Each panel has its own scale."

// apart is how far the panels' largest values may differ before one scale for
// all would flatten some of them.
const apart = 2.5

// shareTop gives panels of similar values one scale; it reports whether it left
// them their own.
func shareTop(tops map[string]float64) (own bool) {
	least, most := math.Inf(1), 0.0
	for _, t := range tops {
		least, most = min(least, t), max(most, t)
	}
	if most > apart*least {
		return true
	}
	for k := range tops {
		tops[k] = most
	}
	return false
}

// panelOf puts layers over one panel's rows.
func (r *Report) panelOf(key, title string, rows []spec, layers []spec, y spec) Panel {
	name := r.shape.names[key]
	label := title
	if name != "" {
		label += ", " + name
	}
	return Panel{Title: name, key: key, Spec: spec{
		"$schema":     vegaLite,
		"description": label,
		"data":        spec{"values": rows},
		"encoding":    spec{"x": r.xChannel(), "y": y},
		"layer":       layers,
	}}
}

// metricLayers: lines through medians, intervals, trials, medians.
func (r *Report) metricLayers() []spec {
	colour, shape := r.systemScales()
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	shp := spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}
	tip := spec{"field": "tip", "type": "nominal"}
	only := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
	return []spec{
		{"transform": only("median"), "mark": spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.75}, "encoding": spec{"color": col}},
		{"transform": only("median"), "mark": spec{"type": "rule", "strokeWidth": 1.75}, "encoding": spec{"color": col, "y": spec{"field": "lo", "type": "quantitative"}, "y2": spec{"field": "hi"}}},
		{"transform": only("machine"), "mark": spec{"type": "tick", "orient": "horizontal", "thickness": 2, "size": 18}, "encoding": spec{"color": col, "tooltip": tip}},
		{"transform": only("trial"), "mark": spec{"type": "point", "filled": true, "size": 14, "opacity": 0.45}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
		{"transform": only("invalid"), "mark": spec{"type": "point", "filled": false, "size": 60, "strokeWidth": 1.5}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
		{"transform": only("median"), "mark": spec{"type": "point", "filled": true, "size": 64, "opacity": 1, "stroke": "var(--paper)", "strokeWidth": 1}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
	}
}

// limitLayer draws the load line, on rows of its own; lines that belong to a
// system have its colour.
func (r *Report) limitLayer(rows []spec) spec {
	if r.shape.axis == nil {
		return r.across(rows) // systems stand beside each other: there is no place between them
	}
	mark := spec{"type": "line", "strokeDash": []int{6, 4}, "strokeWidth": 1.5, "opacity": 0.8, "point": len(rows) == 1}
	encoding := spec{"tooltip": spec{"field": "tip", "type": "nominal"}}
	if _, own := rows[0]["system"]; own {
		colour, _ := r.systemScales()
		encoding["color"] = spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	} else {
		mark["color"] = "var(--ink)"
	}
	return spec{"data": spec{"values": rows}, "mark": mark, "encoding": encoding}
}

// limitRow is a place of the load line in a picture.
func (r *Report) limitRow(p limit, unit string) spec {
	what := "load line"
	if p.system != "" {
		what += " of " + p.system
	}
	if p.where != "" {
		what += " at " + p.where
	}
	row := spec{"kind": "limit", "x": p.x, "y": p.y, "tip": what + ": " + show(p.y, unit)}
	if p.system != "" {
		row["system"] = p.system
	}
	return row
}

// xChannel is the axis from left to right, the same for every panel.
func (r *Report) xChannel() spec {
	a := r.shape.axis
	if a == nil {
		names := []string{}
		for _, s := range r.Systems {
			names = append(names, s.Name)
		}
		return spec{"field": "system", "type": "nominal", "scale": spec{"domain": names}, "axis": spec{"title": nil, "labelAngle": 0}}
	}
	lo, hi := a.Values[0], a.Values[len(a.Values)-1]
	scale := spec{"type": "linear", "nice": false}
	if a.Log {
		pad := math.Pow(hi/lo, 0.06)
		scale["type"], scale["domain"] = "log", []float64{lo / pad, hi * pad}
	} else {
		pad := (hi - lo) * 0.06
		scale["domain"] = []float64{lo - pad, hi + pad}
	}
	// Axis labels come from the plan ("1 MiB"), by value; the expression is run
	// by Vega's interpreter, never by eval.
	expr := "''"
	for i := len(a.Values) - 1; i >= 0; i-- {
		expr = fmt.Sprintf("datum.value == %s ? %s : %s", strconv.FormatFloat(a.Values[i], 'g', -1, 64), strconv.Quote(a.Labels[i]), expr)
	}
	return spec{"field": "x", "type": "quantitative", "scale": scale,
		"axis": spec{"title": a.Label, "values": a.Values, "labelExpr": expr, "grid": false, "labelAngle": 0}}
}

// dodge moves a system's marks a little sideways so that intervals do not hide
// one another, and by a part of that again for the trials beside their median;
// labels stay at the true value.
func (r *Report) dodge(c *Cell, beside float64) float64 {
	a := r.shape.axis
	if a == nil {
		return 0
	}
	n, at := len(r.Systems), 0
	for i, s := range r.Systems {
		if s.Name == c.System {
			at = i
		}
	}
	step := (float64(at) - float64(n-1)/2 + beside) * 0.022
	x := r.shape.at(c)
	lo, hi := a.Values[0], a.Values[len(a.Values)-1]
	if a.Log {
		return x * math.Pow(hi/lo, step)
	}
	return x + (hi-lo)*step
}

// valueAxis labels values with SI prefixes and their unit.
func (r *Report) valueAxis(unit string, top float64) spec {
	f := conversion(top, unit)
	_, suffix := quantity(top, unit)
	return spec{"title": suffix, "titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleY": -8, "titleX": -4, "titleBaseline": "bottom",
		"tickCount": 5, "labelExpr": fmt.Sprintf("format(datum.value * %s, '~g')", strconv.FormatFloat(f, 'g', -1, 64))}
}

// basis says what a figure rests on.
func (r *Report) basis(valid, invalid int) string {
	s := "n = " + plural(int64(valid), "valid trial", "valid trials")
	if invalid > 0 {
		s += "; " + plural(int64(invalid), "invalid trial is", "invalid trials are") + " drawn hollow and counted nowhere"
	}
	return s
}

func (r *Report) factorColumns() []Column {
	var cols []Column
	if len(r.Cells) == 0 {
		return nil
	}
	for _, f := range r.Cells[0].Factors {
		if f.Path != "system" {
			cols = append(cols, Column{f.Label, f.Unit != "" || f.Number != 0})
		}
	}
	return cols
}

func (r *Report) factorEntries(c *Cell) []Entry {
	var row []Entry
	for _, f := range c.Factors {
		if f.Path != "system" {
			row = append(row, Entry{Text: f.Text(), Raw: c.Value(f.Path)})
		}
	}
	return row
}

func number(v Num, unit string) Entry {
	if !v.Known() {
		return Entry{Text: "–"}
	}
	return Entry{Text: show(float64(v), unit), Raw: strconv.FormatFloat(float64(v), 'g', -1, 64)}
}

func integer(n int) Entry { return Entry{Text: count(int64(n)), Raw: strconv.Itoa(n)} }
