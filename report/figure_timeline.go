package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// maxTimelines bounds the cells that are drawn node by node, for the page's size.
const maxTimelines = 48

// Parts of a node's time, from the release on, with their colours.
var timeParts = []struct{ name, colour string }{
	{"waiting for the first byte", "var(--o-cancelled)"},
	{"fetching", "var(--s1)"},
	{"until all is on disk", "var(--s6)"},
	{"without the content to the end", "var(--o-stalled)"},
}

// timelineFigure shows one trial of each cell node by node.
func (r *Report) timelineFigure() Figure {
	f := Figure{ID: "timeline", Title: "Node by node", Better: "for information", Choose: "cell",
		Reads: chooseWords + " A row is a node: from its release to its first verified byte, to its last, and to everything being on its disk. Vertical lines are faults and their ends, shaded while they last; diamonds are what happened to a node: it stalled, went on, died, was started again, left. Point at them for words."}
	for _, p := range timeParts {
		f.Legend = append(f.Legend, Legend{p.name, p.colour, "bar"})
	}
	f.Legend = append(f.Legend, Legend{"fault", "var(--bad)", "line"}, Legend{"happened to a node", "var(--ink)", "diamond"})
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"trial", true}, Column{"node", false}, Column{"role", false}, Column{"released", true}, Column{"first byte", true}, Column{"all verified", true}, Column{"all on disk", true}, Column{"ended", false}, Column{"end", true})
	n, left, most := 0, 0, 0
	for i := range r.Swarms {
		s := &r.Swarms[i]
		t, ok := s.shown()
		if !ok {
			continue
		}
		if n == maxTimelines {
			left++
			continue
		}
		// First the one that has most to tell: faults, then nodes.
		tells := s.Nodes
		if !s.quiet() {
			tells += 1000
		}
		if tells > most {
			most, f.First = tells, n
		}
		n++
		f.Panels = append(f.Panels, Panel{Title: fmt.Sprintf("%s (trial %d)", s.name(), t.ID), Spec: r.timeline(s, t, &f.Table)})
	}
	if n == 0 {
		return Figure{}
	}
	if left > 0 {
		f.Reads += fmt.Sprintf(" Drawn are the first %d cells of %d.", n, n+left)
	}
	if slices.ContainsFunc(r.Swarms, func(s Swarm) bool { return s.Line.Known() }) {
		f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
	}
	f.N = "n = " + plural(int64(n), "trial", "trials") + ", one per cell"
	return f
}

// nodeLabel is a node's name, where it has one.
func nodeLabel(name string, node int) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("node %02d", node+1)
}

// timeline is the picture of one trial.
func (r *Report) timeline(s *Swarm, t swarmTrial, table *Table) spec {
	names, labels := map[int]string{}, []string{}
	for _, seeders := range []bool{true, false} {
		for _, n := range t.nodes {
			if n.seeder == seeders {
				names[n.node] = nodeLabel(n.name, n.node)
				if seeders {
					names[n.node] += " (seeder)"
				}
				labels = append(labels, names[n.node])
			}
		}
	}
	for i := range t.leechers {
		if f := &t.leechers[i]; names[f.node] == "" {
			names[f.node] = nodeLabel("", f.node)
			labels = append(labels, names[f.node])
		}
	}
	zero, end := t.release, t.end-t.release
	var bars, happened, faults []spec
	bar := func(node int, part int, from, to float64, tip string) {
		if !(to > from) {
			return
		}
		bars = append(bars, spec{"node": names[node], "part": timeParts[part].name, "x": significant(from-zero, 5), "x2": significant(to-zero, 5), "tip": names[node] + ": " + tip})
	}
	row := func(node int, role string, f *fetched) {
		cell := append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, integer(int(t.ID)), Entry{Text: nodeLabel(strings.TrimSuffix(names[node], " (seeder)"), node)}, Entry{Text: role, Raw: role})
		if f == nil {
			table.Rows = append(table.Rows, append(cell, Entry{Text: "–"}, Entry{Text: "–"}, Entry{Text: "–"}, Entry{Text: "–"}, Entry{Text: "–"}, Entry{Text: "–"}))
			return
		}
		moment := func(at float64) Entry { return number(Num(at-zero), "s") }
		ended := f.outcome.String()
		if f.class != "" {
			ended += ": " + f.class
		}
		table.Rows = append(table.Rows, append(cell, moment(f.release), moment(f.first), moment(f.done), moment(f.disk), Entry{Text: ended, Raw: ended}, moment(f.end)))
	}
	for _, n := range t.nodes {
		if n.seeder {
			row(n.node, seederKind, nil)
		}
	}
	for i := range t.leechers {
		f := &t.leechers[i]
		row(f.node, leecherKind, f)
		first, done := f.first, f.done
		switch {
		case math.IsNaN(first) && math.IsNaN(done):
			bar(f.node, 3, f.release, f.end, fmt.Sprintf("no byte in %s; %s", show(f.end-f.release, "s"), f.words()))
			continue
		case math.IsNaN(first):
			first = f.release
		}
		bar(f.node, 0, f.release, first, fmt.Sprintf("first byte after %s", show(first-f.release, "s")))
		if math.IsNaN(done) {
			bar(f.node, 3, first, f.end, fmt.Sprintf("%s of %s until %s after its release; %s", show(f.got, "B"), show(t.size, "B"), show(f.end-f.release, "s"), f.words()))
			continue
		}
		bar(f.node, 1, first, done, fmt.Sprintf("all verified after %s", show(done-f.release, "s")))
		if !math.IsNaN(f.disk) {
			bar(f.node, 2, done, f.disk, fmt.Sprintf("all on disk after %s", show(f.disk-f.release, "s")))
		}
	}
	for _, e := range t.events {
		at := float64(e.At.UnixNano()-t.epoch)/1e9 - zero
		if at < -60 || at > end+600 {
			continue // of a clock that was set meanwhile
		}
		words := e.What
		if e.Detail != "" {
			words += " (" + e.Detail + ")"
		}
		tip := fmt.Sprintf("%s after the release: %s", show(at, "s"), words)
		end = max(end, at)
		node, known := nodeOf(e, t.nodes)
		if e.Kind == "node" && known && names[node] != "" {
			happened = append(happened, spec{"node": names[node], "x": significant(at, 5), "tip": names[node] + ", " + tip})
			continue
		}
		f := spec{"x": significant(at, 5), "tip": tip}
		if until, ends := endOf(e, t.events); ends {
			f["x2"] = significant(float64(until.UnixNano()-t.epoch)/1e9-zero, 5)
			f["tip"] = fmt.Sprintf("%s; undone %s later", tip, show(until.Sub(e.At).Seconds(), "s"))
		}
		faults = append(faults, f)
	}
	parts, colours := []string{}, []string{}
	for _, p := range timeParts {
		parts, colours = append(parts, p.name), append(colours, p.colour)
	}
	tip := spec{"field": "tip", "type": "nominal"}
	nodes := spec{"field": "node", "type": "nominal", "sort": labels, "scale": spec{"domain": labels}, "axis": spec{"title": nil, "ticks": false, "domain": false, "grid": false, "labelFontSize": 10}}
	x := spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, end * 1.02}, "nice": false, "clamp": true}, "axis": timeAxis(end)}
	layers := []spec{}
	if len(faults) > 0 {
		layers = append(layers, spec{"data": spec{"values": faults}, "transform": []spec{{"filter": spec{"field": "x2", "valid": true}}}, "mark": spec{"type": "rect", "color": "var(--bad)", "opacity": 0.1},
			"encoding": spec{"x": x, "x2": spec{"field": "x2"}, "tooltip": tip}})
	}
	layers = append(layers, spec{"data": spec{"values": bars}, "mark": spec{"type": "bar", "height": spec{"band": 0.62}},
		"encoding": spec{"y": nodes, "x": x, "x2": spec{"field": "x2"}, "color": spec{"field": "part", "type": "nominal", "scale": spec{"domain": parts, "range": colours}, "legend": nil}, "tooltip": tip}})
	if len(faults) > 0 {
		layers = append(layers, spec{"data": spec{"values": faults}, "mark": spec{"type": "rule", "color": "var(--bad)", "strokeWidth": 1.5}, "encoding": spec{"x": x, "tooltip": tip}})
	}
	if len(happened) > 0 {
		layers = append(layers, spec{"data": spec{"values": happened}, "mark": spec{"type": "point", "shape": "diamond", "filled": true, "size": 46, "color": "var(--ink)", "opacity": 1, "stroke": "var(--paper)", "strokeWidth": 1},
			"encoding": spec{"y": nodes, "x": x, "tooltip": tip}})
	}
	if s.Line.Known() {
		layers = append(layers, spec{"data": spec{"values": []spec{{"x": s.Line, "tip": "load line: " + show(float64(s.Line), "s")}}}, "mark": spec{"type": "rule", "color": "var(--ink)", "strokeDash": []int{6, 4}, "strokeWidth": 1.25}, "encoding": spec{"x": x, "tooltip": tip}})
	}
	return spec{"$schema": vegaLite, "description": "Node by node, " + s.name(), "data": spec{"values": []spec{}}, "height": 16*len(labels) + 4, "layer": layers}
}

// words is how a leecher ended.
func (f *fetched) words() string {
	if f.class != "" {
		return f.outcome.String() + ": " + f.class
	}
	return f.outcome.String()
}

// endOf finds when what begins with an event was undone: when the next event of the
// same fault, which says that it ends, was done with it.
func endOf(e record.Event, all []record.Event) (time.Time, bool) {
	what, begins := strings.CutSuffix(e.What, " begins")
	if !begins {
		return time.Time{}, false
	}
	for _, later := range all {
		if later.Kind == e.Kind && later.What == what+" ends" && later.Detail == e.Detail && later.At.After(e.At) {
			return later.At.Add(later.Took), true
		}
	}
	return time.Time{}, false
}

// nodeOf finds the node that an event speaks of, by its name.
func nodeOf(e record.Event, nodes []swarmNode) (int, bool) {
	for _, field := range strings.FieldsFunc(e.What+" "+e.Detail, func(c rune) bool { return strings.ContainsRune(" ,;:()", c) }) {
		for _, n := range nodes {
			if n.name != "" && n.name == field {
				return n.node, true
			}
		}
	}
	return 0, false
}
