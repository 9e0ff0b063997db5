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

// leastMachineShare is the share of a machine line that a rate must reach for the line
// to be drawn: one far above all marks would flatten them.
const leastMachineShare = 0.5

// against draws medians with their intervals against the layout's axis, with single
// trials, load lines and machine lines.
func (d *drawer) against(f *figure, v analysis.Figure) {
	if v.X != "" {
		d.scatter(f, v)
		return
	}
	colour, shape, key := d.bySystem()
	valid, invalid, lines, machine, never := map[int64]bool{}, map[int64]bool{}, 0, 0, 0
	many := len(d.Frame.Trials) > manyTrials
	for _, name := range append([]string{v.Metric}, v.More...) {
		m, ok := d.metric(name)
		if !ok {
			continue
		}
		title := ""
		if len(v.More) > 0 {
			title = words.Capital(m.Name)
		}
		panels := d.panels(title)
		of := func(c *analysis.Cell) *panel { return panels[d.Frame.Layout.PanelOf(c)] }
		for _, x := range d.trials[name] {
			c := x.Trial.Info
			r := row{Kind: "trial", Series: c.System, X: d.place(c, 0.45), Y: short(x.Value)}
			if !x.Trial.Valid() {
				r.Kind, r.Tip = "invalid", fmt.Sprintf("%s: %s; invalid: %s", d.Frame.Layout.Name(c), show(x.Value, m.Unit), words.List(x.Trial.Invalid))
				invalid[x.Trial.ID] = true
			} else if valid[x.Trial.ID] = true; many {
				continue
			}
			of(c).add(r)
		}
		for _, c := range d.Cells {
			if y := d.Frame.MachineLine(c, m); v.Line != "" && name == v.Metric && y.Known() && !(m.Better == record.Higher && c.Metrics[name].Median < leastMachineShare*y) {
				of(c).add(row{Kind: "machine", Series: c.System, X: d.place(c, 0), Y: short(y), Tip: d.Frame.Layout.Name(c) + ": machine line " + show(float64(y), m.Unit)})
				machine++
			}
			if s, ok := d.of(c, name); ok {
				of(c).add(d.median(c, s, m))
			} else if n := censored(d.Frame.Of(c, name)); n > 0 {
				never++
				of(c).add(row{Kind: "censored", Series: c.System, X: d.place(c, 0), Tip: fmt.Sprintf("%s: beyond what was watched in %s of %d", d.Frame.Layout.Name(c), words.Plural(int64(n), "trial", "trials"), c.Valid)})
			}
		}
		if v.Line != "" && name == v.Metric {
			lines += d.loadLines(panels, v.Line, m.Unit)
		}
		var all []*panel
		for _, p := range d.Frame.Layout.Panels {
			all = append(all, panels[p.Key])
		}
		f.Panels = append(f.Panels, all...)
		for p, y := range f.scales(all, m.Unit, v.Log) {
			p.finish(v.Title, spec{"x": d.factorAxis(), "y": y})
		}
	}
	f.N += "n = " + words.Plural(int64(len(valid)), "valid trial", "valid trials")
	f.Legend = key
	for _, extra := range []struct {
		n int
		l legend
	}{{lines, legend{"load line", "var(--ink)", "dash"}}, {machine, legend{"machine line", "var(--ink)", "bar"}}, {len(invalid), legend{"invalid trial", "var(--ink)", "hollow"}},
		{never, legend{"not reached", "var(--soft)", "hollow"}}} {
		if extra.n > 0 {
			f.Legend = append(f.Legend, extra.l)
		}
	}
	across := spec{"tooltip": tip}
	if d.Frame.Layout.Axis == nil { // systems lie beside one another: there is no line between them
		across = spec{"tooltip": tip, "x": spec{"value": 0}, "x2": spec{"value": "width"}}
	}
	dashed := spec{"type": "line", "strokeDash": []int{6, 4}, "strokeWidth": 1.5, "opacity": 0.8, "point": d.Frame.Layout.Axis != nil && len(d.Frame.Layout.Axis.Values) == 1}
	if d.Frame.Layout.Axis == nil {
		dashed["type"] = "rule"
	}
	common, own := with(dashed, "color", "var(--ink)"), with(across, "color", colour)
	low := spec{"color": colour, "shape": shape, "tooltip": tip, "y": spec{"value": "height"}}
	if strings.HasPrefix(f.Better, "lower") {
		low["y"] = spec{"value": 4}
	}
	f.Shared["layer"] = []spec{layer("line", common, across), layer("own line", dashed, own),
		layer("median", spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.75}, spec{"color": colour}),
		layer("median", spec{"type": "rule", "strokeWidth": 1.75}, spec{"color": colour, "y": quantitative("lo"), "y2": spec{"field": "hi"}}),
		layer("machine", spec{"type": "tick", "orient": "horizontal", "thickness": 2, "size": 18}, spec{"color": colour, "tooltip": tip}),
		layer("trial", spec{"type": "point", "filled": true, "size": 14, "opacity": 0.45}, spec{"color": colour, "shape": shape}),
		layer("invalid", spec{"type": "point", "filled": false, "size": 60, "strokeWidth": 1.5}, spec{"color": colour, "shape": shape, "tooltip": tip}),
		layer("censored", spec{"type": "point", "filled": false, "size": 60, "strokeWidth": 1.5, "strokeDash": []int{2, 2}}, low),
		layer("median", spec{"type": "point", "filled": true, "size": 64, "opacity": 1, "stroke": "var(--paper)", "strokeWidth": 1}, spec{"color": colour, "shape": shape, "tooltip": tip})}
}

// scatter draws each valid trial at its value of another metric.
func (d *drawer) scatter(f *figure, v analysis.Figure) {
	across, ok := d.metric(v.X)
	n := 0
	for _, name := range append([]string{v.Metric}, v.More...) {
		m, has := d.metric(name)
		if !ok || !has {
			continue
		}
		title := ""
		if len(v.More) > 0 {
			title = words.Capital(m.Name)
		}
		p, turned := &panel{Title: title, Spec: spec{}}, &panel{}
		for _, x := range d.trials[name] {
			at, has := x.Trial.Metrics[v.X]
			if !has || !x.Trial.Valid() {
				continue
			}
			n++
			p.add(row{Kind: "median", Series: x.Trial.Info.System, X: short(at), Y: short(x.Value), value: short(x.Value), at: show(at, across.Unit),
				Tip: fmt.Sprintf("%s, at %s: %s", d.Frame.Layout.Name(x.Trial.Info), show(at, across.Unit), show(x.Value, m.Unit))})
			turned.add(row{Y: short(at)})
		}
		least, most := extent(turned)
		f.Panels = append(f.Panels, p)
		p.finish(v.Title, spec{"x": valueChannel("x", across.Unit, across.Name, false, least, most), "y": f.scales([]*panel{p}, m.Unit, v.Log)[p]})
	}
	colour, shape, key := d.bySystem()
	f.Legend, f.N = key, "n = "+words.Plural(int64(n), "valid trial", "valid trials")
	f.Shared["layer"] = []spec{layer("median", spec{"type": "point", "filled": true, "size": 36, "opacity": 0.8}, spec{"color": colour, "shape": shape, "tooltip": tip})}
}

// median is the mark of a cell's median.
func (d *drawer) median(c *analysis.Cell, s analysis.Summary, m record.Metric) row {
	r := row{Kind: "median", Series: c.System, X: d.place(c, 0), Y: short(s.Median), value: short(s.Median), at: d.at(c),
		Tip: fmt.Sprintf("%s: %s, %s", d.Frame.Layout.Name(c), words.Range(float64(s.Median), float64(s.Lo), float64(s.Hi), m.Unit), words.Plural(int64(s.N), "trial", "trials"))}
	if s.Lo.Known() && s.Hi.Known() && s.N > 1 {
		r.Lo, r.Hi = short(s.Lo), short(s.Hi)
	}
	return r
}

// at is a cell's place on the axis in words.
func (d *drawer) at(c *analysis.Cell) string {
	if a := d.Frame.Layout.Axis; a != nil {
		x, _ := c.Factor(a.Path)
		return a.Label + " " + x.Text()
	}
	return "all"
}

func censored(rows []analysis.Row) (n int) {
	for _, r := range rows {
		if r.Censored {
			n++
		}
	}
	return n
}

func with(s spec, key string, v any) spec {
	c := spec{key: v}
	for k, x := range s {
		if k != key {
			c[k] = x
		}
	}
	return c
}

// loadLines adds the rows of a load line, and counts them.
func (d *drawer) loadLines(panels map[string]*panel, metric, unit string) int {
	all := d.Frame.LoadLines(metric)
	for _, l := range all {
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
	return len(all)
}

// mostBars is how many bars one panel has before the layout's panels part them.
const mostBars = 24

// bars draws one bar with its interval for each cell, a panel for each metric. Ratios are
// marks about 1.
func (d *drawer) bars(f *figure, v analysis.Figure) {
	layout, drawn, lines := d.Frame.Layout, 0, 0
	isRatio, marks := v.Metric == analysis.RatioColumn, v.Metric == analysis.RatioColumn || v.Log
	var systems []string
	for _, name := range append([]string{v.Metric}, v.More...) {
		m, ok := d.metric(name)
		if !ok {
			continue
		}
		title := ""
		if len(v.More) > 0 {
			title = words.Capital(m.Name)
		}
		one := &panel{Title: title, Spec: spec{}}
		parted, all := d.panels(title), []*panel{one}
		if len(d.Cells) > mostBars {
			all = nil
			for _, p := range layout.Panels {
				all = append(all, parted[p.Key])
			}
		}
		for _, c := range d.Cells {
			s, ok := d.of(c, name)
			if !ok {
				continue
			}
			p, label := one, layout.Where(c)
			if len(d.Cells) > mostBars {
				p, label = parted[layout.PanelOf(c)], strings.TrimPrefix(d.at(c), "all")
			}
			r := d.median(c, s, m)
			r.X, r.Y, r.at = r.Y, label, cmp.Or(label, "all")
			p.add(r)
			if drawn = max(drawn, s.N); !slices.Contains(systems, c.System) {
				systems = append(systems, c.System)
			}
			if l, ok := c.Metrics[v.Line]; ok && name == v.Metric {
				p.add(row{Kind: "line", Series: c.System, X: short(l.Median), Y: label, Tip: r.at + ": load line " + show(float64(l.Median), m.Unit)})
				lines++
			}
		}
		for _, p := range all {
			labels := map[any]bool{}
			for _, r := range p.rows {
				labels[r.Y] = true
			}
			least, most := acrossExtent(p)
			if isRatio {
				least, most = min(least, 0.9), max(most, 1.1)
			}
			p.Spec["height"] = len(labels)*max(len(systems)*11, 18) + 10
			p.finish(v.Title, spec{"x": valueChannel("x", m.Unit, "", marks, least, most), "yOffset": spec{"field": "s", "type": "nominal", "sort": systems},
				"y": spec{"field": "y", "type": "nominal", "sort": nil, "axis": spec{"title": nil, "ticks": false, "labelLimit": 230}}})
		}
		f.Panels = append(f.Panels, all...)
	}
	colour, shape, key := d.bySystem()
	f.Legend = slices.DeleteFunc(key, func(l legend) bool { return !slices.Contains(systems, strings.TrimSuffix(l.Label, " (baseline)")) })
	f.N = fmt.Sprintf("n = up to %s each", words.Plural(int64(drawn), "trial", "trials"))
	if lines > 0 {
		f.Legend = append(f.Legend, legend{"load line", "var(--ink)", "stroke"})
	}
	interval := spec{"x": quantitative("lo"), "x2": spec{"field": "hi"}}
	f.Shared["layer"] = []spec{layer("median", spec{"type": "bar", "opacity": 0.75}, spec{"color": colour, "tooltip": tip}),
		layer("median", spec{"type": "rule", "strokeWidth": 1.5, "color": "var(--ink)"}, interval),
		layer("line", spec{"type": "tick", "orient": "vertical", "thickness": 2, "color": "var(--ink)"}, spec{"tooltip": tip})}
	if marks {
		f.Shared["layer"] = []spec{layer("median", spec{"type": "rule", "strokeWidth": 2}, with(interval, "color", colour)),
			layer("median", spec{"type": "point", "filled": true, "size": 60, "opacity": 1}, spec{"color": colour, "shape": shape, "tooltip": tip})}
	}
	if isRatio {
		one := spec{"data": spec{"values": []spec{{"x": 1}}}, "mark": spec{"type": "rule", "strokeDash": []int{2, 3}, "color": "var(--soft)"},
			"encoding": spec{"x": quantitative("x"), "y": spec{"value": 0}, "y2": spec{"value": "height"}, "yOffset": nil}}
		f.Shared["layer"] = append([]spec{one}, f.Shared["layer"].([]spec)...)
	}
}

// acrossExtent is the range of a panel whose values lie from left to right.
func acrossExtent(p *panel) (least, most float64) {
	turned := &panel{}
	for _, r := range p.rows {
		turned.rows = append(turned.rows, row{Y: r.X, Lo: r.Lo, Hi: r.Hi}, row{Y: r.X2})
	}
	return extent(turned)
}

// distribution draws quantiles against the axis, or, of a metric of entities, the share
// of them that is at or below each value.
func (d *drawer) distribution(f *figure, v analysis.Figure) {
	m, ok := d.metric(v.Metric)
	if !ok {
		return
	}
	if v.More == nil && slices.ContainsFunc(d.Frame.Rows, func(r analysis.Row) bool { return r.Metric == v.Metric && r.Entity != "" }) {
		d.ecdf(f, v, m)
		return
	}
	panels, names, n := d.panels(""), []string{}, 0
	dashes := [][]int{{1, 0}, {6, 3}, {2, 3}, {8, 3, 2, 3}}
	for _, name := range append([]string{v.Metric}, v.More...) {
		x, ok := d.metric(name)
		if !ok || len(names) == len(dashes) {
			continue
		}
		label := x.Name
		if at := strings.LastIndex(name, "_p"); at >= 0 {
			label = name[at+1:]
		}
		for _, c := range d.Cells {
			if s, ok := d.of(c, name); ok {
				if !slices.Contains(names, label) {
					names = append(names, label)
				}
				r := d.median(c, s, x)
				r.Line, r.Tip, r.at = label, label+", "+r.Tip, label+", "+r.at
				panels[d.Frame.Layout.PanelOf(c)].add(r)
				n = max(n, s.N)
			}
		}
	}
	f.inOrder(d.Frame.Layout, panels)
	for p, y := range f.scales(f.Panels, m.Unit, v.Log || spread(f.Panels)) {
		p.finish(v.Title, spec{"x": d.factorAxis(), "y": y})
	}
	colour, shape, key := d.bySystem()
	f.Legend, f.N = key, f.N+fmt.Sprintf("n = up to %s each", words.Plural(int64(n), "trial", "trials"))
	for i, name := range names {
		f.Legend = append(f.Legend, legend{name, "var(--ink)", []string{"line", "dash", "dots", "dash"}[i]})
	}
	dash := spec{"field": "l", "type": "nominal", "scale": spec{"domain": names, "range": dashes[:len(names)]}, "legend": nil}
	f.Shared["layer"] = []spec{layer("median", spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.8}, spec{"color": colour, "strokeDash": dash}),
		layer("median", spec{"type": "rule", "strokeWidth": 1.5, "opacity": 0.7}, spec{"color": colour, "y": quantitative("lo"), "y2": spec{"field": "hi"}}),
		layer("median", spec{"type": "point", "filled": true, "size": 45, "opacity": 1}, spec{"color": colour, "shape": shape, "tooltip": tip})}
}

// mostSteps is how many points a curve of a distribution has at most.
const mostSteps = 100

// ecdf draws the share of entities at or below each value, a panel for each group. A
// curve ends below 1 where values are beyond what was watched.
func (d *drawer) ecdf(f *figure, v analysis.Figure, m record.Metric) {
	panels, order, n := map[string]*panel{}, []*panel{}, 0
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
			order = append(order, panels[c.Group])
		}
		slices.Sort(values)
		n += of
		step := max(len(values)/mostSteps, 1)
		for i := 0; i < len(values); i += step {
			share := float64(i+1) / float64(of)
			panels[c.Group].add(row{Kind: "median", Series: c.System, X: short(values[i]), Y: short(share), value: short(share), at: show(values[i], m.Unit),
				Tip: fmt.Sprintf("%s: %s within %s", c.System, words.Percent(share), show(values[i], m.Unit))})
			if i+step >= len(values) && i < len(values)-1 {
				step = len(values) - 1 - i
			}
		}
	}
	for _, p := range order {
		least, most := math.Inf(1), 0.0
		for _, r := range p.rows {
			x := float64(r.X.(short))
			least, most = min(least, x), max(most, x)
		}
		p.finish(v.Title, spec{"x": valueChannel("x", m.Unit, m.Name, v.Log, least, most), "y": valueChannel("y", "ratio", "", false, 0, 1)})
	}
	colour, shape, key := d.bySystem()
	f.Panels, f.Legend, f.N, f.Better = order, key, fmt.Sprintf("n = %s", words.Count(int64(n))), ""
	f.Shared["layer"] = []spec{layer("median", spec{"type": "line", "interpolate": "step-after", "strokeWidth": 1.75}, spec{"color": colour}),
		layer("median", spec{"type": "point", "filled": true, "size": 20, "opacity": 0.8}, spec{"color": colour, "shape": shape, "tooltip": tip})}
}
