package report

import (
	"fmt"
	"slices"
	"strconv"
)

// footprintFigure draws the peak memory of each kind of process against the
// size of the object.
func (r *Report) footprintFigure() Figure {
	f := Figure{ID: "memory-size", Title: "Memory against the size of the object", Better: "lower is better",
		Reads: "Highest resident memory of a process during uploads: medians over trials. Filled marks: one upload at a time; hollow ones: several. The dashed line is the process at rest, before anything was stored. What it still holds of an earlier object is in the peak of a smaller one. A process that keeps whole objects rises to the right."}
	f.Table.Head = []Column{{"system", false}, {"process", false}, {"at once", true}, {"size", true}, {"peak", true}, {"trials", true}}
	var kinds []string
	for _, m := range r.Memory {
		if len(m.points) > 0 && !slices.Contains(kinds, m.Process) {
			kinds = append(kinds, m.Process)
		}
	}
	if len(kinds) == 0 {
		return Figure{}
	}
	var shapes []string
	for i, k := range kinds {
		shapes = append(shapes, pointShapes[(i+1)%len(pointShapes)])
		f.Legend = append(f.Legend, Legend{k, "var(--ink)", shapes[i]})
	}
	f.Legend = append(f.Legend, Legend{"at rest", "var(--ink)", "dash"})
	trials := 0
	sizes, labels := r.sizes()
	for _, s := range r.Systems {
		var rows []spec
		top := 0.0
		for i := range r.Memory {
			m := &r.Memory[i]
			if m.System != s.Name || len(m.points) == 0 {
				continue
			}
			type place struct {
				size   float64
				atOnce int
			}
			peaks := map[place][]float64{}
			var order []place
			for _, p := range m.points {
				k := place{p.cell.size(), max(1, p.cell.overhead().Concurrency)}
				if k.size <= 0 {
					continue
				}
				if peaks[k] == nil {
					order = append(order, k)
				}
				peaks[k] = append(peaks[k], p.peak)
				trials++
			}
			slices.SortFunc(order, func(a, b place) int {
				if a.atOnce != b.atOnce {
					return a.atOnce - b.atOnce
				}
				return int(a.size - b.size)
			})
			for _, k := range order {
				y := middle(peaks[k])
				top = max(top, y)
				kind := "one"
				if k.atOnce > 1 {
					kind = "several"
				}
				rows = append(rows, spec{"kind": kind, "process": m.Process, "x": k.size, "y": y, "tip": fmt.Sprintf("%s, %d at once of %s: %s", m.Process, k.atOnce, sizeWords(k.size), show(y, "B"))})
				f.Table.Rows = append(f.Table.Rows, []Entry{{Text: s.Name, Raw: s.Name}, {Text: m.Process, Raw: m.Process}, integer(k.atOnce),
					{Text: sizeWords(k.size), Raw: Plain(k.size)}, {Text: show(y, "B"), Raw: strconv.FormatFloat(y, 'g', -1, 64)}, integer(len(peaks[k]))})
			}
			if m.RestRSS.Value.Known() {
				rows = append(rows, spec{"kind": "rest", "process": m.Process, "rest": m.RestRSS.Value, "tip": fmt.Sprintf("%s at rest: %s", m.Process, show(float64(m.RestRSS.Value), "B"))})
				top = max(top, float64(m.RestRSS.Value))
			}
		}
		if len(rows) == 0 {
			continue
		}
		colour := systemColour(s.Slot)
		only := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
		shape := spec{"field": "process", "type": "nominal", "scale": spec{"domain": kinds, "range": shapes}, "legend": nil}
		tip := spec{"field": "tip", "type": "nominal"}
		f.Panels = append(f.Panels, Panel{Title: s.Name, Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + s.Name, "data": spec{"values": rows},
			"encoding": spec{"x": sizeChannel(sizes, labels), "y": spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, top * 1.06}, "nice": false}, "axis": r.valueAxis("B", top)}},
			"layer": []spec{
				{"transform": only("rest"), "mark": spec{"type": "rule", "strokeWidth": 1.25, "strokeDash": []int{6, 4}, "color": colour, "opacity": 0.8},
					"encoding": spec{"x": spec{"value": 0}, "x2": spec{"value": "width"}, "y": spec{"field": "rest", "type": "quantitative"}, "tooltip": tip}},
				{"transform": only("one"), "mark": spec{"type": "line", "strokeWidth": 1.75, "color": colour, "opacity": 0.75}, "encoding": spec{"detail": spec{"field": "process", "type": "nominal"}}},
				{"transform": only("one"), "mark": spec{"type": "point", "filled": true, "size": 52, "color": colour, "opacity": 1}, "encoding": spec{"shape": shape, "tooltip": tip}},
				{"transform": only("several"), "mark": spec{"type": "point", "filled": true, "fill": "var(--paper)", "stroke": colour, "size": 60, "strokeWidth": 1.75, "opacity": 1}, "encoding": spec{"shape": shape, "tooltip": tip}},
			}}})
	}
	if trials == 0 {
		return Figure{}
	}
	f.N = "n = " + plural(int64(trials), "process in a valid trial", "processes in valid trials")
	return f
}
