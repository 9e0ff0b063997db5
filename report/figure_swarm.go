package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// An operation of a swarm is a leecher.
var ofLeechers = strings.NewReplacer("finished operation", "leecher", "operation", "leecher")

// drawSwarms makes the figures in the order of the page.
func (r *Report) drawSwarms(*input) error {
	if f := r.speedFigure(); len(f.Panels) > 0 {
		hero := r.hero(f)
		r.Hero = &hero
		if len(f.Panels) > 1 {
			r.add(f)
		}
	}
	most, goal := 0.0, ""
	if _, set := r.gateShare(); set {
		most, goal = r.gateMost(), "the goal, "+r.gateWords()
	}
	for _, key := range gateMetrics {
		r.add(r.ratioFigureWith(key, most, goal))
	}
	r.add(r.metricFigure(drawing{id: "time-last", metric: "time_last", title: "Time until the last leecher has everything", zero: true, line: "line",
		reads: "From the release to the end of the poll that told the last verified byte of the last leecher. The dashed line is the load line: nobody can be below it."}))
	r.add(r.completionFigure())
	r.add(r.doneFigure())
	r.add(r.timelineFigure())
	success := r.successFigure()
	success.Title = "Leechers that got everything"
	success.Reads = "Share of the leechers that got all bytes, verified, within the deadline. Those that a fault took away for good on purpose are not counted. The interval is over trials, whose leechers share their fate."
	success.N = ofLeechers.Replace(success.N)
	r.add(success)
	outcome := r.outcomeFigure()
	outcome.Title = "How leechers ended"
	outcome.Reads = "Every leecher of valid trials, by outcome. Stalled leechers got no further byte until the trial ended; those past the deadline had not finished in time; cancelled ones were taken away on purpose."
	outcome.N = ofLeechers.Replace(outcome.N)
	r.add(outcome)
	r.add(r.trafficFigure())
	r.add(r.resourceFigure("node-memory", "node_rss_peak", "Memory of the largest node", "Highest resident set of a node's processes during a trial."))
	r.add(r.resourceFigure("system-cpu", "system_cpu_per_gb", "CPU of the nodes", "CPU seconds of all nodes' processes per GB (10^9 bytes) of content that reached leechers."))
	r.add(r.resourceFigure("harness-cpu", "harness_cpu", "CPU of the harness", "Share of the machine's CPU that plimsoll itself used; the emulator of the links not counted."))
	return nil
}

// speedFigure is the study's: the median download speed of a trial's leechers
// against the number of nodes, with the quartiles of the leechers as a band.
func (r *Report) speedFigure() Figure {
	m, ok := r.metric("speed_median")
	if !ok || !r.measured("speed_median") {
		return Figure{}
	}
	f := Figure{ID: "speed", Title: "Download speed", Better: better(m.Better), Legend: r.systemLegend(),
		Reads: "Content divided by the time until a leecher had verified it all. Marks are medians over trials of the trial's median leecher, thin lines their interval; the band reaches from the leechers' lower to their upper quartile, medians over trials. Small marks are single trials."}
	lines := map[string][]spec{}
	for _, p := range r.loadLines("speed_line") {
		lines[p.panel] = append(lines[p.panel], r.limitRow(p, m.Unit))
	}
	if len(lines) > 0 {
		f.Reads += " The dashed line is the load line of the median leecher: no half of a swarm can be faster."
		f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
	}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"speed, median", true}, Column{"low", true}, Column{"high", true}, Column{"quarter of the leechers below", true}, Column{"quarter above", true}, Column{"trials", true})
	data, tops, points, invalid := map[string][]spec{}, map[string]float64{}, 0, 0
	for i := range r.Trials {
		t := &r.Trials[i]
		v, has := t.Metrics["speed_median"]
		if t.Warmup || !has || t.State != "done" || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		row := spec{"kind": "trial", "system": t.Info.System, "x": r.dodge(t.Info, 0.45), "y": v, "tip": fmt.Sprintf("%s: %s (%s)", r.shape.named(t.Info), show(v, m.Unit), record.BlockName(t.Block))}
		if !t.Valid() {
			row["kind"], row["tip"] = "invalid", fmt.Sprintf("%s; invalid: %s", row["tip"], list(t.Invalid))
			invalid++
		} else {
			points++
		}
		k := r.shape.panel(t.Info)
		data[k], tops[k] = append(data[k], row), max(tops[k], v)
	}
	for _, c := range r.cells() {
		s, has := c.Metrics["speed_median"]
		if !has {
			continue
		}
		k := r.shape.panel(c)
		row := spec{"kind": "median", "system": c.System, "x": r.dodge(c, 0), "y": s.Median,
			"tip": fmt.Sprintf("%s: median %s of %s", r.shape.named(c), showRange(s.Median, s.Lo, s.Hi, m.Unit), plural(int64(s.N), "trial", "trials"))}
		if s.N > 1 && s.Lo.Known() && s.Hi.Known() {
			row["lo"], row["hi"] = s.Lo, s.Hi
			tops[k] = max(tops[k], float64(s.Hi))
		}
		lower, below := c.Metrics["speed_p25"]
		upper, above := c.Metrics["speed_p75"]
		from, to := unknown, unknown
		if below && above {
			from, to = lower.Median, upper.Median
			row["q1"], row["q3"] = from, to
			tops[k] = max(tops[k], float64(to))
		}
		data[k] = append(data[k], row)
		f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System}, number(s.Median, m.Unit), number(s.Lo, m.Unit), number(s.Hi, m.Unit),
			number(from, m.Unit), number(to, m.Unit), integer(s.N)))
	}
	if points+invalid == 0 {
		return Figure{}
	}
	f.Legend = append(f.Legend, Legend{"half of the leechers", "var(--soft)", "bar"})
	for k, rows := range r.machineRows(m) {
		for _, row := range rows {
			data[k], tops[k] = append(data[k], row), max(tops[k], float64(row["y"].(Num)))
		}
	}
	for k, rows := range lines {
		for _, row := range rows {
			tops[k] = max(tops[k], row["y"].(float64))
		}
	}
	if invalid > 0 {
		f.Legend = append(f.Legend, Legend{"invalid trial", "var(--ink)", "hollow"})
	}
	f.N = r.basis(points, invalid)
	if shareTop(tops) {
		f.Reads += ownScales
	}
	colour, _ := r.systemScales()
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	band := []spec{{"filter": spec{"field": "q1", "valid": true}}}
	y1, y2 := spec{"field": "q1", "type": "quantitative"}, spec{"field": "q3"}
	for _, k := range r.shape.groups {
		if len(data[k]) == 0 {
			continue
		}
		layers := []spec{{"transform": band, "mark": spec{"type": "rule", "strokeWidth": 7, "opacity": 0.22}, "encoding": spec{"color": col, "y": y1, "y2": y2}}}
		if r.shape.axis != nil {
			layers = append([]spec{{"transform": band, "mark": spec{"type": "area", "opacity": 0.13}, "encoding": spec{"color": col, "y": y1, "y2": y2}}}, layers...)
		}
		if len(lines[k]) > 0 {
			layers = append(layers, r.limitLayer(lines[k]))
		}
		layers = append(layers, r.metricLayers()...)
		y := spec{"field": "y", "type": "quantitative", "axis": r.valueAxis(m.Unit, tops[k]), "scale": spec{"domain": []float64{0, tops[k] * 1.06}, "nice": true, "zero": true}}
		f.Panels = append(f.Panels, r.panelOf(k, f.Title, data[k], layers, y))
	}
	return f
}

// swarmPanels groups the cells by where they are, all systems of one in a panel.
func (r *Report) swarmPanels() (keys []string, of map[string][]*Swarm) {
	of = map[string][]*Swarm{}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if s.Trials == 0 {
			continue
		}
		if !slices.Contains(keys, s.Where) {
			keys = append(keys, s.Where)
		}
		of[s.Where] = append(of[s.Where], s)
	}
	return keys, of
}

// lineRow is the load line of a panel, in time.
func lineRow(all []*Swarm) (spec, float64) {
	for _, s := range all {
		if s.Line.Known() {
			return spec{"line": s.Line, "tip": "load line: " + show(float64(s.Line), "s")}, float64(s.Line)
		}
	}
	return nil, 0
}

// curvesFigure draws shares over time, one line per system with a band.
type curvesFigure struct {
	Figure
	r     *Report
	lined bool
	most  int // nodes of the panel shown first
}

func (f *curvesFigure) panel(where string, nodes int, rows []spec, line spec, most float64) {
	r := f.r
	if nodes > f.most {
		f.most, f.First = nodes, len(f.Panels) // the largest swarm tells most
	}
	colour, shape := r.systemScales()
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	shp := spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}
	tip := spec{"field": "tip", "type": "nominal"}
	order := spec{"field": "y", "type": "quantitative"}
	layers := []spec{
		{"transform": []spec{{"filter": spec{"field": "lo", "valid": true}}}, "mark": spec{"type": "area", "opacity": 0.15, "orient": "horizontal"}, "encoding": spec{"color": col, "x": spec{"field": "lo", "type": "quantitative"}, "x2": spec{"field": "hi"}}},
		{"mark": spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.85}, "encoding": spec{"color": col, "order": order}},
		{"mark": spec{"type": "point", "filled": true, "size": 34, "opacity": 1}, "encoding": spec{"color": col, "shape": shp, "tooltip": tip}},
	}
	if line != nil {
		f.lined = true
		layers = append([]spec{{"data": spec{"values": []spec{line}}, "mark": spec{"type": "rule", "strokeDash": []int{6, 4}, "strokeWidth": 1.5, "color": "var(--ink)"},
			"encoding": spec{"x": spec{"field": "line", "type": "quantitative"}, "tooltip": tip, "y": spec{"value": 0}, "y2": spec{"value": "height"}}}}, layers...)
	}
	f.Panels = append(f.Panels, Panel{Title: where, Spec: spec{
		"$schema": vegaLite, "description": f.Title + ", " + where, "data": spec{"values": rows},
		"encoding": spec{
			"x": spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, most * 1.03}, "nice": false}, "axis": timeAxis(most)},
			"y": spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, 1.03}, "nice": false}, "axis": shareAxis()}},
		"layer": layers}})
}

// point adds a time to the table and, where it is known, to the rows of a panel,
// whose latest is most.
func (f *curvesFigure) point(rows []spec, most float64, s *Swarm, q Reached, of string) ([]spec, float64) {
	f.Table.Rows = append(f.Table.Rows, append(f.r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, share(Num(q.Share)), number(q.Median, "s"), number(q.least, "s"), number(q.most, "s"), integer(q.N), integer(q.Beyond)))
	if !q.Median.Known() {
		return rows, most
	}
	row := spec{"system": s.System, "x": q.Median, "y": q.Share, "tip": fmt.Sprintf("%s: %s%s after %s (%d of %d trials)", s.System, percent(q.Share), of, showRange(q.Median, q.least, q.most, "s"), q.N-q.Beyond, q.N)}
	if s.Trials > 1 && q.Beyond == 0 {
		row["lo"], row["hi"] = q.least, q.most
		most = max(most, float64(q.most))
	}
	return append(rows, row), max(most, float64(q.Median))
}

// timeAxis labels seconds from left to right.
func timeAxis(most float64) spec {
	_, suffix := quantity(most, "s")
	return spec{"title": "time, " + suffix, "grid": false, "tickCount": 6, "labelExpr": fmt.Sprintf("format(datum.value * %g, '~g')", conversion(most, "s"))}
}

// draw makes a panel for each set of cells that belong together; curve adds the
// points of a swarm to its rows, and the latest time to most.
func (f *curvesFigure) draw(curve func(rows []spec, most float64, s *Swarm) ([]spec, float64)) Figure {
	trials := 0
	keys, of := f.r.swarmPanels()
	for _, where := range keys {
		var rows []spec
		line, most := lineRow(of[where])
		for _, s := range of[where] {
			trials += s.Trials
			rows, most = curve(rows, most, s)
		}
		if len(rows) > 0 {
			f.panel(where, of[where][0].Nodes, rows, line, most)
		}
	}
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	if f.lined {
		f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
	}
	return f.Figure
}

// completionFigure is how the content fills all leechers together.
func (r *Report) completionFigure() Figure {
	f := &curvesFigure{r: r, Figure: Figure{ID: "completion", Title: "The way to completion", Better: "further left is better", Legend: r.systemLegend(), Choose: "cells",
		Reads: "Share of all leechers' content that was verified, against the time since the release: marks at 1, 5, 25, 50, 75, 95 and 100 %, medians over trials; the band is their range over the trials. The dashed line is the load line: no swarm reaches 100 % before it. A line that ends below 100 % is one that half of the trials or more never brought to the end."}}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"share", true}, Column{"time", true}, Column{"least", true}, Column{"most", true}, Column{"trials", true}, Column{"never", true})
	return f.draw(func(rows []spec, most float64, s *Swarm) ([]spec, float64) {
		for _, q := range s.Together {
			rows, most = f.point(rows, most, s, q, "")
		}
		return rows, most
	})
}

// donePoints is how many points a curve of leechers has at most.
const donePoints = 40

// doneFigure is how many leechers have everything when.
func (r *Report) doneFigure() Figure {
	f := &curvesFigure{r: r, Figure: Figure{ID: "done", Title: "Leechers that have everything", Better: "further left is better", Legend: r.systemLegend(), Choose: "cells",
		Reads: "Share of a trial's leechers that had verified everything, against the time since their own release: the median over trials of the time to each share, with the range over the trials as a band (Kaplan–Meier within a trial, so that leechers that never finished count as later than any). The dashed line is the load line of the last leecher."}}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"share of the leechers", true}, Column{"time", true}, Column{"least", true}, Column{"most", true}, Column{"trials", true}, Column{"never", true})
	return f.draw(func(rows []spec, most float64, s *Swarm) ([]spec, float64) {
		l := max(1, s.Nodes-s.Seeders)
		steps := min(l, donePoints)
		for i := range steps {
			at := float64((i+1)*l/steps) / float64(l)
			q := s.reached(at, func(t swarmTrial) float64 { return t.reach(at, func(f *fetched) float64 { return f.done }) })
			rows, most = f.point(rows, most, s, q, " of the leechers")
		}
		return rows, most
	})
}
