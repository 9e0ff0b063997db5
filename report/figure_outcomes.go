package report

import (
	"fmt"
	"strconv"

	"github.com/plimsoll-project/plimsoll/record"
)

// successFigure draws the share of finished operations that the server served.
func (r *Report) successFigure() Figure {
	f := Figure{ID: "success", Title: "Success rate", Better: better(record.Higher), Legend: r.systemLegend(),
		Reads: "Operations that ended well, of those that finished. Deadlines and operations in flight are limits of the experiment, not failures of the server: they are in the next figure, not in this one. The interval is Clopper–Pearson, widened by the spread between trials."}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"success", true}, Column{"low", true}, Column{"high", true}, Column{"ok", true}, Column{"finished", true}, Column{"censored", true})
	data := map[string][]spec{}
	least, ops, failed := 1.0, int64(0), false
	for _, c := range r.cells() {
		p := c.Success
		if p.Of == 0 {
			continue
		}
		ops += p.Of
		failed = failed || p.OK < p.Of
		least = min(least, float64(p.Lo))
		k := r.shape.panel(c)
		data[k] = append(data[k], spec{"kind": "median", "system": c.System, "x": r.dodge(c, 0), "y": p.Value, "lo": p.Lo, "hi": p.Hi,
			"tip": fmt.Sprintf("%s: %s of %s operations", r.shape.named(c), percent(float64(p.Value)), count(p.Of))})
		f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System},
			share(p.Value), share(p.Lo), share(p.Hi), whole(p.OK), whole(p.Of), whole(p.Censored)))
	}
	if ops == 0 {
		return Figure{}
	}
	f.N = "n = " + plural(ops, "finished operation", "finished operations") + " of valid trials"
	if !failed {
		f.N += "; none failed"
	}
	for _, k := range r.shape.groups {
		if len(data[k]) == 0 {
			continue
		}
		y := spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, 1.04}, "nice": false}, "axis": shareAxis()}
		f.Panels = append(f.Panels, r.panelOf(k, f.Title, data[k], r.metricLayers(), y))
	}
	return f
}

// outcomeTone orders outcomes from good to bad, each with its colour.
func outcomeColour(o record.Outcome) string { return "var(--o-" + o.String() + ")" }

// outcomeFigure stacks every operation's outcome, so that deadlines stand
// beside failures and nothing is missing.
func (r *Report) outcomeFigure() Figure {
	f := Figure{ID: "outcomes", Title: "How operations ended", Better: "more blue is better",
		Reads: "Every operation of valid trials, stacked by outcome. Shades of red are the server's failures; yellow ones were starved by a full link, or cut off by the experiment's own deadline or the end of the trial, and say nothing about who was at fault."}
	f.Table.Head = append(r.factorColumns(), Column{"system", false})
	seen := map[record.Outcome]bool{}
	total := int64(0)
	for _, c := range r.cells() {
		for _, o := range record.Outcomes() {
			if c.Outcomes[o.String()] > 0 {
				seen[o] = true
			}
			total += c.Outcomes[o.String()]
		}
	}
	if total == 0 {
		return Figure{}
	}
	var names, colours []string
	for _, o := range record.Outcomes() {
		if seen[o] {
			names, colours = append(names, o.String()), append(colours, outcomeColour(o))
			f.Legend = append(f.Legend, Legend{o.String(), outcomeColour(o), "bar"})
			f.Table.Head = append(f.Table.Head, Column{o.String(), true})
		}
	}
	data := map[string][]spec{}
	labels := map[string][]string{}
	for _, c := range r.cells() {
		sum := int64(0)
		for _, n := range c.Outcomes {
			sum += n
		}
		if sum == 0 {
			continue
		}
		k := r.shape.panel(c)
		bar := c.System
		if r.shape.axis != nil {
			fac, _ := c.Factor(r.shape.axis.Path)
			bar = fac.Text() + " · " + c.System
		}
		labels[k] = append(labels[k], bar)
		row := append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System})
		for i, o := range record.Outcomes() {
			if !seen[o] {
				continue
			}
			n := c.Outcomes[o.String()]
			row = append(row, whole(n))
			if n > 0 {
				data[k] = append(data[k], spec{"bar": bar, "outcome": o.String(), "order": i, "share": float64(n) / float64(sum),
					"tip": fmt.Sprintf("%s: %s of %s %s", r.shape.named(c), count(n), count(sum), o)})
			}
		}
		f.Table.Rows = append(f.Table.Rows, row)
	}
	f.N = "n = " + plural(total, "operation", "operations") + " of " + plural(int64(r.Run.Valid), "valid trial", "valid trials")
	for _, k := range r.shape.groups {
		if len(data[k]) == 0 {
			continue
		}
		name := r.shape.names[k]
		f.Panels = append(f.Panels, Panel{Title: name, Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + name,
			"data":   spec{"values": data[k]},
			"height": 17 * len(labels[k]),
			"mark":   spec{"type": "bar", "height": spec{"band": 0.78}},
			"encoding": spec{
				"y":       spec{"field": "bar", "type": "nominal", "sort": labels[k], "axis": spec{"title": nil, "ticks": false, "domain": false, "grid": false}},
				"x":       spec{"field": "share", "type": "quantitative", "stack": "zero", "scale": spec{"domain": []float64{0, 1}}, "axis": shareAxis()},
				"color":   spec{"field": "outcome", "type": "nominal", "scale": spec{"domain": names, "range": colours}, "legend": nil},
				"order":   spec{"field": "order", "type": "quantitative"},
				"tooltip": spec{"field": "tip", "type": "nominal"},
			}}})
	}
	return f
}

func shareAxis() spec {
	return spec{"title": nil, "tickCount": 5, "labelExpr": "format(datum.value * 100, '~g') + ' %'"}
}

func share(v Num) Entry {
	if !v.Known() {
		return Entry{Text: "–"}
	}
	return Entry{Text: percent(float64(v)), Raw: strconv.FormatFloat(float64(v), 'g', -1, 64)}
}

func whole(n int64) Entry { return Entry{Text: count(n), Raw: strconv.FormatInt(n, 10)} }
