package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// drawOverhead makes the figures in the order of the page.
func (r *Report) drawOverhead(*input) error {
	rounds, time := r.roundsFigure(), r.costFigure()
	switch {
	case len(rounds.Panels) > 0:
		r.Hero = &rounds
		r.add(time)
	case len(time.Panels) > 0:
		time.ID = "hero"
		r.Hero = &time
	}
	r.add(r.residualFigure())
	r.add(r.ratioFigure(r.headline))
	r.add(r.phaseFigure())
	r.add(r.expansionFigure())
	r.add(r.footprintFigure())
	r.add(r.trendFigure())
	r.add(r.metricFigure(drawing{id: "first-byte", metric: "first_byte_p50", title: "Time to first byte", log: true, line: "first_byte_line",
		reads: "Median over a trial's operations, from the moment an operation started to the first byte that came back. The dashed line is the load line: the round trips that have to be waited for."}))
	r.add(r.metricFigure(drawing{id: "cpu", metric: "system_cpu_per_op", title: "CPU per operation, with what surrounds it", log: true,
		reads: "CPU seconds of the system's processes during a trial, divided by its timed operations. What is not timed is in it: to prime, to make cold, to remove. That differs from system to system, so it is not compared."}))
	r.add(r.successFigure())
	r.add(r.outcomeFigure())
	return nil
}

// roundsFigure answers what an object costs in distance: the sequential round
// trips of each operation.
func (r *Report) roundsFigure() Figure {
	f := Figure{ID: "rounds", Title: "Sequential round trips of one operation", Better: "fewer are better", Legend: r.systemLegend(),
		Reads: "How many times an operation waits for the other end, counted from outside: the slope of its time over the measured round trip, with its interval. Each costs the whole distance again, whatever the rate of the link."}
	var rows []spec
	var labels []string
	points, top := 0, 0.0
	for i := range r.Fits {
		t := &r.Fits[i]
		label := r.nameOf(t)
		if !t.Rounds.Value.Known() {
			continue
		}
		if !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
		points += t.Points
		row := spec{"row": label, "system": t.System, "x": t.Rounds.Value, "text": decimals(float64(t.Rounds.Value)),
			"tip": fmt.Sprintf("%s, %s: %s, A = %s", t.System, label, roundWords(float64(t.Rounds.Value)), showRange(t.A.Value, t.A.Lo, t.A.Hi, "s"))}
		top = max(top, float64(t.Rounds.Value))
		if t.Rounds.Lo.Known() && t.Rounds.Hi.Known() {
			row["lo"], row["hi"] = t.Rounds.Lo, t.Rounds.Hi
			top = max(top, float64(t.Rounds.Hi))
		}
		rows = append(rows, row)
	}
	if rows == nil {
		return Figure{}
	}
	f.Table, f.N = r.fitTable(), "n = "+plural(int64(points), "valid trial", "valid trials")
	colour, shape := r.systemScales()
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	x := spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{min(0, lowest(rows)), max(1, top) * 1.12}, "nice": false},
		"axis": spec{"title": "round trips", "tickCount": 6, "grid": true, "gridDash": []int{1, 3}}}
	f.Panels = []Panel{{Spec: spec{
		"$schema": vegaLite, "description": f.Title, "data": spec{"values": rows}, "height": max(200, 40+len(labels)*(10+24*len(r.Systems))),
		"encoding": spec{"y": spec{"field": "row", "type": "nominal", "sort": labels, "axis": spec{"title": nil, "ticks": false, "domain": false, "grid": false, "labelLimit": 150}},
			"yOffset": spec{"field": "system", "type": "nominal", "sort": colour["domain"], "scale": spec{"domain": colour["domain"], "paddingOuter": 0.5}}, "x": x},
		"layer": []spec{
			{"mark": spec{"type": "rule", "strokeWidth": 2}, "encoding": spec{"color": col, "x": spec{"field": "lo", "type": "quantitative"}, "x2": spec{"field": "hi"}}},
			{"mark": spec{"type": "point", "filled": true, "size": 70, "opacity": 1}, "encoding": spec{"color": col, "shape": spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}, "tooltip": spec{"field": "tip", "type": "nominal"}}},
			{"mark": spec{"type": "text", "align": "center", "baseline": "bottom", "dy": -6, "fontSize": 10, "color": "var(--soft)"}, "encoding": spec{"text": spec{"field": "text", "type": "nominal"}}},
		},
	}}}
	return f
}

func lowest(rows []spec) float64 {
	lo := 0.0
	for _, row := range rows {
		if v, ok := row["lo"].(Num); ok {
			lo = min(lo, float64(v))
		}
	}
	return lo
}

// rtt is the round trip that a cell's link was asked for, in seconds.
func (c *Cell) rtt() float64 { return 2 * c.plan.Link.Delay.Seconds() }

// rttLevels are the round trips of the plan, shortest first, and their labels.
func (r *Report) rttLevels() (levels []float64, labels []string) {
	for _, c := range r.cells() {
		if c.sequential() && !slices.Contains(levels, c.rtt()) {
			levels = append(levels, c.rtt())
		}
	}
	slices.Sort(levels)
	for _, l := range levels {
		labels = append(labels, "RTT "+exact(l, "s"))
	}
	return levels, labels
}

// farBelowMarks is how far below a time its load line is still drawn: beyond that it
// would only press the others together.
const farBelowMarks = 100

// curvePoints is how many points a model's line has.
const curvePoints = 25

// costFigure draws an operation's time against its size, a line for each round
// trip: the shape that A, R and B stand for.
func (r *Report) costFigure() Figure {
	f := Figure{ID: "cost-time", Title: "Time of one operation against its size", Choose: "operation", Better: "lower is better",
		Reads: "Medians over trials with their interval, both axes logarithmic; lines are the fit A + R·RTT + B·size. Flat on the left: what an object costs before its bytes count. Rising on the right: the bytes. Lines apart: round trips. A line that breaks has more round trips from there on. The dashed line is the load line: what moves has to cross the link, after a round trip."}
	levels, labels := r.rttLevels()
	shades := []float64{}
	for i := range levels {
		f.Legend = append(f.Legend, Legend{labels[i], "var(--ink)", pointShapes[i%len(pointShapes)]})
		shades = append(shades, 0.45+0.55*float64(i+1)/float64(len(levels)))
	}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"duration", true}, Column{"low", true}, Column{"high", true}, Column{"fit", true}, Column{"trials", true})
	shapes := []string{}
	for i := range levels {
		shapes = append(shapes, pointShapes[i%len(pointShapes)])
	}
	var tasks []task
	rows := map[task][]spec{}
	lo, hi := map[task]float64{}, map[task]float64{}
	trials, lined := 0, false
	for _, c := range r.cells() {
		m, ok := c.Metrics["duration_p50"]
		if !c.sequential() || !ok || c.size() <= 0 || m.Median <= 0 {
			continue
		}
		k := c.task()
		if rows[k] == nil {
			tasks = append(tasks, k)
			lo[k], hi[k] = math.Inf(1), 0
		}
		trials += m.N
		label := labels[slices.Index(levels, c.rtt())]
		row := spec{"kind": "median", "rtt": label, "x": c.size(), "y": m.Median,
			"tip": fmt.Sprintf("%s, %s: %s", k, r.shape.where(c), showRange(m.Median, m.Lo, m.Hi, "s"))}
		lo[k], hi[k] = min(lo[k], float64(m.Median)), max(hi[k], float64(m.Median))
		if m.Lo > 0 && m.Hi.Known() && m.N > 1 {
			row["lo"], row["hi"] = m.Lo, m.Hi
			lo[k], hi[k] = min(lo[k], float64(m.Lo)), max(hi[k], float64(m.Hi))
		}
		rows[k] = append(rows[k], row)
		if line, ok := c.Metrics["line"]; ok && line.Median > m.Median/farBelowMarks {
			lined = true
			lo[k] = min(lo[k], float64(line.Median))
			rows[k] = append(rows[k], spec{"kind": "limit", "rtt": label, "x": c.size(), "y": line.Median, "tip": fmt.Sprintf("load line, %s: %s", r.shape.where(c), show(float64(line.Median), "s"))})
		}
		want := Entry{Text: "–"}
		if fit := r.fitOf(k); fit != nil && Num(c.size()) >= fit.From {
			want = number(Num(fit.model.Predict(r.distance(fit, c), c.size())), "s")
		}
		f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System}, number(m.Median, "s"), number(m.Lo, "s"), number(m.Hi, "s"), want, integer(m.N)))
	}
	if trials == 0 {
		return Figure{}
	}
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	if lined {
		f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
	}
	r.sortTasks(tasks)
	sizes, sizeLabels := r.sizes()
	for i, k := range tasks {
		if fit := r.fitOf(k); fit != nil {
			rows[k] = append(rows[k], r.curves(fit, levels, labels)...)
		}
		colour := "var(--s0)"
		for _, s := range r.Systems {
			if s.Name == k.system {
				colour = systemColour(s.Slot)
				if !s.Baseline && f.First == 0 && i > 0 && k.operation == tasks[0].operation {
					f.First = i
				}
			}
		}
		only := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
		opacity := spec{"field": "rtt", "type": "ordinal", "scale": spec{"domain": labels, "range": shades}, "legend": nil}
		shape := spec{"field": "rtt", "type": "nominal", "scale": spec{"domain": labels, "range": shapes}, "legend": nil}
		f.Panels = append(f.Panels, Panel{Title: k.system + ": " + k.String(), Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + k.system + ", " + k.String(), "data": spec{"values": rows[k]},
			"encoding": spec{"x": sizeChannel(sizes, sizeLabels), "y": spec{"field": "y", "type": "quantitative", "scale": spec{"type": "log", "domain": []float64{lo[k] / 1.25, hi[k] * 1.25}, "nice": false, "clamp": true}, "axis": logAxis("s")}},
			"layer": []spec{
				{"transform": only("limit"), "mark": spec{"type": "line", "strokeWidth": 1.25, "strokeDash": []int{6, 4}, "color": "var(--ink)", "point": spec{"size": 10, "color": "var(--ink)"}}, "encoding": spec{"opacity": opacity, "detail": spec{"field": "rtt", "type": "nominal"}, "tooltip": spec{"field": "tip", "type": "nominal"}}},
				{"transform": only("fit"), "mark": spec{"type": "line", "strokeWidth": 1.5, "color": colour}, "encoding": spec{"opacity": opacity, "detail": spec{"field": "line", "type": "nominal"}}},
				{"transform": only("median"), "mark": spec{"type": "rule", "strokeWidth": 1.5, "color": colour}, "encoding": spec{"opacity": opacity, "y": spec{"field": "lo", "type": "quantitative"}, "y2": spec{"field": "hi"}}},
				{"transform": only("median"), "mark": spec{"type": "point", "filled": true, "size": 52, "color": colour}, "encoding": spec{"opacity": opacity, "shape": shape, "tooltip": spec{"field": "tip", "type": "nominal"}}},
			}}})
	}
	return f
}

// distance is the measured round trip of a cell for a fit; 0 when the fit has none.
func (r *Report) distance(f *Fit, c *Cell) float64 {
	if !f.Rounds.Value.Known() {
		return 0
	}
	return r.roundTrip(c)
}

// curves are a model's lines, one for each round trip as measured.
func (r *Report) curves(f *Fit, levels []float64, labels []string) []spec {
	var rows []spec
	for i, level := range levels {
		rtt, seen := 0.0, false
		var rtts []float64
		for _, p := range f.residual {
			if p.trial.Info.rtt() == level {
				seen = true
				rtts = append(rtts, r.checks[p.trial.ID].RTT)
			}
		}
		if !seen {
			continue
		}
		if f.Rounds.Value.Known() {
			rtt = middle(rtts)
		}
		from, to := float64(f.From), float64(f.To)
		for j := range curvePoints {
			x := from * math.Pow(to/from, float64(j)/(curvePoints-1))
			if y := f.model.Predict(rtt, x); y > 0 {
				rows = append(rows, spec{"kind": "fit", "rtt": labels[i], "line": fmt.Sprint(i), "x": significant(x, 4), "y": significant(y, 5)})
			}
		}
	}
	return rows
}

// significant rounds to so many digits: what a picture can show, and no more.
func significant(v float64, n int) float64 {
	s, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil {
		return v
	}
	return s
}

// sizes are the sizes of the plan's objects and their labels.
func (r *Report) sizes() (sizes []float64, labels []string) {
	for _, c := range r.cells() {
		if v := c.size(); v > 0 && !slices.Contains(sizes, v) {
			sizes = append(sizes, v)
		}
	}
	slices.Sort(sizes)
	for _, v := range sizes {
		label := sizeWords(v)
		for _, c := range r.cells() {
			if f, ok := c.Factor("data.size"); ok && f.Number == v {
				label = f.Text()
			}
		}
		labels = append(labels, label)
	}
	return sizes, labels
}

// sizeChannel is the axis of sizes, logarithmic, with the plan's own labels.
func sizeChannel(sizes []float64, labels []string) spec {
	lo, hi := sizes[0], sizes[len(sizes)-1]
	pad := max(1.2, math.Pow(hi/lo, 0.05))
	return spec{"field": "x", "type": "quantitative", "scale": spec{"type": "log", "domain": []float64{lo / pad, hi * pad}, "nice": false},
		"axis": spec{"title": "size of the object", "values": sizes, "labelExpr": labelExpr(sizes, labels), "grid": false, "labelAngle": 0, "labelOverlap": "greedy"}}
}

// labelExpr labels values of an axis by the plan's words.
func labelExpr(values []float64, labels []string) string {
	expr := "''"
	for i := len(values) - 1; i >= 0; i-- {
		expr = fmt.Sprintf("datum.value == %s ? %s : %s", strconv.FormatFloat(values[i], 'g', -1, 64), strconv.Quote(labels[i]), expr)
	}
	return expr
}

// logAxis labels a logarithmic axis, each value with the prefix that suits it.
func logAxis(unit string) spec {
	table := words.Prefixes(unit)
	expr := "'0'"
	for i := len(table) - 1; i >= 0; i-- {
		p := table[i]
		say := fmt.Sprintf("format(datum.value / %s, '.3~g') + %s", strconv.FormatFloat(p.Scale, 'g', -1, 64), strconv.Quote(" "+p.Name+unit))
		if i == len(table)-1 {
			expr = say
			continue
		}
		expr = fmt.Sprintf("datum.value >= %s ? %s : %s", strconv.FormatFloat(p.Scale*0.9995, 'g', -1, 64), say, expr)
	}
	return spec{"title": nil, "tickCount": 5, "labelExpr": expr}
}

// residualFigure draws what the fits leave over, which should have no shape.
func (r *Report) residualFigure() Figure {
	f := Figure{ID: "residuals", Title: "What the fits leave over", Better: "closer to 0 is better", Legend: r.systemLegend(),
		Reads: "Each mark is a trial: its time divided by what A + R·RTT + B·size gives for it, less 1. A cloud around 0 is noise; a bend or steps mean that the operation is not what the model says. Values beyond ±100 % are drawn at the edge."}
	f.Table.Head = []Column{{"operation", false}, {"connections", false}, {"system", false}, {"size", true}, {"RTT", true}, {"median residual", true}, {"lowest", true}, {"highest", true}, {"trials", true}}
	type panel struct{ operation, connections string }
	var order []panel
	rows := map[panel][]spec{}
	n, top := 0, 0.05
	sizes, labels := r.sizes()
	for i := range r.Fits {
		fit := &r.Fits[i]
		k := panel{fit.Operation, fit.Connections}
		for _, p := range fit.residual {
			if p.trial.Info.size() <= 0 {
				continue
			}
			if rows[k] == nil {
				order = append(order, k)
			}
			n++
			top = max(top, min(1, math.Abs(p.value)))
			at := slices.IndexFunc(r.Systems, func(s System) bool { return s.Name == fit.System })
			x := p.trial.Info.size() * math.Pow(sizes[len(sizes)-1]/sizes[0], (float64(at)-float64(len(r.Systems)-1)/2)*0.012)
			rows[k] = append(rows[k], spec{"system": fit.System, "x": significant(x, 4), "y": significant(max(-1, min(1, p.value)), 3),
				"tip": fmt.Sprintf("%s, %s: %+.1f %%", fit.System, r.placeOf(p.trial.Info), 100*p.value)})
		}
		f.Table.Rows = append(f.Table.Rows, fit.residualRows(r)...)
	}
	if n == 0 {
		return Figure{}
	}
	f.N = "n = " + plural(int64(n), "valid trial", "valid trials")
	colour, shape := r.systemScales()
	for _, k := range order {
		name := task{"", k.operation, k.connections}.String()
		f.Panels = append(f.Panels, Panel{Title: name, Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + name, "data": spec{"values": rows[k]}, "height": 190,
			"encoding": spec{"x": sizeChannel(sizes, labels), "y": spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{-top * 1.05, top * 1.05}, "nice": false}, "axis": shareAxis()}},
			"layer": []spec{
				{"data": spec{"values": []spec{{"none": 0}}}, "mark": spec{"type": "rule", "color": "var(--ink)", "strokeWidth": 1.25},
					"encoding": spec{"x": spec{"value": 0}, "x2": spec{"value": "width"}, "y": spec{"field": "none", "type": "quantitative"}}},
				{"mark": spec{"type": "point", "filled": true, "size": 16, "opacity": 0.6}, "encoding": spec{"color": spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil},
					"shape": spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}, "tooltip": spec{"field": "tip", "type": "nominal"}}},
			}}})
	}
	return f
}

// residualRows are a fit's residuals by cell.
func (f *Fit) residualRows(r *Report) [][]Entry {
	var order []*Cell
	values, rtts := map[*Cell][]float64{}, map[*Cell][]float64{}
	for _, p := range f.residual {
		c := p.trial.Info
		if values[c] == nil {
			order = append(order, c)
		}
		values[c], rtts[c] = append(values[c], p.value), append(rtts[c], r.checks[p.trial.ID].RTT)
	}
	off := func(v float64) Entry {
		return Entry{Text: fmt.Sprintf("%+.1f %%", 100*v), Raw: Plain(significant(v, 4))}
	}
	var rows [][]Entry
	for _, c := range order {
		rows = append(rows, []Entry{{Text: f.Operation, Raw: f.Operation}, {Text: f.Connections, Raw: f.Connections}, {Text: f.System, Raw: f.System},
			{Text: sizeWords(c.size()), Raw: Plain(c.size())}, number(Num(middle(rtts[c])), "s"), off(middle(values[c])), off(slices.Min(values[c])), off(slices.Max(values[c])), integer(len(values[c]))})
	}
	return rows
}
