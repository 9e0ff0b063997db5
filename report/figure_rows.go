package report

import (
	"strings"
)

// rows is a panel whose rows stand below each other, each with its label above its
// marks: names of configurations are long, and pages may be narrow.
type rows struct {
	labels []string
	layers []spec
	lines  int // of the longest label
}

// Pixels of a row.
const (
	rowLine = 14 // of a label
	rowMark = 12 // of its marks
	rowGap  = 14
	// rowWide is how many characters of a label stand in a line.
	rowWide = 52
)

// newRows takes the labels, top to bottom.
func newRows(labels []string) *rows {
	r := &rows{lines: 1}
	for _, l := range labels {
		l = wrapped(l, rowWide)
		r.labels = append(r.labels, l)
		r.lines = max(r.lines, 1+strings.Count(l, "\n"))
	}
	return r
}

// wrapped breaks a text between words.
func wrapped(text string, wide int) string {
	var b strings.Builder
	wrap(&b, text, wide, "")
	return strings.TrimSuffix(b.String(), "\n")
}

func (r *rows) pitch() int { return r.lines*rowLine + rowMark + rowGap }

// y is where the marks of a row are, in pixels from the top.
func (r *rows) y(i int) float64 { return float64(i*r.pitch() + r.lines*rowLine + rowMark/2 + 2) }

// add puts marks on the rows; data have their row's y.
func (r *rows) add(data []spec, mark spec, encoding spec) {
	if len(data) > 0 {
		r.layers = append(r.layers, spec{"data": spec{"values": data}, "mark": mark, "encoding": encoding})
	}
}

// bar goes from x to x2 on each row.
func (r *rows) bar(data []spec, mark spec, encoding spec) {
	e := spec{"x": spec{"field": "x", "type": "quantitative"}, "x2": spec{"field": "x2"}, "tooltip": spec{"field": "tip", "type": "nominal"}}
	for k, v := range encoding {
		e[k] = v
	}
	m := spec{"type": "rule", "strokeWidth": rowMark}
	for k, v := range mark {
		m[k] = v
	}
	r.add(data, m, e)
}

// limits puts load lines on the rows; it reports whether there are any.
func (r *rows) limits(data []spec) bool {
	r.add(data, spec{"type": "rule", "strokeWidth": 2, "strokeDash": []int{4, 2}, "color": "var(--ink)"},
		spec{"x": spec{"field": "x", "type": "quantitative"}, "y2": spec{"field": "y2"}, "tooltip": spec{"field": "tip", "type": "nominal"}})
	return len(data) > 0
}

// panel is the picture; x is the axis from left to right.
func (r *rows) panel(title, description string, x spec) Panel {
	height := len(r.labels) * r.pitch()
	var labels []spec
	for i, l := range r.labels {
		own := 1 + strings.Count(l, "\n") // a short label stands at its marks
		labels = append(labels, spec{"y": i*r.pitch() + (r.lines-own)*rowLine, "label": l})
	}
	layers := append([]spec{}, r.layers...)
	layers = append(layers, spec{"data": spec{"values": labels}, "mark": spec{"type": "text", "align": "left", "baseline": "top", "lineBreak": "\n", "fontSize": 11.5, "lineHeight": rowLine, "color": "var(--ink)"},
		"encoding": spec{"x": spec{"value": 0}, "text": spec{"field": "label", "type": "nominal"}}})
	return Panel{Title: title, Spec: spec{
		"$schema": vegaLite, "description": description, "height": height,
		"encoding": spec{"x": x, "y": spec{"field": "y", "type": "quantitative", "axis": nil, "scale": spec{"domain": []int{0, height}, "reverse": true, "nice": false, "zero": true}}},
		"layer":    layers}}
}

// secondsAxis is an axis of times from 0.
func secondsAxis(most float64) spec {
	axis := timeAxis(most)
	axis["grid"] = true
	return spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, most * 1.03}, "nice": false}, "axis": axis}
}
