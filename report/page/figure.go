package page

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// figure is a drawn figure of a view: a Vega-Lite template for all panels, and the rows of
// each.
type figure struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Caption string   `json:"reads"`
	N       string   `json:"n"`      // number of trials behind it
	Better  string   `json:"better"` // which way is better
	Choose  string   `json:"choose"` // not empty: panels are shown one at a time, chosen by this label
	First   int      `json:"first"`  // the panel shown first
	Panels  []*panel `json:"panels"`
	Legend  []legend `json:"legend"`
	Shared  spec     `json:"shared"`

	Table     table `json:"-"` // the same numbers, to read
	Hero      bool  `json:"-"` // it is on the first screen
	folded    bool
	ownScales bool
	left      int // cells that are not drawn because there are too many
}

// panel is one Vega-Lite view of a figure. Its specification overrides that of the figure.
type panel struct {
	Title string `json:"title"`
	Spec  spec   `json:"spec"`

	key  string
	rows []row
}

// row is one mark.
type row struct {
	Kind   string `json:"k"`           // the layer that draws it
	Series string `json:"s,omitempty"` // determines colour and shape
	Line   string `json:"l,omitempty"` // rows of one line
	X      any    `json:"x"`           // short, or a label
	X2     any    `json:"x2,omitempty"`
	Y      any    `json:"y"`
	Lo     any    `json:"lo,omitempty"`
	Hi     any    `json:"hi,omitempty"`
	Tip    string `json:"tip,omitempty"`

	at     string // its row in the table; empty: not in the table
	value  any    // its value in the table
	ranged bool   // the trials are too few for an interval: Lo and Hi are their range
}

// spec is a part of a Vega-Lite specification. Colours are CSS variables, "var(--s1)",
// which the page resolves for its theme.
type spec map[string]any

// legend is one entry of a figure's legend.
type legend struct {
	Label  string `json:"label"`
	Colour string `json:"colour"`
	Mark   string `json:"mark"` // a Vega point shape, "line", "dash", "bar" or "hollow"
}

// marks are the legends of rows that do not belong to the series of a figure.
var marks = []struct {
	kind string
	legend
}{
	{"line", legend{"load line", "var(--ink)", "dash"}}, {"own line", legend{"load line", "var(--ink)", "dash"}},
	{"limit", legend{"load line", "var(--ink)", "dash"}}, {"tick", legend{"load line", "var(--ink)", "stroke"}},
	{"machine", legend{"machine line", "var(--ink)", "bar"}}, {"invalid", legend{"invalid trial", "var(--ink)", "hollow"}},
	{"censored", legend{"not reached", "var(--soft)", "hollow"}},
	{"moment", legend{"event of a node", "var(--ink)", "diamond"}}, {"all", legend{"event of all", "var(--bad)", "line"}},
}

// short is a number rounded to the precision of a figure.
type short float64

func (s short) MarshalJSON() ([]byte, error) {
	if v := float64(s); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(s), 'g', 6, 64), nil
}

const (
	vegaLite = "https://vega.github.io/schema/vega-lite/v6.json" // only a name; nothing is loaded from there
	// manyPanels is the number of panels from which a figure shows one at a time.
	manyPanels = 6
	// mostPanels limits the panels of figures over time, and manyTrials and mostPoints the
	// marks of any figure, to limit the size of the page.
	mostPanels = 48
	manyTrials = 1000
	mostPoints = 8_000
)

// shapes are the marks of systems by slot, so that meaning never depends on colour alone.
var shapes = []string{"square", "circle", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right",
	"stroke"}

func slotColour(slot int) string { return "var(--s" + strconv.Itoa(slot%8) + ")" }
func slotShape(slot int) string  { return shapes[slot%len(shapes)] }

// drawer draws the figures of one result.
type drawer struct {
	*analysis.Result
	trials map[string][]analysis.Row // finite whole-trial rows, by metric
}

func newDrawer(r *analysis.Result) *drawer {
	d := &drawer{r, map[string][]analysis.Row{}}
	for _, x := range r.Frame.Rows {
		if x.Entity == "" && !x.Trial.Warmup && !x.Censored && !math.IsNaN(x.Value) && !math.IsInf(x.Value, 0) {
			d.trials[x.Metric] = append(d.trials[x.Metric], x)
		}
	}
	return d
}

// figures returns the figures of the view that have content. The first leads the page.
func (d *drawer) figures() ([]*figure, error) {
	var all []*figure
	for _, v := range d.View.Figures {
		m, _ := d.metric(v.Metric)
		f := &figure{ID: v.ID, Title: v.Title, Caption: v.Caption, Better: betterWords[m.Better],
			Shared: spec{"$schema": vegaLite}, folded: v.Folded}
		switch v.Kind {
		case analysis.Against:
			if v.X != "" {
				d.scatter(f, v)
			} else {
				d.against(f, v)
			}
		case analysis.Bars:
			d.bars(f, v)
		case analysis.Distribution:
			d.distribution(f, v)
		case analysis.OverTime:
			d.overTime(f, v)
		case analysis.Timeline:
			d.timeline(f, v)
		default:
			return nil, fmt.Errorf("figure %q is of kind %q, which is none of the five", v.ID, v.Kind)
		}
		f.Panels = slices.DeleteFunc(f.Panels, func(p *panel) bool { return len(p.rows) == 0 })
		if len(f.Panels) == 0 {
			continue
		}
		for _, m := range marks {
			if f.has(func(r row) bool { return r.Kind == m.kind }) && !slices.Contains(f.Legend, m.legend) {
				f.Legend = append(f.Legend, m.legend)
			}
		}
		if len(f.Panels) > manyPanels {
			f.Choose = "cells"
		}
		f.tabulate()
		if len(all) == 0 {
			f.Hero, f.folded = true, false
			if best, _ := telling(d.Result); len(f.Panels) > 1 { // the panel of the key numbers
				f.Choose = "cells"
				f.First = max(0, slices.IndexFunc(f.Panels,
					func(p *panel) bool { return best != nil && p.key == d.Frame.Layout.PanelOf(best) }))
			}
		}
		if f.ownScales && f.Choose == "" {
			f.N = "Each panel has its own scale; " + f.N
		}
		if f.has(func(r row) bool { return r.ranged && (r.Lo != nil || strings.Contains(f.Caption, "95 %")) }) {
			f.N += "; where trials are too few for a 95 % interval, their range"
		}
		all = append(all, f)
	}
	return all, nil
}

var betterWords = map[record.Better]string{record.Higher: "higher is better", record.Lower: "lower is better"}

// metric finds a metric; for RatioColumn it returns the ratio of the headline.
func (d *drawer) metric(key string) (record.Metric, bool) {
	if key != analysis.RatioColumn {
		return d.Frame.Metric(key)
	}
	m, _ := d.Frame.Metric(d.Headline)
	m.Key, m.Name, m.Unit = key, "ratio to the baseline", "×"
	return m, slices.ContainsFunc(d.Cells, func(c *analysis.Cell) bool { return len(c.Ratios) > 0 })
}

// of returns a metric of a cell, or its ratio to the baseline.
func (d *drawer) of(c *analysis.Cell, key string) (analysis.Summary, bool) {
	if key != analysis.RatioColumn {
		s, ok := c.Metrics[key]
		return s, ok && s.Median.Known()
	}
	q, ok := c.Ratios[d.Headline]
	return analysis.Summary{N: q.N, Median: q.Value, Lo: q.Lo, Hi: q.Hi, Exact: q.Confidence >= analysis.Confidence},
		ok && q.Value.Known()
}

// panels appends panels to a figure, one for each of the layout's, and returns them by name.
func (d *drawer) panels(f *figure, prefix string) map[string]*panel {
	all := map[string]*panel{}
	for _, name := range d.Layout.Panels {
		all[name] = &panel{Title: strings.Trim(prefix+", "+name, ", "), key: name, Spec: spec{}}
		f.Panels = append(f.Panels, all[name])
	}
	return all
}

// numbers reports whether a panel has a row with a value: rows of censored cells have none.
func (p *panel) numbers() bool {
	return slices.ContainsFunc(p.rows, func(r row) bool { _, is := r.Y.(short); return is })
}

// has reports whether a figure has such a row.
func (f *figure) has(is func(row) bool) bool {
	return slices.ContainsFunc(f.Panels, func(p *panel) bool { return slices.ContainsFunc(p.rows, is) })
}

// add adds a row to a panel.
func (p *panel) add(r row) { p.rows = append(p.rows, r) }

// finish sets the title, rows and channels of a panel.
func (p *panel) finish(title string, encoding spec) {
	if p.Title != "" {
		title += ", " + p.Title
	}
	p.Spec["description"], p.Spec["data"], p.Spec["encoding"] = title, spec{"values": p.rows}, encoding
}

// layers sets the layers of a figure from templates/layers.json, where names such as "$colour"
// are replaced by channels that depend on the run.
func (f *figure) layers(kind string, channels spec) {
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(layerText, &kinds); err != nil {
		panic(err) // the file is embedded
	}
	var pairs []string
	for name, channel := range channels {
		b, err := json.Marshal(channel)
		if err != nil {
			panic(err)
		}
		pairs = append(pairs, `"$`+name+`"`, string(b))
	}
	f.Shared["layer"] = json.RawMessage(strings.NewReplacer(pairs...).Replace(string(kinds[kind])))
}

// bySystem sets the layers of a figure with the colours and shapes of systems, and puts the systems
// that it shows first in its legend.
func (d *drawer) bySystem(f *figure, kind string, channels spec) {
	var names, colours, marks []string
	var all []legend
	for _, s := range d.Systems {
		names, colours, marks = append(names, s.Name), append(colours, slotColour(s.Slot)),
			append(marks, slotShape(s.Slot))
		label := s.Name
		if s.Baseline {
			label += " (baseline)"
		}
		if f.has(func(r row) bool { return r.Series == s.Name }) {
			all = append(all, legend{label, slotColour(s.Slot), slotShape(s.Slot)})
		}
	}
	f.Legend = append(all, f.Legend...)
	channels["colour"], channels["shape"] = nominal("s", names, colours), nominal("s", names, marks)
	f.layers(kind, channels)
}

// bySeries sets the layers of a figure with a colour for each series that is no system, and their
// legend; series that failed have a colour of their own.
func (f *figure) bySeries(kind string, names []string, mark string, failed []string) {
	var colours []string
	for i, n := range names {
		colour := slotColour(1 + i%7)
		if slices.Contains(failed, n) {
			colour = "var(--bad)"
		}
		colours, f.Legend = append(colours, colour), append(f.Legend, legend{n, colour, mark})
	}
	f.layers(kind, spec{"colour": nominal("s", names, colours)})
}

func nominal(field string, domain []string, values any) spec {
	return spec{"field": field, "type": "nominal", "scale": spec{"domain": domain, "range": values}, "legend": nil}
}

// factorAxis returns the horizontal axis: the layout's factor, or the systems side by side.
// Vega's interpreter evaluates the expression of its labels without eval.
func (d *drawer) factorAxis() spec {
	a := d.Frame.Layout.Axis
	if a == nil {
		var names []string
		for _, s := range d.Systems {
			names = append(names, s.Name)
		}
		return spec{"field": "x", "type": "nominal", "scale": spec{"domain": names},
			"axis": spec{"title": nil, "labelAngle": 0}}
	}
	lo, hi := a.Values[0], a.Values[len(a.Values)-1]
	pad := (hi - lo) * 0.06
	scale := spec{"type": "linear", "domain": []float64{lo - pad, hi + pad}, "nice": false}
	if a.Log {
		pad = math.Pow(hi/lo, 0.06)
		scale["type"], scale["domain"] = "log", []float64{lo / pad, hi * pad}
	}
	expr := "''"
	for i, v := range slices.Backward(a.Values) {
		label, _ := json.Marshal(a.Labels[i])
		expr = fmt.Sprintf("datum.value == %s ? %s : %s", strconv.FormatFloat(v, 'g', -1, 64), label, expr)
	}
	return spec{"field": "x", "type": "quantitative", "scale": scale,
		"axis": spec{"title": a.Label, "values": a.Values, "labelExpr": expr, "grid": false, "labelAngle": 0}}
}

// place returns the horizontal position of a cell's mark. Systems are slightly shifted, so that
// intervals do not hide each other, and trials are next to their median.
func (d *drawer) place(c *analysis.Cell, beside float64) any {
	a := d.Frame.Layout.Axis
	if a == nil {
		return c.System
	}
	at := slices.IndexFunc(d.Systems, func(s analysis.System) bool { return s.Name == c.System })
	step := (float64(at) - float64(len(d.Systems)-1)/2 + beside) * 0.022
	x, lo, hi := d.Frame.Layout.At(c), a.Values[0], a.Values[len(a.Values)-1]
	if a.Log {
		return short(x * math.Pow(hi/lo, step))
	}
	return short(x + (hi-lo)*step)
}

// valueChannel returns an axis of values with the prefixes of their unit. least and most are the
// extremes of all drawn values.
func valueChannel(field, unit, title string, log bool, least, most float64) spec {
	scale := spec{"domain": []short{short(min(0, least*1.06)), short(max(most*1.06, math.SmallestNonzeroFloat32))},
		"nice": true}
	if log && least > 0 {
		scale = spec{"type": "log", "domain": []short{short(least / 1.25), short(most * 1.25)}, "nice": false,
			"clamp": true}
	}
	axis := spec{"title": nil, "tickCount": 5, "labelExpr": unitLabels(unit), "labelOverlap": "greedy",
		"labelSeparation": 5}
	if title != "" {
		axis["title"] = title
	}
	return spec{"field": field, "type": "quantitative", "scale": scale, "axis": axis}
}

// unitLabels returns the expression that formats the labels of an axis in a unit.
func unitLabels(unit string) string {
	switch unit {
	case "ratio":
		return "format(datum.value * 100, '.3~g') + ' %'"
	case "×":
		return "format(datum.value, '.3~g') + '×'"
	case "1":
		return "format(datum.value, ',.4~g')"
	case "s", "B", "B/s", "bit/s", "1/s":
	default:
		label, _ := json.Marshal(" " + unit)
		return "format(datum.value, ',.4~g') + " + string(label)
	}
	expr := "'0'"
	for _, p := range slices.Backward(words.Prefixes(unit)) {
		suffix := " " + p.Name + unit
		if unit == "1/s" {
			suffix = " " + p.Name + "/s"
		}
		expr = fmt.Sprintf("abs(datum.value) >= %s ? format(datum.value / %s, '.3~g') + '%s' : %s",
			strconv.FormatFloat(p.Scale*0.9995, 'g', -1, 64), strconv.FormatFloat(p.Scale, 'g', -1, 64), suffix, expr)
	}
	return expr
}

func values(r row) []any { return []any{r.Y, r.Lo, r.Hi} }

// extent returns the range of numbers in rows; 0 to 1 without any.
func extent(of func(row) []any, panels ...*panel) (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, p := range panels {
		for _, r := range p.rows {
			for _, v := range of(r) {
				if x, ok := v.(short); ok && !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) {
					least, most = min(least, float64(x)), max(most, float64(x))
				}
			}
		}
	}
	if most < least {
		return 0, 1
	}
	return least, most
}

// apart is the ratio of the largest values of panels above which a common scale would flatten
// some of them.
const apart = 2.5

// scales returns the value channels of panels: a common one if their values are similar. On a
// logarithmic axis, values that are not positive become gaps.
func (f *figure) scales(panels []*panel, unit string, log bool) map[*panel]spec {
	if log {
		positive(panels)
	}
	low, high := math.Inf(1), 0.0
	for _, p := range panels {
		if _, most := extent(values, p); p.numbers() {
			low, high = min(low, most), max(high, most)
		}
	}
	channels := map[*panel]spec{}
	for _, p := range panels {
		least, most := extent(values, panels...)
		if high > apart*low && p.numbers() {
			least, most = extent(values, p)
		}
		channels[p] = valueChannel("y", unit, "", log, least, most)
	}
	f.ownScales = f.ownScales || high > apart*low && len(panels) > 1
	return channels
}

// positive removes values that a logarithmic axis cannot show.
func positive(panels []*panel) {
	for _, p := range panels {
		for i, r := range p.rows {
			if y, ok := r.Y.(short); ok && y <= 0 {
				p.rows[i].Y, p.rows[i].Lo, p.rows[i].Hi = short(math.NaN()), nil, nil
			} else if lo, ok := r.Lo.(short); ok && lo <= 0 {
				p.rows[i].Lo = y
			}
		}
	}
}

// spread reports whether the values need a logarithmic axis.
func spread(panels []*panel) bool {
	least, most := extent(values, panels...)
	return least > 0 && most > 20*least
}

// show formats a number with its unit; large amounts of a currency are in words.
func show(v float64, unit string) string {
	currency := !slices.Contains([]string{"ratio", "s", "s/GB", "1/s", "B", "B/s", "bit/s", "×", "1"}, unit)
	if currency && math.Abs(v) >= 1e4 && !math.IsInf(v, 0) {
		return words.Money(v, unit)
	}
	return words.Show(v, unit)
}

// tabulate creates the table of a figure from its rows.
func (f *figure) tabulate() {
	f.Table.Label, f.Table.Head = f.Title, heads("panel", "series", "at", "#value", "#low", "#high")
	number := func(v any) entry {
		s, ok := v.(short)
		if !ok {
			return entry{}
		}
		b, _ := s.MarshalJSON()
		return entry{Text: strings.Replace(string(b), "null", "–", 1)}
	}
	for _, p := range f.Panels {
		for _, r := range p.rows {
			if r.at != "" {
				f.Table.Rows = append(f.Table.Rows,
					[]entry{{Text: p.Title}, {Text: r.Series}, {Text: r.at}, number(r.value), number(r.Lo),
						number(r.Hi)})
			}
		}
	}
}
