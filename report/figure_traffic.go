package report

import (
	"fmt"
	"math"
)

// trafficFigure shows what crossed each node's link in the trial of the timeline.
func (r *Report) trafficFigure() Figure {
	const received, sent = "received", "sent"
	f := Figure{ID: "traffic", Title: "Bytes on each node's link", Better: "for information", Choose: "cell",
		Legend: []Legend{{received, "var(--s1)", "bar"}, {sent, "var(--s2)", "bar"}},
		Reads:  chooseWords + " Bytes that each node received from its access link and sent into it, headers included (what a queue of the link then dropped was sent, too), divided by the size of the content: a leecher receives 1 and what is overhead, and what it sends is what seeders need not."}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"trial", true}, Column{"node", false}, Column{"role", false}, Column{"received", true}, Column{"sent", true}, Column{"received, of the content", true}, Column{"sent, of the content", true})
	n, left, most := 0, 0, 0
	for i := range r.Swarms {
		s := &r.Swarms[i]
		t, ok := s.shown()
		if !ok || !(t.size > 0) {
			continue
		}
		var rows []spec
		var labels []string
		farthest := 1.0
		for _, seeders := range []bool{true, false} {
			for _, node := range t.nodes {
				if node.seeder != seeders || math.IsNaN(node.received) || math.IsNaN(node.sent) {
					continue
				}
				name, role := nodeLabel(node.name, node.node), leecherKind
				if seeders {
					role = seederKind
				}
				label := name
				if seeders {
					label += " (seeder)"
				}
				labels = append(labels, label)
				for _, d := range []struct {
					what  string
					bytes float64
				}{{received, node.received}, {sent, node.sent}} {
					rows = append(rows, spec{"node": label, "way": d.what, "x": significant(d.bytes/t.size, 4), "tip": fmt.Sprintf("%s %s %s, %s the content", label, d.what, show(d.bytes, "B"), show(d.bytes/t.size, "×"))})
					farthest = max(farthest, d.bytes/t.size)
				}
				if n < maxTimelines {
					f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, integer(int(t.ID)), Entry{Text: name}, Entry{Text: role, Raw: role},
						number(Num(node.received), "B"), number(Num(node.sent), "B"), number(Num(node.received/t.size), "×"), number(Num(node.sent/t.size), "×")))
				}
			}
		}
		if rows == nil {
			continue
		}
		if n == maxTimelines {
			left++
			continue
		}
		if s.Nodes > most {
			most, f.First = s.Nodes, n
		}
		n++
		f.Panels = append(f.Panels, Panel{Title: fmt.Sprintf("%s (trial %d)", s.name(), t.ID), Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + s.name(), "data": spec{"values": rows}, "height": 22*len(labels) + 4,
			"mark": spec{"type": "bar"},
			"encoding": spec{
				"y":       spec{"field": "node", "type": "nominal", "sort": labels, "axis": spec{"title": nil, "ticks": false, "domain": false, "grid": false, "labelFontSize": 10}},
				"yOffset": spec{"field": "way", "type": "nominal", "sort": []string{received, sent}},
				"x":       spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, farthest * 1.03}, "nice": false}, "axis": spec{"title": "times the content", "tickCount": 6, "grid": true}},
				"color":   spec{"field": "way", "type": "nominal", "scale": spec{"domain": []string{received, sent}, "range": []string{"var(--s1)", "var(--s2)"}}, "legend": nil},
				"tooltip": spec{"field": "tip", "type": "nominal"},
			}}})
	}
	if n == 0 {
		return Figure{}
	}
	if left > 0 {
		f.Reads += fmt.Sprintf(" Drawn are the first %d cells of %d.", n, n+left)
	}
	f.N = "n = " + plural(int64(n), "trial", "trials") + ", one per cell"
	return f
}
