package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// mostForetold is up to how many cells a run's predictions are shown on its page:
// beyond it, leaving each out in turn takes longer than all else.
const mostForetold = 200

// predictionFigure shows how well the models of the run predict each cell from the
// others: what there is to know before `plimsoll predict` is believed.
func (r *Report) predictionFigure(in *input) Figure {
	var plan experiment.Plan
	if r.lens.predict == nil || r.imported != nil || r.Run.State == "running" || len(r.Cells) > mostForetold || json.Unmarshal(in.raw, &plan) != nil {
		return Figure{}
	}
	var checks []Calibration
	for _, m := range r.lens.predict.models(r, in, &plan.Experiment) {
		checks = append(checks, m.check()...)
	}
	return r.foretold(checks)
}

// foretold draws held-out cells: measured against predicted.
func (r *Report) foretold(checks []Calibration) Figure {
	f := Figure{ID: "foretold", Title: "What the models say of cells not run", Better: "closer to the line is better", Legend: r.systemLegend(),
		Reads: "Each mark is a cell, left out and predicted from the others by the model of the run: measured upwards, predicted to the right, with the interval of 95 % for what was measured. On the dashed line both are the same; nineteen of twenty bars should cross it. Hollow marks are of models that are refused for what is seen here."}
	f.Table.Head = []Column{{"model", false}, {"of", false}, {"system", false}, {"cell", false}, {"measured", true}, {"predicted", true}, {"low", true}, {"high", true}, {"inside", false}}
	type panel struct{ what, unit string }
	var order []panel
	rows, ends := map[panel][]spec{}, map[panel][2]float64{}
	cells, inside := 0, 0
	var refused []string
	for i := range checks {
		c := &checks[i]
		what, _, _ := strings.Cut(c.What, ", ")
		p := panel{what, c.Unit}
		kind := "used"
		if c.Refused != "" {
			kind = "refused"
			if c.Cells > 0 {
				refused = append(refused, c.System+", "+c.What)
			}
		}
		for _, h := range c.Held {
			if h.Refused != "" || !(h.Measured > 0) || !(h.Time.Lo > 0) {
				continue
			}
			if rows[p] == nil {
				order, ends[p] = append(order, p), [2]float64{math.Inf(1), 0}
			}
			is := "no"
			if h.inside() {
				is = "yes"
			}
			if kind == "used" {
				cells++
				if h.inside() {
					inside++
				}
			}
			e := ends[p]
			ends[p] = [2]float64{min(e[0], float64(h.Measured), float64(h.Time.Lo)), max(e[1], float64(h.Measured), float64(h.Time.Hi))}
			rows[p] = append(rows[p], spec{"kind": kind, "system": c.System, "x": significant(float64(h.Time.Value), 4), "lo": significant(float64(h.Time.Lo), 4), "hi": significant(float64(h.Time.Hi), 4), "y": significant(float64(h.Measured), 4),
				"tip": fmt.Sprintf("%s, %s, %s: measured %s, predicted %s (%s)", c.System, c.What, h.Where, show(float64(h.Measured), c.Unit), showRange(h.Time.Value, h.Time.Lo, h.Time.Hi, c.Unit), c.Model)})
			f.Table.Rows = append(f.Table.Rows, []Entry{{Text: c.Model}, {Text: c.What}, {Text: c.System}, {Text: h.Where}, number(h.Measured, c.Unit), number(h.Time.Value, c.Unit), number(h.Time.Lo, c.Unit), number(h.Time.Hi, c.Unit), {Text: is}})
		}
	}
	if cells == 0 {
		return Figure{} // nothing that may be asked
	}
	f.N = fmt.Sprintf("%d of %s in their intervals; ask with: plimsoll predict %s --set KEY=VALUE", inside, plural(int64(cells), "cell lies", "cells lie"), r.dir)
	if len(refused) > 0 {
		f.Reads += " Refused: " + strings.Join(slices.Compact(refused), "; ") + "."
	}
	colour, shape := r.systemScales()
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	shp := spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}
	tip := spec{"field": "tip", "type": "nominal"}
	is := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
	for _, p := range order {
		e := ends[p]
		lo, hi := e[0]/1.1, e[1]*1.1
		scale := spec{"type": "log", "domain": []float64{lo, hi}, "nice": false}
		x, y := logAxis(p.unit), logAxis(p.unit)
		x["title"], x["grid"] = "predicted", false
		y["title"] = "measured"
		f.Panels = append(f.Panels, Panel{Title: p.what, Spec: spec{
			"$schema": vegaLite, "description": f.Title, "data": spec{"values": rows[p]}, "height": 240,
			"encoding": spec{"x": spec{"field": "x", "type": "quantitative", "scale": scale, "axis": x}, "y": spec{"field": "y", "type": "quantitative", "scale": scale, "axis": y}},
			"layer": []spec{
				{"data": spec{"values": []spec{{"x": lo, "y": lo}, {"x": hi, "y": hi}}}, "mark": spec{"type": "line", "color": "var(--ink)", "strokeWidth": 1.25, "strokeDash": []int{6, 4}}},
				{"mark": spec{"type": "rule", "strokeWidth": 1.5, "opacity": 0.7}, "encoding": spec{"color": col, "x": spec{"field": "lo", "type": "quantitative"}, "x2": spec{"field": "hi"}}},
				{"transform": is("used"), "mark": spec{"type": "point", "filled": true, "size": 56, "opacity": 1}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
				{"transform": is("refused"), "mark": spec{"type": "point", "filled": true, "fill": "var(--paper)", "size": 52, "strokeWidth": 1.5, "opacity": 1}, "encoding": spec{"stroke": col, "shape": shp, "tooltip": tip}},
			},
		}})
	}
	return f
}
