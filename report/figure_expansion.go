package report

import (
	"fmt"
	"strconv"
)

// ideal is what a system's code alone takes for each byte, n/k by its options; 0
// when they do not tell, as where the node's own defaults hold.
func (s System) ideal() float64 {
	number := func(name string) float64 {
		v, err := strconv.ParseFloat(s.with[name], 64)
		if err != nil {
			return 0
		}
		return v
	}
	k, n := number("needed"), number("total") // tahoe
	switch s.Use {
	case "siad":
		k = number("data_pieces")
		n = k + number("parity_pieces")
	case "renterd":
		k, n = number("min_shards"), number("total_shards")
	}
	if k > 0 && n >= k {
		return n / k
	}
	return 0
}

// expansionFigure draws what the servers get and keep for each file byte, a panel
// for each way to store.
func (r *Report) expansionFigure() Figure {
	f := Figure{ID: "expansion", Title: "Bytes on the servers for each file byte", Better: "lower is better", Legend: r.systemLegend(),
		Reads: "Absolute bytes (padding, metadata and redundancy included) and disk blocks, divided by the bytes of the file; medians over uploads of that size, both axes logarithmic. Small objects pay for their metadata."}
	f.Table.Head = []Column{{"what", false}, {"operation", false}, {"system", false}, {"size", true}, {"per file byte", true}, {"low", true}, {"high", true}, {"ideal", true}, {"trials", true}}
	var e expansions
	for _, op := range uploads() {
		for _, what := range []struct{ key, title string }{{"expansion", "absolute bytes"}, {"disk_per_byte", "disk blocks"}} {
			if p := r.expansionPanel(&e, &f.Table, op, what.key, what.title); p.Spec != nil {
				f.Panels = append(f.Panels, p)
			}
		}
	}
	if e.trials == 0 {
		return Figure{}
	}
	if e.zeros {
		f.Legend = append(f.Legend, Legend{"0: nothing on the servers", "var(--ink)", "hollow"})
		f.Reads += " 0 has no place on a logarithmic axis: hollow marks at the foot are uploads that left nothing on the servers, as objects do that stay at the client."
	}
	if e.ideals {
		f.Legend = append(f.Legend, Legend{"n/k, the ideal of the code", "var(--ink)", "dash"})
		f.Reads += " The dashed line is what a k-of-n code alone would take."
	}
	f.N = "n = " + plural(int64(e.trials), "value of a valid trial", "values of valid trials")
	return f
}

// expansions counts what the panels of the figure show.
type expansions struct {
	trials        int
	zeros, ideals bool
}

// expansionPanel is one metric of one operation; without a spec when nobody has it.
func (r *Report) expansionPanel(e *expansions, table *Table, op, key, title string) Panel {
	sizes, labels := r.sizes()
	rows := []spec{}
	var zeros, limits []spec
	lo, hi := 1.0, 1.0
	for _, s := range r.Systems {
		drawn := false
		for i, size := range sizes {
			var xs []float64
			stays := false
			for _, t := range r.Trials {
				if o := t.Info.overhead(); o == nil || o.Operation != op || t.Info.System != s.Name || t.Info.size() != size || !t.Valid() {
					continue
				}
				if x, ok := t.Metrics[key]; ok && x >= 0 {
					xs = append(xs, x)
					stays = r.local(t.Info)
				}
			}
			if len(xs) == 0 {
				continue
			}
			sum := summaryOf(xs, nil)
			drawn = true
			e.trials += len(xs)
			value, best := number(sum.Median, "×"), Entry{Text: "–"}
			if sum.Median == 0 {
				value.Text, e.zeros = "0", true
				if stays {
					value.Text = "0 (stays at the client)"
				}
				zeros = append(zeros, spec{"system": s.Name, "x": size, "tip": fmt.Sprintf("%s, %s: %s", s.Name, labels[i], value.Text)})
			} else {
				lo, hi = min(lo, float64(sum.Median)), max(hi, float64(sum.Median))
				rows = append(rows, spec{"system": s.Name, "x": size, "y": sum.Median, "tip": fmt.Sprintf("%s, %s: %s", s.Name, labels[i], showRange(sum.Median, sum.Lo, sum.Hi, "×"))})
			}
			if n := s.ideal(); n > 0 {
				best = number(Num(n), "×")
			}
			table.Rows = append(table.Rows, []Entry{{Text: title, Raw: key}, {Text: op, Raw: op}, {Text: s.Name, Raw: s.Name}, {Text: labels[i], Raw: Plain(size)}, value, number(sum.Lo, "×"), number(sum.Hi, "×"), best, integer(sum.N)})
		}
		if n := s.ideal(); n > 0 && drawn {
			e.ideals = true
			lo, hi = min(lo, n), max(hi, n)
			limits = append(limits, spec{"system": s.Name, "ideal": n, "tip": fmt.Sprintf("%s: n/k = %s", s.Name, digits(n, 3))})
		}
	}
	if len(rows)+len(zeros) == 0 {
		return Panel{}
	}
	colour, shape := r.systemScales()
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	mark := spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil}
	tip := spec{"field": "tip", "type": "nominal"}
	domain := []float64{lo / 1.15, hi * 1.25}
	x := sizeChannel(sizes, labels)
	y := spec{"field": "y", "type": "quantitative", "scale": spec{"type": "log", "domain": domain, "nice": false, "clamp": true},
		"axis": spec{"title": nil, "tickCount": 5, "labelExpr": "format(datum.value, '.3~g') + '×'"}}
	layers := []spec{}
	if limits != nil {
		layers = append(layers, spec{"data": spec{"values": limits}, "mark": spec{"type": "rule", "strokeDash": []int{6, 4}, "strokeWidth": 1.5, "opacity": 0.8},
			"encoding": spec{"color": col, "tooltip": tip, "x": spec{"value": 0}, "x2": spec{"value": "width"}, "y": spec{"field": "ideal", "type": "quantitative"}}})
	}
	layers = append(layers,
		spec{"mark": spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.75}, "encoding": spec{"color": col, "x": x, "y": y}},
		spec{"mark": spec{"type": "point", "filled": true, "size": 56, "opacity": 1}, "encoding": spec{"color": col, "shape": mark, "tooltip": tip, "x": x, "y": y}})
	if zeros != nil {
		layers = append(layers, spec{"data": spec{"values": zeros}, "mark": spec{"type": "point", "filled": true, "fill": "var(--paper)", "size": 60, "strokeWidth": 1.75, "opacity": 1},
			"encoding": spec{"stroke": col, "shape": mark, "tooltip": tip, "x": x, "y": spec{"value": "height"}}})
	}
	return Panel{Title: op + ": " + title, Spec: spec{"$schema": vegaLite, "description": "Bytes on the servers for each file byte, " + op + ", " + title, "data": spec{"values": rows}, "layer": layers}}
}
