package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
)

// maxPhasePanels bounds the operations and sizes with a picture of phases.
const maxPhasePanels = 48

// phaseFigure draws the system's own account of an operation over the round
// trip, beside the time that was measured: the phase that rises is the one that
// waits for the other end.
func (r *Report) phaseFigure() Figure {
	f := Figure{ID: "phases", Title: "Where the time goes, by the system's own account", Choose: "operation", Better: "flat is better",
		Reads: "Medians over trials of each phase that the system reports, against the measured round trip; the dashed line is the whole operation as timed from outside, the dotted one A + R·RTT. A phase's slope is its round trips. Phases may overlap: they need not add up."}
	f.Table.Head = []Column{{"system", false}, {"operation", false}, {"connections", false}, {"size", true}, {"phase", false}, {"RTT, shortest", true}, {"time there", true}, {"round trips", true}, {"trials", true}}
	type place struct {
		task
		size float64
	}
	var order []place
	var names []string
	for _, p := range r.Phases {
		k := place{task{p.System, p.Operation, p.Connections}, float64(p.Size)}
		if !slices.Contains(order, k) {
			order = append(order, k)
		}
		if !slices.Contains(names, p.Phase) {
			names = append(names, p.Phase)
		}
		rounds := Entry{Text: "–"}
		if p.Rounds.Value.Known() {
			rounds = Entry{Text: decimals(float64(p.Rounds.Value)), Raw: Plain(float64(p.Rounds.Value))}
			if p.Rounds.Lo.Known() && p.Rounds.Hi.Known() {
				rounds.Note = decimals(float64(p.Rounds.Lo)) + "–" + decimals(float64(p.Rounds.Hi))
			}
		}
		f.Table.Rows = append(f.Table.Rows, []Entry{{Text: p.System, Raw: p.System}, {Text: p.Operation, Raw: p.Operation}, {Text: p.Connections, Raw: p.Connections},
			{Text: sizeWords(float64(p.Size)), Raw: Plain(float64(p.Size))}, {Text: p.Phase, Raw: p.Phase}, number(p.RTT, "s"), number(p.Took, "s"), rounds, integer(p.N)})
	}
	if len(order) == 0 {
		return Figure{}
	}
	if len(order) > maxPhasePanels {
		f.Reads += fmt.Sprintf(" Drawn are the first %d of %d.", maxPhasePanels, len(order))
		order = order[:maxPhasePanels]
	}
	var colours, shapes []string
	for i, n := range names {
		colours, shapes = append(colours, systemColour(1+i%7)), append(shapes, pointShapes[(i+1)%len(pointShapes)])
		f.Legend = append(f.Legend, Legend{n, colours[i], shapes[i]})
	}
	f.Legend = append(f.Legend, Legend{"whole operation", "var(--ink)", "dash"})
	trials := 0
	for _, k := range order {
		rows, n := r.phaseRows(k.task, k.size)
		trials += n
		top := 0.0
		for _, row := range rows {
			top = max(top, row["y"].(float64))
		}
		only := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
		col := spec{"field": "phase", "type": "nominal", "scale": spec{"domain": names, "range": colours}, "legend": nil}
		title := fmt.Sprintf("%s: %s, %s", k.system, k.String(), sizeWords(k.size))
		f.Panels = append(f.Panels, Panel{Title: title, Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + title, "data": spec{"values": rows},
			"encoding": spec{"x": spec{"field": "x", "type": "quantitative", "scale": spec{"zero": true}, "axis": spec{"title": "round trip, ms", "grid": false, "tickCount": 6, "labelExpr": "format(datum.value * 1000, '~g')"}},
				"y": spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, top * 1.06}, "nice": false}, "axis": r.valueAxis("s", top)}},
			"layer": []spec{
				{"transform": only("model"), "mark": spec{"type": "line", "strokeWidth": 1.25, "strokeDash": []int{1, 3}, "color": "var(--ink)"}},
				{"transform": only("whole"), "mark": spec{"type": "line", "strokeWidth": 1.5, "strokeDash": []int{6, 4}, "color": "var(--ink)", "point": spec{"color": "var(--ink)", "size": 18}}, "encoding": spec{"tooltip": spec{"field": "tip", "type": "nominal"}}},
				{"transform": only("phase"), "mark": spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.75}, "encoding": spec{"color": col}},
				{"transform": only("phase"), "mark": spec{"type": "point", "filled": true, "size": 50, "opacity": 1}, "encoding": spec{"color": col, "shape": spec{"field": "phase", "type": "nominal", "scale": spec{"domain": names, "range": shapes}, "legend": nil}, "tooltip": spec{"field": "tip", "type": "nominal"}}},
			}}})
	}
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}

// phaseRows are the medians of one operation and size, by round trip as asked for.
func (r *Report) phaseRows(k task, size float64) (rows []spec, trials int) {
	levels, _ := r.rttLevels()
	for _, level := range levels {
		var rtts, whole []float64
		phases := map[string][]float64{}
		var order []string
		for i := range r.Trials {
			t := &r.Trials[i]
			if !t.Valid() || !t.Info.sequential() || t.Info.task() != k || t.Info.size() != size || t.Info.rtt() != level {
				continue
			}
			trials++
			rtts = append(rtts, r.checks[t.ID].RTT)
			if d, ok := t.Metrics["duration_p50"]; ok {
				whole = append(whole, d)
			}
			for _, d := range t.Details {
				if d.Kind == record.DetailPhase {
					if phases[d.Name] == nil {
						order = append(order, d.Name)
					}
					phases[d.Name] = append(phases[d.Name], d.Value)
				}
			}
		}
		if len(rtts) == 0 {
			continue
		}
		x := significant(middle(rtts), 5)
		for _, name := range order {
			y := middle(phases[name])
			rows = append(rows, spec{"kind": "phase", "phase": name, "x": x, "y": significant(y, 4), "tip": fmt.Sprintf("%s at RTT %s: %s", name, show(x, "s"), show(y, "s"))})
		}
		if len(whole) > 0 {
			y := middle(whole)
			rows = append(rows, spec{"kind": "whole", "x": x, "y": significant(y, 4), "tip": fmt.Sprintf("whole operation at RTT %s: %s", show(x, "s"), show(y, "s"))})
		}
		if fit := r.fitOf(k); fit != nil && fit.Rounds.Value.Known() {
			if y := fit.model.Predict(x, math.Max(size, float64(fit.From))) - max(0, float64(fit.B.Value))*size; y > 0 {
				rows = append(rows, spec{"kind": "model", "x": x, "y": significant(y, 4)})
			}
		}
	}
	return rows, trials
}
