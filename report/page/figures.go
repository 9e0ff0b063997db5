package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// leastMachineShare is the share of a machine line that a rate must reach for the line to be
// drawn: a line far above all marks would flatten them.
const leastMachineShare = 0.5

// metrics returns the metrics of a figure that the run has.
func (d *drawer) metrics(v analysis.Figure) (all []record.Metric) {
	for _, name := range append([]string{v.Metric}, v.More...) {
		if m, ok := d.metric(name); ok {
			all = append(all, m)
		}
	}
	return all
}

// heading returns the title of a metric's panels in a figure with several metrics.
func heading(v analysis.Figure, m record.Metric) string {
	if len(v.More) == 0 {
		return ""
	}
	return words.Capital(m.Name)
}

// against draws medians with intervals against the layout's axis, with single trials, load
// lines and machine lines.
func (d *drawer) against(f *figure, v analysis.Figure) {
	valid := map[int64]bool{} // trials
	for _, m := range d.metrics(v) {
		from := len(f.Panels)
		panels := d.panels(f, heading(v, m))
		d.trialMarks(panels, m, valid)
		lined := v.Line != "" && m.Key == v.Metric
		for _, c := range d.Cells {
			d.cellMarks(panels[d.Frame.Layout.PanelOf(c)], c, m, lined)
		}
		if lined {
			d.loadLines(panels, v.Line, m.Unit)
		}
		for p, y := range f.scales(f.Panels[from:], m.Unit, v.Log) {
			p.finish(v.Title, spec{"x": d.factorAxis(), "y": y})
		}
	}
	f.N = "n = " + words.Plural(int64(len(valid)), "valid trial", "valid trials")
	channels := spec{"unreached": "height"}
	if strings.HasPrefix(f.Better, "lower") {
		channels["unreached"] = 4
	}
	kind := "systems" // side by side, without lines between them
	if axis := d.Frame.Layout.Axis; axis != nil {
		kind, channels["single"] = "against", len(axis.Values) == 1
	}
	d.bySystem(f, kind, channels)
}

// trialMarks adds the trials of a metric, or only the invalid ones if there are many, and notes the
// valid ones.
func (d *drawer) trialMarks(panels map[string]*panel, m record.Metric, valid map[int64]bool) {
	many := len(d.Frame.Trials) > manyTrials
	for _, x := range d.trials[m.Key] {
		c := x.Trial.Info
		r := row{Kind: "trial", Series: c.System, X: d.place(c, 0.45), Y: short(x.Value)}
		if !x.Trial.Valid() {
			r.Kind, r.Tip = "invalid",
				fmt.Sprintf("%s: %s; invalid: %s", d.Frame.Layout.Name(c), show(x.Value, m.Unit),
					words.List(x.Trial.Invalid))
		} else if valid[x.Trial.ID] = true; many {
			continue
		}
		panels[d.Frame.Layout.PanelOf(c)].add(r)
	}
}

// cellMarks adds a cell's median, or the mark of a censored one, and its machine line.
func (d *drawer) cellMarks(p *panel, c *analysis.Cell, m record.Metric, lined bool) {
	y, name := d.Frame.MachineLine(c, m), d.Frame.Layout.Name(c)
	if far := m.Better == record.Higher && c.Metrics[m.Key].Median < leastMachineShare*y; lined && y.Known() && !far {
		p.add(row{Kind: "machine", Series: c.System, X: d.place(c, 0), Y: short(y), Tip: name + ": machine line " +
			show(float64(y), m.Unit)})
	}
	if s, ok := d.of(c, m.Key); ok {
		p.add(d.median(c, s, m))
	} else if cut := analysis.Censored(d.Frame.Of(c, m.Key)); cut > 0 {
		p.add(row{Kind: "censored", Series: c.System, X: d.place(c, 0),
			Tip: fmt.Sprintf("%s: beyond what was watched in %s of %d", name,
				words.Plural(int64(cut), "trial", "trials"), c.Valid)})
	}
}

// scatter draws each valid trial at its value of another metric.
func (d *drawer) scatter(f *figure, v analysis.Figure) {
	across, ok := d.metric(v.X)
	if !ok {
		return
	}
	n := 0
	for _, m := range d.metrics(v) {
		p := &panel{Title: heading(v, m), Spec: spec{}}
		for _, x := range d.trials[m.Key] {
			at, has := x.Trial.Metrics[v.X]
			if !has || !x.Trial.Valid() {
				continue
			}
			n++
			p.add(row{Kind: "median", Series: x.Trial.Info.System, X: short(at), Y: short(x.Value),
				value: short(x.Value), at: show(at, across.Unit),
				Tip: fmt.Sprintf("%s, at %s: %s", d.Frame.Layout.Name(x.Trial.Info), show(at, across.Unit),
					show(x.Value, m.Unit))})
		}
		least, most := extent(func(r row) []any { return []any{r.X} }, p)
		f.Panels = append(f.Panels, p)
		p.finish(v.Title, spec{"x": valueChannel("x", across.Unit, across.Name, false, least, most),
			"y": f.scales([]*panel{p}, m.Unit, v.Log)[p]})
	}
	f.N = "n = " + words.Plural(int64(n), "valid trial", "valid trials")
	d.bySystem(f, "scatter", spec{})
}

// median returns the mark of a cell's median.
func (d *drawer) median(c *analysis.Cell, s analysis.Summary, m record.Metric) row {
	r := row{Kind: "median", Series: c.System, X: d.place(c, 0), Y: short(s.Median), value: short(s.Median),
		at: d.at(c),
		Tip: fmt.Sprintf("%s: %s, %s", d.Frame.Layout.Name(c),
			words.Range(float64(s.Median), float64(s.Lo), float64(s.Hi), m.Unit),
			words.Plural(int64(s.N), "trial", "trials"))}
	if s.Lo.Known() && s.Hi.Known() && s.N > 1 {
		r.Lo, r.Hi = short(s.Lo), short(s.Hi)
	}
	r.ranged = !s.Exact && (r.Lo != nil || s.N == 1)
	return r
}

// at returns a cell's position on the axis in words.
func (d *drawer) at(c *analysis.Cell) string {
	if a := d.Frame.Layout.Axis; a != nil {
		x, _ := c.Factor(a.Path)
		return a.Label + " " + x.Text()
	}
	return "all"
}

// loadLines adds the rows of a load line.
func (d *drawer) loadLines(panels map[string]*panel, metric, unit string) {
	for _, l := range d.Frame.LoadLines(metric) {
		kind, what := "line", "load line"
		if l.System != "" {
			kind, what = "own line", "load line of "+l.System
		}
		r := row{Kind: kind, Series: l.System, X: short(l.X), Y: short(l.Y), Tip: what + ": " + show(l.Y, unit)}
		if d.Frame.Layout.Axis == nil {
			r.X = nil
		}
		panels[l.Panel].add(r)
	}
}

// bars draws one bar with its interval for each cell, with a panel for each metric. Ratios are
// drawn as marks around 1.
func (d *drawer) bars(f *figure, v analysis.Figure) {
	most := 0
	isRatio := v.Metric == analysis.RatioColumn
	var systems []string
	for _, m := range d.metrics(v) {
		p := &panel{Title: heading(v, m), Spec: spec{}}
		f.Panels = append(f.Panels, p)
		for _, c := range d.Cells {
			s, ok := d.of(c, m.Key)
			if !ok {
				continue
			}
			label := d.Frame.Layout.Where(c)
			r := d.median(c, s, m)
			r.X, r.Y, r.at = r.Y, label, cmp.Or(label, "all")
			p.add(r)
			if most = max(most, s.N); !slices.Contains(systems, c.System) {
				systems = append(systems, c.System)
			}
			if l, ok := c.Metrics[v.Line]; ok && m.Key == v.Metric {
				p.add(row{Kind: "tick", Series: c.System, X: short(l.Median), Y: label, Tip: r.at + ": load line " +
					show(float64(l.Median), m.Unit)})
			}
		}
		p.barAxes(v.Title, m.Unit, systems, isRatio)
	}
	f.N = fmt.Sprintf("n = up to %s each", words.Plural(int64(most), "trial", "trials"))
	kind := "bars"
	if isRatio {
		kind = "ratios"
	}
	d.bySystem(f, kind, spec{})
}

// longLabel is the number of characters of a bar's label above which labels have a line for each factor.
const longLabel = 36

// barAxes sets the axes of a panel with horizontal values.
func (p *panel) barAxes(title, unit string, systems []string, isRatio bool) {
	labels, lines, text := map[any]bool{}, 1, "datum.label"
	for _, r := range p.rows {
		labels[r.Y] = true
		if label := fmt.Sprint(r.Y); len(label) > longLabel {
			lines, text = max(lines, 1+strings.Count(label, " · ")), "split(datum.label, ' · ')"
		}
	}
	least, most := extent(func(r row) []any { return []any{r.X, r.Lo, r.Hi} }, p)
	if isRatio {
		least, most = min(least, 0.9), max(most, 1.1)
	}
	p.Spec["height"] = len(labels)*max(len(systems)*11, 4+14*lines) + 10
	p.finish(title, spec{"x": valueChannel("x", unit, "", isRatio, least, most),
		"yOffset": spec{"field": "s", "type": "nominal", "sort": systems},
		"y": spec{"field": "y", "type": "nominal", "sort": nil,
			"axis": spec{"title": nil, "ticks": false, "labelLimit": 230, "labelExpr": text}}})
}

// distribution draws quantiles against the axis or, for a metric of entities, the share of
// them at or below each value.
func (d *drawer) distribution(f *figure, v analysis.Figure) {
	metrics := d.metrics(v)
	if len(metrics) == 0 || metrics[0].Key != v.Metric {
		return
	}
	if v.More == nil && slices.ContainsFunc(d.Frame.Rows,
		func(r analysis.Row) bool { return r.Metric == v.Metric && r.Entity != "" }) {
		d.shares(f, v, metrics[0])
		return
	}
	panels, names, n := d.panels(f, ""), []string{}, 0
	dashes := [][]int{{1, 0}, {6, 3}, {2, 3}, {8, 3, 2, 3}}
	for _, x := range metrics {
		label := x.Name
		if at := strings.LastIndex(x.Key, "_p"); at >= 0 {
			label = x.Key[at+1:]
		}
		for _, c := range d.Cells {
			s, ok := d.of(c, x.Key)
			switch has := slices.Contains(names, label); {
			case !ok || !has && len(names) == len(dashes):
				continue
			case !has:
				names = append(names, label)
			}
			r := d.median(c, s, x)
			r.Line, r.Tip, r.at = label, label+", "+r.Tip, label+", "+r.at
			panels[d.Frame.Layout.PanelOf(c)].add(r)
			n = max(n, s.N)
		}
	}
	for p, y := range f.scales(f.Panels, metrics[0].Unit, v.Log || spread(f.Panels)) {
		p.finish(v.Title, spec{"x": d.factorAxis(), "y": y})
	}
	f.N = fmt.Sprintf("n = up to %s each", words.Plural(int64(n), "trial", "trials"))
	for i, name := range names {
		f.Legend = append(f.Legend, legend{name, "var(--ink)", []string{"line", "dash", "dots", "dash"}[i]})
	}
	d.bySystem(f, "quantiles", spec{"dash": nominal("l", names, dashes[:len(names)])})
}

// mostSteps is the largest number of points of the curve of a distribution.
const mostSteps = 100

// shares draws the share of entities at or below each value, with a panel for each group. A
// curve ends below 1 if values are censored.
func (d *drawer) shares(f *figure, v analysis.Figure, m record.Metric) {
	panels, n := map[string]*panel{}, 0
	for _, c := range d.Cells {
		var values []float64
		of := 0
		for _, t := range d.Frame.ValidTrials(c) {
			for _, r := range d.Frame.Entities(t, v.Metric) {
				if of++; !r.Censored && !math.IsNaN(r.Value) && !math.IsInf(r.Value, 0) {
					values = append(values, r.Value)
				}
			}
		}
		if panels[c.Group] == nil {
			panels[c.Group] = &panel{Title: d.Frame.Layout.Where(c), key: d.Frame.Layout.PanelOf(c), Spec: spec{}}
			f.Panels = append(f.Panels, panels[c.Group])
		}
		slices.Sort(values)
		n = max(n, of)
		step := max(len(values)/mostSteps, 1)
		for i := 0; i < len(values); i += step {
			share := float64(i+1) / float64(of)
			panels[c.Group].add(row{Kind: "median", Series: c.System, X: short(values[i]), Y: short(share),
				value: short(share), at: show(values[i], m.Unit),
				Tip: fmt.Sprintf("%s: %s within %s", c.System, words.Percent(share), show(values[i], m.Unit))})
			if i+step >= len(values) && i < len(values)-1 {
				step = len(values) - 1 - i
			}
		}
	}
	for _, p := range f.Panels {
		least, most := extent(func(r row) []any { return []any{r.X} }, p)
		p.finish(v.Title, spec{"x": valueChannel("x", m.Unit, m.Name, v.Log, least, most),
			"y": valueChannel("y", "ratio", "", false, 0, 1)})
	}
	f.N, f.Better = fmt.Sprintf("n = up to %s per curve", words.Count(int64(n))), ""
	d.bySystem(f, "shares", spec{})
}
