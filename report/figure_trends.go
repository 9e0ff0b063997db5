package report

import (
	"fmt"
	"strconv"
)

// trendFigure draws the time of an operation against the number of objects
// stored, with the slope over trials.
func (r *Report) trendFigure() Figure {
	f := Figure{ID: "objects-time", Title: "Time against the number of objects stored", Better: "flat is better", Legend: r.systemLegend(),
		Reads: "Each mark is a trial's median while the servers held that many objects; the line is the median of all slopes between two trials (Theil–Sen). Whether there is a slope is in its interval, in the table."}
	f.Table.Head = []Column{{"operation", false}, {"system", false}, {"objects stored", true}, {"time", true}, {"trial", true}}
	colour, shape := r.systemScales()
	n := 0
	for _, op := range []string{"put", "get", "stat"} {
		var rows []spec
		top, most := 0.0, 0.0
		for _, t := range r.Trends {
			if t.Operation != op {
				continue
			}
			for _, p := range r.filled(t.cell, op) {
				n++
				top, most = max(top, p.took), max(most, p.stored)
				rows = append(rows, spec{"kind": "trial", "system": t.System, "x": p.stored, "y": p.took,
					"tip": fmt.Sprintf("%s, %s at %s objects: %s", t.System, op, count(int64(p.stored)), show(p.took, "s"))})
				f.Table.Rows = append(f.Table.Rows, []Entry{{Text: op, Raw: op}, {Text: t.System, Raw: t.System}, whole(int64(p.stored)),
					{Text: show(p.took, "s"), Raw: strconv.FormatFloat(p.took, 'g', -1, 64)}, integer(int(p.trial.ID))})
			}
			if t.Slope.Value.Known() {
				mid, at := r.middleOf(t)
				for _, x := range []float64{float64(t.From), float64(t.To)} {
					rows = append(rows, spec{"kind": "line", "system": t.System, "cell": t.cell.ID, "x": x, "y": max(0, mid+float64(t.Slope.Value)/1000*(x-at))})
				}
			}
		}
		if len(rows) == 0 {
			continue
		}
		only := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
		col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
		f.Panels = append(f.Panels, Panel{Title: op, Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + op, "data": spec{"values": rows},
			"encoding": spec{"x": spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, most * 1.04}, "nice": false}, "axis": spec{"title": "objects stored", "grid": false, "tickCount": 5, "labelExpr": "format(datum.value, ',')"}},
				"y": spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, top * 1.06}, "nice": false}, "axis": r.valueAxis("s", top)}},
			"layer": []spec{
				{"transform": only("line"), "mark": spec{"type": "line", "strokeWidth": 1.75}, "encoding": spec{"color": col, "detail": spec{"field": "cell", "type": "nominal"}}},
				{"transform": only("trial"), "mark": spec{"type": "point", "filled": true, "size": 30, "opacity": 0.8}, "encoding": spec{"color": col, "shape": spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}, "tooltip": spec{"field": "tip", "type": "nominal"}}},
			}}})
	}
	if n == 0 {
		return Figure{}
	}
	f.N = "n = " + plural(int64(n), "median of a valid trial", "medians of valid trials")
	cut := 0
	for _, t := range r.Trends {
		cut += t.Cut
	}
	if cut > 0 {
		f.N += "; " + plural(int64(cut), "more is", "more are") + " beyond what was watched and not drawn"
	}
	return f
}

// middleOf is the point that a trend's line goes through: the medians of its
// times and of its numbers of objects.
func (r *Report) middleOf(t Trend) (time, objects float64) {
	var x, y []float64
	for _, p := range r.filled(t.cell, t.Operation) {
		x, y = append(x, p.stored), append(y, p.took)
	}
	return middle(y), middle(x)
}
