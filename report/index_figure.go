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
	f.Reads = fmt.Sprintf("Each mark is the median over the valid trials of a run with its interval, in the order in which the runs began. A ring marks a cell, and a dashed line all cells of a system together, that differs from the run before: %s and %s were made, and those of each step, from a run to the next, are corrected for their number (Holm). Of the steps in which nothing changed, up to one in 20 shows a ring all the same, and as many a line.",
		plural(int64(t.Single), "comparison of single cells", "comparisons of single cells"), plural(int64(t.Overall), "of all cells of a system", "of all cells of a system"))
	if n := len(t.Blind); n > 0 {
		f.Reads += fmt.Sprintf(" In %d of the %s the trials are too few to show a change of a single cell, however large: a ring cannot be there.", n, plural(int64(len(t.Runs)-1), "step", "steps"))
	}
	f.Reads += " Neighbouring runs may differ in hour and machine, too: the table says what is known of that."
	if slices.ContainsFunc(t.Cells, func(c TrendCell) bool { return slices.ContainsFunc(c.Points, neverCame) }) {
		f.Legend = append(f.Legend, Legend{"half or more of the trials never came to it", "var(--ink)", "never"})
		f.Reads += " An × stands at the edge where half or more of a run's trials never came to the number."
	}
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
				p := t.Runs[i]
				line := []Entry{{Text: p.ID}, {Text: p.Started.UTC().Format("2006-01-02 15:04")}, {Text: p.Plimsoll}, {Text: c.System}, {Text: c.Where}}
				differs := Entry{Text: strings.Join(p.Differs, "; ")}
				if s.N == 0 {
					f.Table.Rows = append(f.Table.Rows, append(line, Entry{Text: "–"}, Entry{}, Entry{}, integer(0), Entry{Text: "no valid trial"}, differs))
					continue
				}
				row := spec{"kind": "median", "system": c.System, "x": i, "y": s.Median, "tip": fmt.Sprintf("%s, %s: %s, %s of %s", c.System, labels[i], t.Runs[i].ID, showRange(s.Median, s.Lo, s.Hi, unit), plural(int64(s.N), "trial", "trials"))}
				median := number(s.Median, unit)
				if neverCame(s) {
					row["kind"] = "never"
					row["tip"] = fmt.Sprintf("%s, %s: %s, %d of %s never came to it", c.System, labels[i], t.Runs[i].ID, s.beyond, plural(int64(s.N), "trial", "trials"))
					median = Entry{Text: "never", Tone: Bad}
				} else {
					top = max(top, float64(s.Median))
				}
				if s.Lo.Known() && s.Hi.Known() && s.N > 1 {
					row["lo"], row["hi"] = s.Lo, s.Hi
					top = max(top, float64(s.Hi))
				}
				rows = append(rows, row)
				change := Entry{Text: "~"}
				switch {
				case c.before(i) < 0:
					change.Text = "–"
				case slices.Contains(t.Blind, i):
					change.Text = "too few trials to tell"
				}
				for _, d := range t.Changes {
					if d.To != i || d.System != c.System || d.Where != "" && d.Where != c.Where {
						continue
					}
					words := d.words()
					mark := spec{"kind": "change", "system": c.System, "x": i, "y": row["y"], "tip": words}
					if d.Where == "" {
						mark["kind"], mark["y"] = "all", nil
					} else if neverCame(s) {
						mark["edge"] = true
					}
					rows = append(rows, mark)
					raw := ""
					if d.Value.Known() {
						raw = strconv.FormatFloat(float64(d.Value), 'g', -1, 64)
					}
					change = Entry{Text: words, Raw: raw, Tone: toneOf(d.Better)}
				}
				f.Table.Rows = append(f.Table.Rows, append(line, median, number(s.Lo, unit), number(s.Hi, unit), integer(s.N), change, differs))
			}
		}
		// What lies beyond all numbers is drawn at the edge where it would be.
		for _, row := range rows {
			if row["kind"] == "never" || row["edge"] == true {
				row["y"] = 0.0
				if farthest(t.Metric) > 0 {
					row["y"] = top * 1.08
				}
				delete(row, "edge")
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

// neverCame says that half or more of a run's trials never came to the number.
func neverCame(s Summary) bool { return s.beyond > 0 && !s.Median.Known() }

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
	switch d.Never {
	case "later":
		return fmt.Sprintf("%s, %s: half or more of the trials never came to it, %s", d.System, what, side)
	case "earlier":
		return fmt.Sprintf("%s, %s: comes to it again, as half or more of the trials before never did, %s", d.System, what, side)
	}
	return fmt.Sprintf("%s, %s: %s, %s", d.System, what, showRange(d.Value, d.Lo, d.Hi, "×"), side)
}

// labels are the runs on the axis: their versions of Plimsoll where these differ,
// else when they began, or their names where that does not tell them apart.
func (t *RunsTrend) labels() []string {
	var versions, times, names []string
	distinct := map[string]bool{}
	for _, p := range t.Runs {
		versions, times = append(versions, p.Plimsoll), append(times, p.Started.UTC().Format("01-02 15:04"))
		distinct[p.Plimsoll] = true
		names = append(names, path.Base(p.ID))
	}
	if len(distinct) > 1 {
		return versions
	}
	if len(slices.Compact(slices.Clone(times))) < len(times) {
		return names
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
// intervals, medians, crosses for what never came, and rings around the cells that changed.
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
		{"transform": only("never"), "mark": spec{"type": "text", "text": "×", "fontSize": 18, "fontWeight": "bold"}, "encoding": spec{"color": col, "tooltip": tip}},
		{"transform": only("change"), "mark": spec{"type": "point", "filled": false, "size": 210, "strokeWidth": 2, "color": "var(--ink)"}, "encoding": spec{"tooltip": tip}},
	}
}
