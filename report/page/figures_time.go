package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

// typical returns the trial that represents a cell in a figure over time: of those with
// something to show, a valid one whose headline is nearest to the cell's median.
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

// timeUnit returns the unit of a time axis of this length in seconds.
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

// curve is the series of one trial in a figure over time.
type curve struct {
	trial  *analysis.Trial
	panel  *panel
	series []analysis.Series
}

// typicalCurves chooses a trial of each cell and creates the panels: one for each cell if there are
// several metrics, otherwise one for the systems of a group. count is the number of series, and
// longest is in seconds, or in the unit of the series' horizontal axis.
func (d *drawer) typicalCurves(f *figure, v analysis.Figure) (all []curve, count int, longest float64) {
	series := map[*analysis.Trial][]analysis.Series{}
	for _, s := range d.Frame.Series {
		if (s.Metric == v.Metric || slices.Contains(v.More, s.Metric)) && len(s.Points) > 0 {
			series[s.Trial] = append(series[s.Trial], s)
		}
	}
	panels := map[string]*panel{}
	for _, c := range d.Cells {
		t := d.typical(c, func(t *analysis.Trial) bool { return series[t] != nil })
		if t == nil {
			continue
		}
		key, title := c.Group, d.Frame.Layout.Where(c)
		if len(v.More) > 0 {
			key, title = c.ID, d.Frame.Layout.Name(c)
		}
		if panels[key] == nil {
			if len(f.Panels) == mostPanels {
				f.left++
				continue
			}
			panels[key] = &panel{Title: title, key: d.Frame.Layout.PanelOf(c), Spec: spec{}}
			f.Panels = append(f.Panels, panels[key])
		}
		all, count = append(all, curve{t, panels[key], series[t]}), count+len(series[t])
		for _, s := range series[t] {
			if last := len(s.Points) - 1; last > 0 { // one point makes no curve
				longest = max(longest, s.Points[last].At)
			}
		}
	}
	return all, count, longest
}

// overTime draws series of one trial of each cell, with load lines and events.
func (d *drawer) overTime(f *figure, v analysis.Figure) {
	m, ok := d.metric(v.Metric)
	all, count, longest := d.typicalCurves(f, v)
	if !ok || longest == 0 {
		f.Panels = nil
		return
	}
	unit, seconds := timeUnit(longest)
	title, at := unit+" since the start", words.Span
	if v.Along != "" {
		title, seconds, at = v.Along, 1, func(x float64) string { return words.Digits(x, 4) }
	}
	names := []string{}
	for _, c := range all {
		t, name := c.trial, c.trial.Info.System
		for i, s := range c.series {
			if len(v.More) > 0 {
				x, _ := d.Frame.Metric(s.Metric)
				if name = x.Name; !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			for _, x := range merged(s.Points, min(max(mostPoints/count, 24), 240)) {
				r := row{Kind: "time", Series: name, Line: fmt.Sprint(t.ID, " ", i), X: short(x.At / seconds),
					Y:     short(x.Value),
					value: short(x.Value), at: at(x.At)}
				if x.Lo < x.Hi {
					r.Lo, r.Hi = short(x.Lo), short(x.Hi)
				}
				c.panel.add(r)
			}
		}
		if y := t.Metrics[v.Line]; y > 0 {
			c.panel.add(row{Kind: "limit", Series: name, Y: short(y), Tip: t.Info.System + ": load line " + show(y, m.Unit)})
		}
		for _, s := range d.Frame.Spans {
			if s.Trial == t && s.Entity == "" && v.Along == "" && s.From <= longest {
				c.panel.add(row{Kind: "event", X: short(s.From / seconds), Tip: fmt.Sprintf("%s, %s after the start: %s",
					t.Info.System, words.Moment(s.From), cmp.Or(s.Note, s.Kind))})
			}
		}
	}
	x := spec{"field": "x", "type": "quantitative",
		"scale": spec{"domain": []short{0, short(longest / seconds)}, "nice": false},
		"axis":  spec{"title": title, "grid": false, "tickCount": 6}}
	for p, y := range f.scales(f.Panels, m.Unit, v.Log) {
		p.finish(v.Title, spec{"x": x, "y": y})
	}
	f.ofTrials(len(all), "cells")
	if len(v.More) > 0 {
		f.bySeries("time", names, "line", nil)
	} else {
		d.bySystem(f, "time", spec{})
	}
}

// ofTrials sets the labels of a figure that shows one trial of each cell.
func (f *figure) ofTrials(n int, choose string) {
	f.N = fmt.Sprintf("n = %s, one of each cell", words.Plural(int64(n), "trial", "trials"))
	if f.left > 0 {
		f.N += fmt.Sprintf("; %s not drawn", words.Plural(int64(f.left), "cell", "cells"))
	}
	if len(f.Panels) > 1 {
		f.Choose = choose
	}
}

// merged reduces points to at most n: the means of groups of points, with the bounds of all in
// a group.
func merged(points []analysis.Point, n int) []analysis.Point {
	step := (len(points) + n - 1) / n
	if step < 2 {
		return points
	}
	var all []analysis.Point
	for chunk := range slices.Chunk(points, step) {
		p := analysis.Point{Lo: math.Inf(1), Hi: math.Inf(-1)}
		known := 0.0
		for _, x := range chunk {
			p.At += x.At / float64(len(chunk))
			if !math.IsNaN(x.Value) {
				p.Value, known = p.Value+x.Value, known+1
			}
			if x.Lo < x.Hi {
				p.Lo, p.Hi = min(p.Lo, x.Lo), max(p.Hi, x.Hi)
			}
		}
		p.Value /= known // none: NaN, a gap
		all = append(all, p)
	}
	return all
}

// mostSpans is the largest number of spans in a panel.
const mostSpans = 1000

// timeline draws the entities of one trial of each cell below one another: their spans as bars,
// moments as diamonds, and events that affect all entities as shaded areas.
func (d *drawer) timeline(f *figure, v analysis.Figure) {
	spans := map[*analysis.Trial][]analysis.Span{}
	for _, s := range d.Frame.Spans {
		if len(spans[s.Trial]) < mostSpans {
			spans[s.Trial] = append(spans[s.Trial], s)
		}
	}
	var kinds, failed []string // of spans
	most := 0
	for _, c := range d.Cells {
		t := d.typical(c, func(t *analysis.Trial) bool {
			return slices.ContainsFunc(spans[t], func(s analysis.Span) bool { return s.Entity != "" })
		})
		switch {
		case t == nil:
			continue
		case len(f.Panels) == mostPanels:
			f.left++
			continue
		}
		p := &panel{Title: fmt.Sprintf("%s (trial %d)", d.Frame.Layout.Name(c), t.ID), key: d.Frame.Layout.PanelOf(c),
			Spec: spec{}}
		end, entities := 0.0, []string{}
		for _, s := range spans[t] {
			end = max(end, s.From, s.To)
			r := bar(s)
			p.add(r)
			if r.Kind == "span" && !slices.Contains(kinds, s.Kind) {
				kinds = append(kinds, s.Kind)
			}
			if s.Failed {
				failed = append(failed, s.Kind)
			}
			if s.Entity != "" && !slices.Contains(entities, s.Entity) {
				entities = append(entities, s.Entity)
			}
		}
		x := valueChannel("x", "s", "since the start", false, 0, end)
		x["scale"] = spec{"domain": []short{0, short(end * 1.02)}, "nice": false}
		p.Spec["height"] = 16*len(entities) + 4
		p.finish(v.Title, spec{"x": x,
			"y": spec{"field": "y", "type": "nominal", "sort": entities, "scale": spec{"domain": entities},
				"axis": spec{"title": nil, "ticks": false, "domain": false, "labelFontSize": 10}}})
		if len(p.rows) > most {
			most, f.First = len(p.rows), len(f.Panels)
		}
		f.Panels = append(f.Panels, p)
	}
	f.ofTrials(len(f.Panels), "cell")
	f.bySeries("timeline", kinds, "bar", failed)
}

// bar returns the mark of a span.
func bar(s analysis.Span) row {
	note := cmp.Or(s.Note, s.Kind)
	r := row{Kind: "span", Series: s.Kind, X: short(s.From), X2: short(s.To), Y: s.Entity, at: s.Entity,
		Lo: short(s.From), Hi: short(s.To),
		Tip: fmt.Sprintf("%s, %s–%s: %s", s.Entity, words.Moment(s.From), words.Moment(s.To), note)}
	switch {
	case s.Entity == "":
		r = row{Kind: "all", X: short(s.From), X2: short(max(s.To, s.From)),
			Tip: fmt.Sprintf("%s after the start: %s", words.Moment(s.From), note)}
	case s.From == s.To:
		r.Kind, r.Tip = "moment", fmt.Sprintf("%s, %s after the start: %s", s.Entity, words.Moment(s.From), note)
	}
	return r
}
