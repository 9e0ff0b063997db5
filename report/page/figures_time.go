package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

// typical is the trial that represents a cell in a figure over time: of those
// with something to show, a valid one whose headline is nearest to the cell's median.
func (d *drawer) typical(c *analysis.Cell, shows func(*analysis.Trial) bool) *analysis.Trial {
	var best *analysis.Trial
	want := float64(c.Metrics[d.Headline].Median)
	off := func(t *analysis.Trial) float64 {
		if v, ok := t.Metrics[d.Headline]; ok && t.Valid() {
			return math.Abs(v - want)
		}
		return math.Inf(1)
	}
	for _, t := range d.Frame.Trials {
		switch {
		case t.Info != c || t.Warmup || !shows(t):
		case best == nil, t.Valid() && !best.Valid(), t.Valid() == best.Valid() && off(t) < off(best):
			best = t
		}
	}
	return best
}

// timeUnit is the unit of an axis of so many seconds.
func timeUnit(longest float64) (name string, seconds float64) {
	switch {
	case longest > 3*86400:
		return "days", 86400
	case longest > 3*3600:
		return "hours", 3600
	case longest > 180:
		return "minutes", 60
	}
	return "seconds", 1
}

// overTime draws series of one trial of each cell: the systems of a group in one panel
// or, of several metrics, a panel for each cell.
func (d *drawer) overTime(f *figure, v analysis.Figure) {
	m, ok := d.metric(v.Metric)
	if !ok {
		return
	}
	wanted := append([]string{v.Metric}, v.More...)
	series := map[*analysis.Trial][]analysis.Series{}
	for _, s := range d.Frame.Series {
		if slices.Contains(wanted, s.Metric) && len(s.Points) > 0 {
			series[s.Trial] = append(series[s.Trial], s)
		}
	}
	perCell := len(v.More) > 0
	panels, names, trials, longest, left := map[string]*panel{}, []string{}, []*analysis.Trial{}, 0.0, 0
	for _, c := range d.Cells {
		t := d.typical(c, func(t *analysis.Trial) bool { return series[t] != nil })
		if t == nil {
			continue
		}
		key, title := c.Group, d.Frame.Layout.Where(c)
		if perCell {
			key, title = c.ID, d.Frame.Layout.Name(c)
		}
		if panels[key] == nil {
			if len(f.Panels) == mostPanels {
				left++
				continue
			}
			panels[key] = &panel{Title: title, key: d.Frame.Layout.PanelOf(c), Spec: spec{}}
			f.Panels = append(f.Panels, panels[key])
		}
		trials = append(trials, t)
		for _, s := range series[t] {
			if last := len(s.Points) - 1; last > 0 { // one point shows no course
				longest = max(longest, s.Points[last].At)
			}
		}
	}
	unit, seconds := timeUnit(longest)
	title, at := unit+" since the start", words.Span
	if v.Along != "" {
		title, seconds, at = v.Along, 1, func(x float64) string { return words.Digits(x, 4) }
	}
	n, lines := 0, 0
	for _, t := range trials {
		n += len(series[t])
	}
	for _, t := range trials {
		p, name := panels[t.Info.Group], t.Info.System
		if perCell {
			p = panels[t.Info.ID]
		}
		for i, s := range series[t] {
			if perCell {
				x, _ := d.Frame.Metric(s.Metric)
				if name = x.Name; !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			for _, x := range merged(s.Points, min(max(mostPoints/n, 24), 240)) {
				r := row{Kind: "time", Series: name, Line: fmt.Sprint(t.ID, " ", i), X: short(x.At / seconds), Y: short(x.Value), value: short(x.Value), at: at(x.At)}
				if x.Lo < x.Hi {
					r.Lo, r.Hi = short(x.Lo), short(x.Hi)
				}
				p.add(r)
			}
		}
		if y := t.Metrics[v.Line]; y > 0 {
			lines++
			p.add(row{Kind: "limit", Series: name, Y: short(y), Tip: t.Info.System + ": load line " + show(y, m.Unit)})
		}
		for _, s := range d.Frame.Spans {
			if s.Trial == t && s.Entity == "" && v.Along == "" && s.From <= longest {
				p.add(row{Kind: "event", X: short(s.From / seconds), Tip: fmt.Sprintf("%s, %s after the start: %s", t.Info.System, words.Moment(s.From), cmp.Or(s.Note, s.Kind))})
			}
		}
	}
	if longest == 0 {
		f.Panels = nil
		return
	}
	colour, _, key := d.bySystem()
	if perCell {
		colour, key = bySeries(names, "line")
	}
	if lines > 0 {
		key = append(key, legend{"load line", "var(--ink)", "dash"})
	}
	x := spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []short{0, short(longest / seconds)}, "nice": false}, "axis": spec{"title": title, "grid": false, "tickCount": 6}}
	for p, y := range f.scales(f.Panels, m.Unit, v.Log) {
		p.finish(v.Title, spec{"x": x, "y": y})
	}
	if len(f.Panels) > 1 {
		f.Choose = "cells"
	}
	f.Legend, f.N = key, fmt.Sprintf("n = %s, one of each cell", words.Plural(int64(len(trials)), "trial", "trials"))
	if left > 0 {
		f.N += fmt.Sprintf("; %s not drawn", words.Plural(int64(left), "cell", "cells"))
	}
	line := spec{"field": "l", "type": "nominal"}
	f.Shared["layer"] = []spec{layer("time", spec{"type": "area", "opacity": 0.18, "clip": true}, spec{"color": colour, "detail": line, "y": quantitative("lo"), "y2": spec{"field": "hi"}}),
		layer("time", spec{"type": "line", "strokeWidth": 1.6, "clip": true, "point": spec{"size": 10}}, spec{"color": colour, "detail": line}),
		layer("limit", spec{"type": "rule", "strokeDash": []int{6, 4}, "opacity": 0.8}, spec{"color": colour, "tooltip": tip, "x": spec{"value": 0}, "x2": spec{"value": "width"}}),
		layer("event", spec{"type": "rule", "strokeDash": []int{2, 3}, "color": "var(--bad)"}, spec{"tooltip": tip, "y": spec{"value": 0}, "y2": spec{"value": "height"}})}
}

// merged are points in at most n steps: their means, and the bounds of all of a step.
func merged(points []analysis.Point, n int) []analysis.Point {
	step := (len(points) + n - 1) / n
	if step < 2 {
		return points
	}
	var all []analysis.Point
	for chunk := range slices.Chunk(points, step) {
		p := analysis.Point{Lo: math.NaN(), Hi: math.NaN()}
		known := 0.0
		for _, x := range chunk {
			p.At += x.At / float64(len(chunk))
			if !math.IsNaN(x.Value) {
				p.Value, known = p.Value+x.Value, known+1
			}
			if x.Lo < x.Hi {
				p.Lo, p.Hi = min(orElse(p.Lo, x.Lo), x.Lo), max(orElse(p.Hi, x.Hi), x.Hi)
			}
		}
		p.Value /= known // none: NaN, a gap
		all = append(all, p)
	}
	return all
}

// orElse is v, or the other where v is not known.
func orElse(v, other float64) float64 {
	if math.IsNaN(v) {
		return other
	}
	return v
}

// mostSpans bounds the spans of one panel.
const mostSpans = 1000

// timeline draws the entities of one trial of each cell below one another: what each
// did from when to when, moments as diamonds, and what befell all of them as shades.
func (d *drawer) timeline(f *figure, v analysis.Figure) {
	spans := map[*analysis.Trial][]analysis.Span{}
	for _, s := range d.Frame.Spans {
		if len(spans[s.Trial]) < mostSpans {
			spans[s.Trial] = append(spans[s.Trial], s)
		}
	}
	var kinds, failed []string
	most, moments, faults, left := 0, false, false, 0
	for _, c := range d.Cells {
		t := d.typical(c, func(t *analysis.Trial) bool {
			return slices.ContainsFunc(spans[t], func(s analysis.Span) bool { return s.Entity != "" })
		})
		switch {
		case t == nil:
			continue
		case len(f.Panels) == mostPanels:
			left++
			continue
		}
		p := &panel{Title: fmt.Sprintf("%s (trial %d)", d.Frame.Layout.Name(c), t.ID), key: d.Frame.Layout.PanelOf(c), Spec: spec{}}
		end, entities := 0.0, []string{}
		for _, s := range spans[t] {
			end = max(end, s.From, s.To)
			note := cmp.Or(s.Note, s.Kind)
			r := row{Kind: "span", Series: s.Kind, X: short(s.From), Y: s.Entity, at: s.Entity, Lo: short(s.From), Hi: short(s.To), Tip: fmt.Sprintf("%s, %s–%s: %s", s.Entity, words.Moment(s.From), words.Moment(s.To), note)}
			switch {
			case s.Entity == "":
				faults = true
				r = row{Kind: "all", X: short(s.From), X2: short(max(s.To, s.From)), Tip: fmt.Sprintf("%s after the start: %s", words.Moment(s.From), note)}
			case s.From == s.To:
				moments = true
				r.Kind, r.Tip = "moment", fmt.Sprintf("%s, %s after the start: %s", s.Entity, words.Moment(s.From), note)
			case !slices.Contains(kinds, s.Kind):
				kinds = append(kinds, s.Kind)
			}
			if s.Failed && !slices.Contains(failed, s.Kind) {
				failed = append(failed, s.Kind)
			}
			if r.X2 == nil {
				r.X2 = short(s.To)
			}
			if s.Entity != "" && !slices.Contains(entities, s.Entity) {
				entities = append(entities, s.Entity)
			}
			p.add(r)
		}
		x := valueChannel("x", "s", "since the start", false, 0, end)
		x["scale"] = spec{"domain": []short{0, short(end * 1.02)}, "nice": false}
		p.Spec["height"] = 16*len(entities) + 4
		p.finish(v.Title, spec{"x": x, "y": spec{"field": "y", "type": "nominal", "sort": entities, "scale": spec{"domain": entities},
			"axis": spec{"title": nil, "ticks": false, "domain": false, "labelFontSize": 10}}})
		if len(p.rows) > most {
			most, f.First = len(p.rows), len(f.Panels)
		}
		f.Panels = append(f.Panels, p)
	}
	if len(f.Panels) > 1 {
		f.Choose = "cell"
	}
	colour, key := bySeries(kinds, "bar")
	for i, k := range kinds {
		if slices.Contains(failed, k) {
			colour["scale"].(spec)["range"].([]string)[i], key[i].Colour = "var(--bad)", "var(--bad)"
		}
	}
	if moments {
		key = append(key, legend{"event of a node", "var(--ink)", "diamond"})
	}
	if faults {
		key = append(key, legend{"event of all", "var(--bad)", "line"})
	}
	f.Legend, f.N = key, fmt.Sprintf("n = %s, one of each cell", words.Plural(int64(len(f.Panels)), "trial", "trials"))
	if left > 0 {
		f.N += fmt.Sprintf("; %s not drawn", words.Plural(int64(left), "cell", "cells"))
	}
	f.Shared["layer"] = []spec{layer("all", spec{"type": "rect", "color": "var(--bad)", "opacity": 0.1}, spec{"x2": spec{"field": "x2"}, "y": spec{"value": 0}, "y2": spec{"value": "height"}}),
		layer("span", spec{"type": "bar", "height": spec{"band": 0.62}}, spec{"x2": spec{"field": "x2"}, "color": colour, "tooltip": tip}),
		layer("all", spec{"type": "rule", "color": "var(--bad)", "strokeWidth": 1.5}, spec{"tooltip": tip, "y": spec{"value": 0}, "y2": spec{"value": "height"}}),
		layer("moment", spec{"type": "point", "shape": "diamond", "filled": true, "size": 46, "color": "var(--ink)", "opacity": 1, "stroke": "var(--paper)", "strokeWidth": 1}, spec{"tooltip": tip})}
}
