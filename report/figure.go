package report

import (
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// Figure is a picture as data: one or more Vega-Lite panels that share a legend
// and an axis, with the words and the table that make it readable without it.
type Figure struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Reads  string   `json:"reads"`  // how to read it
	N      string   `json:"n"`      // what it rests on
	Better string   `json:"better"` // which way is better
	Choose string   `json:"choose"` // not empty: show one panel at a time, chosen by this label
	First  int      `json:"first"`  // the panel shown first when one is chosen
	Panels []Panel  `json:"panels"`
	Legend []Legend `json:"legend"`
	Table  Table    `json:"-"`
}

// Panel is one Vega-Lite view. Colours in its spec are CSS variables,
// "var(--s1)", which the page resolves for its theme.
type Panel struct {
	Title string `json:"title"`
	Spec  spec   `json:"spec"`

	key string // of the cells that it shows
}

// spec is a Vega-Lite specification, or a part of one.
type spec map[string]any

// Legend is one entry of a figure's legend.
type Legend struct {
	Label  string `json:"label"`
	Colour string `json:"colour"`
	Mark   string `json:"mark"` // a Vega point shape, "line", "bar", or "hollow"
}

// Table is the numbers behind a figure.
type Table struct {
	Head []Column
	Rows [][]Entry
}

// Column heads a table's column.
type Column struct {
	Name    string
	Numeric bool
}

// Entry is one cell of a table: what is shown, and the plain number behind it.
type Entry struct {
	Text string
	Raw  string
	Note string // shown small after the text
	Tone Tone
}

const vegaLite = "https://vega.github.io/schema/vega-lite/v6.json"

// Marks of systems, by slot, so that colour never carries a meaning alone.
var pointShapes = []string{"square", "circle", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "stroke"}

func systemColour(slot int) string { return "var(--s" + string(rune('0'+slot%8)) + ")" }
func systemShape(slot int) string  { return pointShapes[slot%len(pointShapes)] }

// systemScales are the colour and shape scales shared by all figures: a system
// looks the same everywhere.
func (r *Report) systemScales() (colour, shape spec) {
	var names, colours, shapes []string
	for _, s := range r.Systems {
		names = append(names, s.Name)
		colours = append(colours, systemColour(s.Slot))
		shapes = append(shapes, systemShape(s.Slot))
	}
	return spec{"domain": names, "range": colours}, spec{"domain": names, "range": shapes}
}

func (r *Report) systemLegend() []Legend {
	var all []Legend
	for _, s := range r.Systems {
		label := s.Name
		if s.Baseline {
			label += " (baseline)"
		}
		all = append(all, Legend{label, systemColour(s.Slot), systemShape(s.Slot)})
	}
	return all
}

func (r *Report) metric(key string) (record.Metric, bool) {
	for _, m := range r.Metrics {
		if m.Key == key {
			return m, true
		}
	}
	return record.Metric{}, false
}

// hero is the picture of the first screen: one panel of a figure, the one in
// which the systems differ most first.
func (r *Report) hero(f Figure) Figure {
	if len(f.Panels) < 2 {
		return f
	}
	f.ID, f.Choose, f.Reads = "hero", "cells", strings.TrimSuffix(f.Reads, ownScales)
	widest := -1.0
	for i, key := range r.drawn(f) {
		least, most := map[float64]float64{}, map[float64]float64{}
		for _, c := range r.cells() {
			m, ok := c.Metrics[r.headline]
			if !ok || r.shape.panel(c) != key || m.Median <= 0 {
				continue
			}
			at, v := r.shape.at(c), float64(m.Median)
			if least[at] == 0 || v < least[at] {
				least[at] = v
			}
			most[at] = max(most[at], v)
		}
		for at := range least {
			if spread := most[at] / least[at]; spread > widest {
				widest, f.First = spread, i
			}
		}
	}
	return f
}

// drawn are the keys of a figure's panels, in their order.
func (r *Report) drawn(f Figure) []string {
	var keys []string
	for _, p := range f.Panels {
		keys = append(keys, p.key)
	}
	return keys
}
