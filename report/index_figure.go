package report

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a trend's figure, for the page's size: panels, and rows of its table.
const (
	trendPanels = 24
	trendRows   = 5_000
)

// figure draws the headline metric of a trend's cells from run to run: a panel for
// each combination of factors, a line for each system.
func (t *RunsTrend) figure(id string) Figure {
	unit := t.Metric.Unit
	f := Figure{ID: id, Title: capital(t.Metric.Name), Better: better(t.Metric.Better)}
	if t.Title != "" {
		f.Title = t.Title + ": " + t.Metric.Name
	}
	var systems []string
	var wheres []string
	panels := map[string][]*TrendCell{}
	trials := 0
	for i := range t.Cells {
		c := &t.Cells[i]
		if !slices.Contains(systems, c.System) {
			systems = append(systems, c.System)
			f.Legend = append(f.Legend, Legend{c.System, systemColour(c.slot), systemShape(c.slot)})
		}
		if panels[c.Where] == nil {
			wheres = append(wheres, c.Where)
		}
		panels[c.Where] = append(panels[c.Where], c)
		for _, p := range c.Points {
			trials += p.N
		}
	}
	f.Legend = append(f.Legend, Legend{"a change that is shown", "var(--ink)", "hollow"})
	f.Reads = fmt.Sprintf("Each mark is the median over the valid trials of a run with its interval, in the order in which the runs began. A ring marks a cell, and a dashed line all cells of a system together, that differs from the run before: %s and %s were made, and each family is corrected for its number (Holm). Neighbouring runs may differ in hour and machine, too: the table says what is known of that.",
		plural(int64(t.Single), "comparison of single cells", "comparisons of single cells"), plural(int64(t.Overall), "of all cells of a system", "of all cells of a system"))
	most := max(1, min(trendPanels, trendRows/max(1, len(t.Runs)*len(systems))))
	if len(wheres) > most {
		f.Reads += fmt.Sprintf(" The first %d of %d combinations of factors are drawn; all of them were compared.", most, len(wheres))
		wheres = wheres[:most]
	}
	f.N = fmt.Sprintf("n = %s of %s", plural(int64(trials), "valid trial", "valid trials"), plural(int64(len(t.Runs)), "run", "runs"))
	if len(wheres) > 1 {
		f.Choose = "cells"
	}
	labels := t.labels()
	f.Table = Table{Head: []Column{{"run", false}, {"started", false}, {"plimsoll", false}, {"system", false}, {"cell", false}, {t.Metric.Name, true}, {"low", true}, {"high", true}, {"trials", true}, {"against the run before", false}, {"what else changed", false}}}
	colour, shape := spec{"domain": systems}, spec{"domain": systems}
	var colours, shapes []string
	for _, l := range f.Legend[:len(systems)] {
		colours, shapes = append(colours, l.Colour), append(shapes, l.Mark)
	}
	colour["range"], shape["range"] = colours, shapes
	for _, where := range wheres {
		var rows []spec
		top := 0.0
		for _, c := range panels[where] {
			for i, s := range c.Points {
				if s.N == 0 || !s.Median.Known() {
					continue
				}
				row := spec{"kind": "median", "system": c.System, "x": i, "y": s.Median, "tip": fmt.Sprintf("%s, %s: %s, %s of %s", c.System, labels[i], t.Runs[i].ID, showRange(s.Median, s.Lo, s.Hi, unit), plural(int64(s.N), "trial", "trials"))}
				top = max(top, float64(s.Median))
				if s.Lo.Known() && s.Hi.Known() && s.N > 1 {
					row["lo"], row["hi"] = s.Lo, s.Hi
					top = max(top, float64(s.Hi))
				}
				rows = append(rows, row)
				change := Entry{Text: "~"}
				if c.before(i) < 0 {
					change.Text = "–"
				}
				for _, d := range t.Changes {
					if d.To != i || d.System != c.System || d.Where != "" && d.Where != c.Where {
						continue
					}
					words := d.words()
					mark := spec{"kind": "change", "system": c.System, "x": i, "y": s.Median, "tip": words}
					if d.Where == "" {
						mark["kind"], mark["y"] = "all", nil
					}
					rows = append(rows, mark)
					change = Entry{Text: words, Raw: strconv.FormatFloat(float64(d.Value), 'g', -1, 64), Tone: toneOf(d.Better)}
				}
				p := t.Runs[i]
				f.Table.Rows = append(f.Table.Rows, []Entry{{Text: p.ID}, {Text: p.Started.UTC().Format("2006-01-02 15:04")}, {Text: p.Plimsoll}, {Text: c.System}, {Text: c.Where},
					number(s.Median, unit), number(s.Lo, unit), number(s.Hi, unit), integer(s.N), change, {Text: strings.Join(p.Differs, "; ")}})
			}
		}
		f.Panels = append(f.Panels, Panel{Title: where, key: where, Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + where, "data": spec{"values": rows},
			"encoding": spec{
				"x": spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{-0.4, float64(len(labels)) - 0.6}, "nice": false}, "axis": runAxis(labels)},
				"y": spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, top * 1.08}, "nice": true}, "axis": (&Report{}).valueAxis(unit, top)}},
			"layer": trendLayers(colour, shape)}})
	}
	return f
}

func toneOf(better int) Tone {
	if better < 0 {
		return Bad
	}
	return Good
}

// words say what changed: "boxo over 9 cells: 0.82× (0.78–0.86), worse".
func (d TrendChange) words() string {
	what := d.Where
	if what == "" {
		what = "over " + plural(int64(d.Cells), "cell", "cells")
	}
	side := "better"
	if d.Better < 0 {
		side = "worse"
	}
	return fmt.Sprintf("%s, %s: %s, %s", d.System, what, showRange(d.Value, d.Lo, d.Hi, "×"), side)
}

// labels are the runs on the axis: their versions of Plimsoll where these differ,
// else the times at which they began, or their directories where these are not
// told apart by the minute.
func (t *RunsTrend) labels() []string {
	var versions, times []string
	distinct := map[string]bool{}
	for _, p := range t.Runs {
		versions, times = append(versions, p.Plimsoll), append(times, p.Started.UTC().Format("01-02 15:04"))
		distinct[p.Plimsoll] = true
	}
	if len(distinct) > 1 {
		return versions
	}
	begun := map[string]bool{}
	for _, at := range times {
		begun[at] = true
	}
	if len(begun) < len(times) { // some began within one minute
		for i, p := range t.Runs {
			times[i] = path.Base(p.ID)
		}
	}
	return times
}

// runAxis labels at most eight runs.
func runAxis(labels []string) spec {
	step := (len(labels) + 7) / 8
	var values []int
	expr := "''"
	for i := 0; i < len(labels); i += step {
		values = append(values, i)
	}
	for _, i := range slices.Backward(values) {
		expr = fmt.Sprintf("datum.value == %d ? %s : %s", i, strconv.Quote(labels[i]), expr)
	}
	return spec{"title": nil, "values": values, "labelExpr": expr, "labelAngle": -30, "labelAlign": "right", "labelLimit": 130, "grid": false}
}

// trendLayers: dashed lines where a system changed, lines through medians,
// intervals, medians, and rings around the cells that changed.
func trendLayers(colour, shape spec) []spec {
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	shp := spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}
	tip := spec{"field": "tip", "type": "nominal"}
	only := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
	return []spec{
		{"transform": only("all"), "mark": spec{"type": "rule", "strokeDash": []int{4, 3}, "strokeWidth": 1.5}, "encoding": spec{"color": col, "tooltip": tip, "y": nil}},
		{"transform": only("median"), "mark": spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.75}, "encoding": spec{"color": col}},
		{"transform": only("median"), "mark": spec{"type": "rule", "strokeWidth": 1.75}, "encoding": spec{"color": col, "y": spec{"field": "lo", "type": "quantitative"}, "y2": spec{"field": "hi"}}},
		{"transform": only("median"), "mark": spec{"type": "point", "filled": true, "size": 50, "opacity": 1, "stroke": "var(--paper)", "strokeWidth": 1}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
		{"transform": only("change"), "mark": spec{"type": "point", "filled": false, "size": 210, "strokeWidth": 2, "color": "var(--ink)"}, "encoding": spec{"tooltip": tip}},
	}
}
