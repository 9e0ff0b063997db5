package report

import (
	"fmt"
	"slices"
	"strconv"
)

// codes are the names under which systems know their code's numbers: how many
// shares make an object, and how many there are of it.
var codes = [][2]string{{"needed", "total"}, {"data_shards", "total_shards"}}

// ideal is n/k of a system's options; 0 when they do not tell.
func (s System) ideal() float64 {
	for _, names := range codes {
		k, err1 := strconv.ParseFloat(s.with[names[0]], 64)
		n, err2 := strconv.ParseFloat(s.with[names[1]], 64)
		if err1 == nil && err2 == nil && k > 0 && n >= k {
			return n / k
		}
	}
	return 0
}

// expansionFigure draws what the servers get and keep for each file byte.
func (r *Report) expansionFigure() Figure {
	f := Figure{ID: "expansion", Title: "Bytes on the servers for each file byte", Better: "lower is better", Legend: r.systemLegend(),
		Reads: "Absolute bytes (padding, metadata and redundancy included) and disk blocks, divided by the bytes of the file; medians over uploads of that size, both axes logarithmic. Small objects pay for their metadata."}
	f.Table.Head = []Column{{"what", false}, {"system", false}, {"size", true}, {"per file byte", true}, {"low", true}, {"high", true}, {"ideal", true}, {"trials", true}}
	colour, shape := r.systemScales()
	sizes, labels := r.sizes()
	trials, ideals := 0, false
	for _, what := range []struct{ key, title string }{{"expansion", "absolute bytes"}, {"disk_per_byte", "disk blocks"}} {
		var rows, limits []spec
		lo, hi := 1.0, 1.0
		for _, s := range r.Systems {
			drawn := false
			for i, size := range sizes {
				var xs []float64
				for _, t := range r.Trials {
					if o := t.Info.overhead(); o == nil || !writes(o.Operation) || t.Info.System != s.Name || t.Info.size() != size || !t.Valid() {
						continue
					}
					if x := t.Metrics[what.key]; x > 0 {
						xs = append(xs, x)
					}
				}
				if len(xs) == 0 {
					continue
				}
				e := summaryOf(xs, nil)
				drawn = true
				trials += len(xs)
				lo, hi = min(lo, float64(e.Median)), max(hi, float64(e.Median))
				rows = append(rows, spec{"kind": "median", "system": s.Name, "x": size, "y": e.Median, "tip": fmt.Sprintf("%s, %s: %s", s.Name, labels[i], showRange(e.Median, e.Lo, e.Hi, "×"))})
				best := Entry{Text: "–"}
				if n := s.ideal(); n > 0 {
					best = number(Num(n), "×")
				}
				f.Table.Rows = append(f.Table.Rows, []Entry{{Text: what.title, Raw: what.key}, {Text: s.Name, Raw: s.Name}, {Text: labels[i], Raw: plain(size)}, number(e.Median, "×"), number(e.Lo, "×"), number(e.Hi, "×"), best, integer(e.N)})
			}
			if n := s.ideal(); n > 0 && drawn {
				ideals = true
				lo, hi = min(lo, n), max(hi, n)
				limits = append(limits, spec{"system": s.Name, "ideal": n, "tip": fmt.Sprintf("%s: n/k = %s", s.Name, digits(n, 3))})
			}
		}
		if len(rows) == 0 {
			continue
		}
		col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
		tip := spec{"field": "tip", "type": "nominal"}
		layers := []spec{}
		if limits != nil {
			layers = append(layers, spec{"data": spec{"values": limits}, "mark": spec{"type": "rule", "strokeDash": []int{6, 4}, "strokeWidth": 1.5, "opacity": 0.8},
				"encoding": spec{"color": col, "tooltip": tip, "x": spec{"value": 0}, "x2": spec{"value": "width"}, "y": spec{"field": "ideal", "type": "quantitative"}}})
		}
		layers = append(layers,
			spec{"mark": spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.75}, "encoding": spec{"color": col}},
			spec{"mark": spec{"type": "point", "filled": true, "size": 56, "opacity": 1}, "encoding": spec{"color": col, "shape": spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}, "tooltip": tip}})
		f.Panels = append(f.Panels, Panel{Title: what.title, Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + what.title, "data": spec{"values": rows},
			"encoding": spec{"x": sizeChannel(sizes, labels), "y": spec{"field": "y", "type": "quantitative", "scale": spec{"type": "log", "domain": []float64{lo / 1.15, hi * 1.25}, "nice": false, "clamp": true},
				"axis": spec{"title": nil, "tickCount": 5, "labelExpr": "format(datum.value, '.3~g') + '×'"}}},
			"layer": layers}})
	}
	if trials == 0 {
		return Figure{}
	}
	if ideals {
		f.Legend = append(slices.Clone(f.Legend), Legend{"n/k, the ideal of the code", "var(--ink)", "dash"})
		f.Reads += " The dashed line is what a k-of-n code alone would take."
	}
	f.N = "n = " + plural(int64(trials), "value of a valid trial", "values of valid trials")
	return f
}
