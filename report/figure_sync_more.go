package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/stats"
)

// studyFigure is the study's bar graph, with this run beside it.
func (r *Report) studyFigure() Figure {
	if !r.followsStudy() {
		return Figure{}
	}
	f := Figure{ID: "study", Title: "The study's steps", Better: "shorter is better", Choose: "conditions",
		Legend: []Legend{{"here", "var(--s1)", "bar"}, {"the study", "var(--s0)", "bar"}, {"interval", "var(--ink)", "stroke"}},
		Reads:  "Time as a share of the default's, the study's three steps on top of each other. Of the study two bars are known, the first and the last: −76 % in all. Ratios here are over trials of the same blocks, with their intervals."}
	f.Table = r.syncStudySection().Table
	trials := 0
	for _, t := range r.tunings() {
		cells, names := t.ladder()
		if len(cells) < 2 {
			continue
		}
		type bar struct{ v, lo, hi Num }
		bars, most := []bar{{1, 1, 1}}, 1.0
		labels := []string{"default: 100 %"}
		for i := 1; i < len(cells); i++ {
			b := bar{unknown, unknown, unknown}
			if q, ok := cells[i].cell.Ratios["sync_time"]; ok && q.Value.Known() {
				b = bar{q.Value, q.Lo, q.Hi}
				labels = append(labels, names[i]+": "+q.gainWords())
				most = max(most, float64(q.Value))
				if q.Hi.Known() {
					most = max(most, float64(q.Hi))
				}
			} else {
				labels = append(labels, names[i]+": not compared")
			}
			bars = append(bars, b)
		}
		for _, c := range cells {
			trials += c.Trials
		}
		labels = append(labels, "the study, default: 100 %", fmt.Sprintf("the study, all three: %s %%", signed(1+studyTotal)))
		p := newRows(labels)
		var here, intervals []spec
		for i, b := range bars {
			if !b.v.Known() {
				continue
			}
			here = append(here, spec{"y": p.y(i), "x": 0, "x2": b.v, "tip": labels[i]})
			if i > 0 && b.lo.Known() && b.hi.Known() {
				intervals = append(intervals, spec{"y": p.y(i), "x": b.lo, "x2": b.hi, "tip": labels[i]})
			}
		}
		n := len(bars)
		p.bar(here, spec{"color": "var(--s1)"}, nil)
		p.bar([]spec{{"y": p.y(n), "x": 0, "x2": 1, "tip": labels[n]}, {"y": p.y(n + 1), "x": 0, "x2": 1 + studyTotal, "tip": labels[n+1]}}, spec{"color": "var(--s0)"}, nil)
		p.bar(intervals, spec{"strokeWidth": 1.75, "color": "var(--ink)"}, nil)
		f.Panels = append(f.Panels, p.panel(r.place(t), f.Title, spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, most * 1.03}, "nice": false},
			"axis": spec{"title": "time, share of the default's", "grid": true, "tickCount": 6, "format": "%"}}))
	}
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}

// shapeFigure is how the time, or the share of useful peers, goes with a number.
func (r *Report) shapeFigure(what string) Figure {
	f := Figure{ID: "shape-" + what, Title: "Time to serve against a number", Better: "lower is better", Choose: "knob", Legend: []Legend{{"mean", "var(--s1)", "circle"}},
		Reads: "Geometric means over the trials (medians where some never served) at each level of a knob that is a number, nothing else changed, with their intervals; small marks are trials. The shaded levels are those that cannot be told from the lowest, corrected for their number."}
	if what == "useful" {
		f.Title, f.Better = "Useful peers against a number", "higher is better"
		f.Reads = "Share of the peers that delivered a block, medians over the trials with their intervals, at each level of a knob that is a number, nothing else changed. A timeout that is too short gives up on peers that would have delivered."
	}
	f.Table.Head = []Column{{"system", false}, {"where", false}, {"knob", false}, {"level", true}, {"time", true}, {"low", true}, {"high", true}, {"× lowest", true}, {"low", true}, {"high", true}, {"useful peers", true}, {"timeouts", true}, {"trials", true}, {"never", true}}
	trials, u, lined := 0, false, false
	for i := range r.Shapes {
		n := &r.Shapes[i]
		var rows, single, lines []spec
		var values []float64
		var labels []string
		most := 0.0
		for j := range n.Levels {
			x := &n.Levels[j]
			f.Table.Rows = append(f.Table.Rows, []Entry{{Text: n.System, Raw: n.System}, {Text: n.Where, Raw: n.Where}, {Text: n.Label, Raw: n.Label}, {Text: x.text, Raw: Plain(float64(x.At))}, number(x.Value, "s"), number(x.Lo, "s"), number(x.Hi, "s"), number(x.Ratio, "×"), number(x.RatioLo, "×"), number(x.RatioHi, "×"),
				share(x.Useful), number(x.Timeouts, "1"), integer(x.Trials), integer(x.Unfinished)})
			trials += x.Trials
			values, labels = append(values, float64(x.At)), append(labels, x.text)
			v, lo, hi, unit := x.Value, x.Lo, x.Hi, "s"
			if what == "useful" {
				v, lo, hi, unit = x.Useful, x.UsefulLo, x.UsefulHi, "ratio"
			}
			if !v.Known() {
				continue
			}
			row := spec{"x": x.At, "y": v, "tip": fmt.Sprintf("%s %s: %s, %s", n.Label, x.text, showRange(v, lo, hi, unit), plural(int64(x.Trials), "trial", "trials"))}
			most = max(most, float64(v))
			if lo.Known() && hi.Known() && x.Trials > 1 {
				row["lo"], row["hi"] = lo, hi
				most = max(most, float64(hi))
			}
			rows = append(rows, row)
			if what == "time" {
				for k := range r.Syncs {
					if s := &r.Syncs[k]; s.Cell == x.Cell && !math.IsNaN(s.metric("line")) {
						lines = append(lines, spec{"x": x.At, "y": s.metric("line"), "tip": fmt.Sprintf("load line at %s %s: %s", n.Label, x.text, show(s.metric("line"), "s"))})
						most = max(most, s.metric("line"))
					}
				}
			}
			if what == "time" && len(r.Trials) <= manyTrials {
				for k := range r.Syncs {
					if s := &r.Syncs[k]; s.Cell == x.Cell {
						for _, t := range s.trials {
							if v, ok := t.Metrics["sync_time"]; ok && t.served() {
								single = append(single, spec{"x": x.At, "y": v})
								most = max(most, v)
							}
						}
					}
				}
			}
		}
		if len(rows) < 3 {
			continue
		}
		lo, hi := slices.Min(values), slices.Max(values)
		pad := math.Pow(hi/lo, 0.07)
		y := spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, most * 1.06}, "nice": true}, "axis": r.valueAxis("s", most)}
		if what == "useful" {
			y = spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, 1.04}, "nice": false}, "axis": shareAxis()}
		}
		layers := []spec{}
		if what == "time" && n.From.Known() && n.Shape != stats.UnknownShape {
			u = true
			edge := math.Pow(hi/lo, 0.025)
			layers = append(layers, spec{"data": spec{"values": []spec{{"x": float64(n.From) / edge, "x2": float64(n.To) * edge, "tip": n.words()}}}, "mark": spec{"type": "rect", "color": "var(--s3)", "opacity": 0.16},
				"encoding": spec{"x": spec{"field": "x", "type": "quantitative"}, "x2": spec{"field": "x2"}, "y": spec{"value": 0}, "y2": spec{"value": "height"}, "tooltip": spec{"field": "tip", "type": "nominal"}}})
		}
		if len(lines) > 0 {
			lined = true
			layers = append(layers, spec{"data": spec{"values": lines}, "mark": spec{"type": "line", "strokeDash": []int{6, 4}, "strokeWidth": 1.5, "opacity": 0.8, "color": "var(--ink)"}, "encoding": spec{"tooltip": spec{"field": "tip", "type": "nominal"}}})
		}
		layers = append(layers,
			spec{"mark": spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.75, "color": "var(--s1)"}},
			spec{"transform": []spec{{"filter": spec{"field": "lo", "valid": true}}}, "mark": spec{"type": "rule", "strokeWidth": 1.75, "color": "var(--s1)"}, "encoding": spec{"y": spec{"field": "lo", "type": "quantitative"}, "y2": spec{"field": "hi"}}},
			spec{"mark": spec{"type": "point", "filled": true, "size": 64, "opacity": 1, "color": "var(--s1)"}, "encoding": spec{"tooltip": spec{"field": "tip", "type": "nominal"}}})
		if len(single) > 0 {
			layers = append(layers, spec{"data": spec{"values": single}, "mark": spec{"type": "point", "filled": true, "size": 12, "opacity": 0.5, "color": "var(--ink)"}})
		}
		where := n.Where
		if len(r.Systems) > 1 {
			where = joined([]string{n.System, where})
		}
		title := n.Label
		if where != "" {
			title += " (" + where + ")"
		}
		if what == "time" {
			title += ": " + n.words()
		}
		f.Panels = append(f.Panels, Panel{Title: title, Spec: spec{"$schema": vegaLite, "description": f.Title + ", " + title, "data": spec{"values": rows},
			"encoding": spec{"x": spec{"field": "x", "type": "quantitative", "scale": spec{"type": "log", "domain": []float64{lo / pad, hi * pad}, "nice": false},
				"axis": spec{"title": n.Label, "values": values, "labelExpr": labelExpr(values, labels), "grid": false, "labelAngle": 0}}, "y": y},
			"layer": layers}})
	}
	if u {
		f.Legend = append(f.Legend, Legend{"as good as the lowest", "var(--s3)", "bar"})
	}
	if lined {
		f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
	}
	if len(f.Panels) <= 4 {
		f.Choose = ""
	}
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}

// heightFigure is how fast the chain grew along its height: in blocks, or in bytes
// on the link.
func (r *Report) heightFigure(what string) Figure {
	f := Figure{ID: "height-" + what, Title: "Blocks a second along the chain", Better: "higher is better", Choose: "configuration", Legend: []Legend{{"the configuration", "var(--s1)", "circle"}, {"the default", "var(--s0)", "square"}},
		Reads: "The chain is divided into parts of equal height, no finer than it came in batches that polls told apart; each mark is the median over the trials of the rate in its part, once the first block is there. A line that falls is a node that gets slower as the chain grows."}
	unit := "1/s"
	if what == "wire" {
		f.Title, unit = "Bytes a second along the chain", "B/s"
		f.Reads = "What the fresh node's link carried towards it, headers included, while the chain grew through each part of its height: medians over the trials. The dashed line is the load line: what the links of its peers and its own can carry."
	}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"height", true}, Column{"rate", true}, Column{"trials", true})
	of := func(h *HeightAt) Num {
		if what == "wire" {
			return h.Wire
		}
		return h.Blocks
	}
	trials, lined := 0, false
	for i := range r.Syncs {
		s := &r.Syncs[i]
		trials += s.Trials
		for j := range s.Rates {
			h := &s.Rates[j]
			f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, whole(h.Height), number(of(h), unit), integer(h.Trials)))
		}
	}
	for _, t := range r.tunings() {
		cells, _ := r.rowsOf(t)
		base := (*Synced)(nil)
		if t.base != nil {
			base = r.synced(t.base)
		}
		// The best first: it is what is looked for.
		slices.Reverse(cells)
		for _, s := range cells {
			var rows []spec
			most := 0.0
			add := func(s *Synced, kind string) {
				for j := range s.Rates {
					h := &s.Rates[j]
					if v := of(h); v.Known() {
						most = max(most, float64(v))
						rows = append(rows, spec{"kind": kind, "x": h.Height, "y": v, "tip": fmt.Sprintf("%s at height %s: %s", r.configured(s.cell), count(h.Height), show(float64(v), unit))})
					}
				}
			}
			add(s, "own")
			n := len(rows)
			if base != nil && base != s {
				add(base, "default")
			}
			if n == 0 {
				continue
			}
			col := spec{"field": "kind", "type": "nominal", "scale": spec{"domain": []string{"own", "default"}, "range": []string{"var(--s1)", "var(--s0)"}}, "legend": nil}
			shp := spec{"field": "kind", "type": "nominal", "scale": spec{"domain": []string{"own", "default"}, "range": []string{"circle", "square"}}, "legend": nil}
			layers := []spec{
				{"mark": spec{"type": "line", "strokeWidth": 1.75, "opacity": 0.8}, "encoding": spec{"color": col}},
				{"mark": spec{"type": "point", "filled": true, "size": 40, "opacity": 1}, "encoding": spec{"color": col, "shape": shp, "tooltip": spec{"field": "tip", "type": "nominal"}}},
			}
			if line := s.metric("wire_line"); what == "wire" && line > 0 {
				lined, most = true, max(most, line)
				layers = append([]spec{r.across([]spec{{"y": line, "tip": "load line: " + show(line, "B/s")}})}, layers...)
			}
			title, axis := r.syncName(s), r.valueAxis(unit, most)
			if what == "blocks" {
				axis["title"] = strings.Replace(fmt.Sprint(axis["title"]), "/s", " blocks/s", 1)
			}
			f.Panels = append(f.Panels, Panel{Title: title, Spec: spec{"$schema": vegaLite, "description": f.Title + ", " + title, "data": spec{"values": rows},
				"encoding": spec{"x": spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, float64(s.cell.plan.Sync.Blocks)}, "nice": false}, "axis": spec{"title": "height", "grid": false, "tickCount": 6, "labelExpr": "format(datum.value, ',')"}},
					"y": spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, most * 1.06}, "nice": true}, "axis": axis}},
				"layer": layers}})
		}
	}
	if lined {
		f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
	}
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}

// lineFigure puts the load line beside the time until a node can serve.
func (r *Report) lineFigure() Figure {
	f := Figure{ID: "line", Title: "How near the load line", Better: "shorter is better", Choose: "conditions",
		Legend: []Legend{{"until it can serve", "var(--s6)", "bar"}, {"what the links need", "var(--s2)", "stroke"}, {"what validation needs", "var(--ink)", "stroke"}},
		Reads:  "The bar is the time until the node can serve, waits for the first block included; the marks are what the links need for the chain's bytes, and what the node needs to validate and index it from a local file (the time is a geometric mean over trials, the others are medians). The share is that of the larger in the time. A bar far beyond both is a node that waits."}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"serves after", true}, Column{"links", true}, Column{"replay", true}, Column{"share", true}, Column{"after the first block", true}, Column{"bound by", false}, Column{"trials", true})
	trials, left := 0, 0
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if math.IsNaN(s.metric("line_share")) {
			continue
		}
		trials += s.Trials
		f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, number(Num(s.metric("sync_time")), "s"), number(Num(s.metric("link_line")), "s"), number(Num(s.metric("replay")), "s"),
			share(Num(s.metric("line_share"))), share(s.NetLineShare), Entry{Text: s.boundWords(), Raw: s.Bound}, integer(s.Trials)))
	}
	for _, t := range r.tunings() {
		cells, more := r.rowsOf(t)
		left = max(left, more)
		cells = slices.DeleteFunc(slices.Clone(cells), func(s *Synced) bool { return math.IsNaN(s.metric("line_share")) })
		if len(cells) == 0 {
			continue
		}
		var labels []string
		most := 0.0
		for _, s := range cells {
			words := fmt.Sprintf("%s: %s of the line", r.configured(s.cell), percent(s.metric("line_share")))
			if b := s.boundWords(); b != "–" {
				words += ", bound by " + b
			}
			if s.Bound == boundWaits {
				words = strings.Replace(words, "bound by waits", "it waits", 1)
			}
			labels = append(labels, words)
			for _, key := range []string{"sync_time", "link_line", "replay"} {
				if v := s.metric(key); !math.IsNaN(v) {
					most = max(most, v)
				}
			}
		}
		p := newRows(labels)
		var bars []spec
		marks := map[string][]spec{}
		for i, s := range cells {
			bars = append(bars, spec{"y": p.y(i), "x": 0, "x2": s.metric("sync_time"), "tip": labels[i] + ", " + show(s.metric("sync_time"), "s")})
			for _, key := range []string{"link_line", "replay"} {
				if v := s.metric(key); !math.IsNaN(v) {
					marks[key] = append(marks[key], spec{"y": p.y(i) - rowMark/2 - 1, "y2": p.y(i) + rowMark/2 + 1, "x": v, "tip": map[string]string{"link_line": "the links need ", "replay": "validation needs "}[key] + show(v, "s")})
				}
			}
		}
		p.bar(bars, spec{"color": "var(--s6)"}, nil)
		stroke := spec{"x": spec{"field": "x", "type": "quantitative"}, "y2": spec{"field": "y2"}, "tooltip": spec{"field": "tip", "type": "nominal"}}
		p.add(marks["link_line"], spec{"type": "rule", "strokeWidth": 3, "color": "var(--s2)"}, stroke)
		p.add(marks["replay"], spec{"type": "rule", "strokeWidth": 3, "color": "var(--ink)"}, stroke)
		f.Panels = append(f.Panels, p.panel(r.place(t), f.Title, secondsAxis(most)))
	}
	f.Reads += leftWords(left)
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}

// peersFigure is what each peer delivered, in one trial of each cell that has
// several.
func (r *Report) peersFigure() Figure {
	f := Figure{ID: "peers", Title: "What each peer delivered", Better: "for information", Choose: "configuration",
		Legend: []Legend{{"honest", "var(--s1)", "bar"}, {"silent", "var(--o-stalled)", "bar"}, {"a stranger", "var(--s4)", "bar"}},
		Reads:  "Share of the blocks that each peer delivered, with the rate of its link towards the node, the time that it took for them and its timeouts. Shown is one valid trial of each cell, the one whose time is the median (the lower middle); the table of peers has all."}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"trial", true}, Column{"peer", false}, Column{"kind", false}, Column{"link", true}, Column{"blocks", true}, Column{"bytes", true}, Column{"busy", true}, Column{"timeouts", true}, Column{"failed", true})
	kinds := map[float64]string{peerHonest: "honest", peerSilent: "silent", peerStranger: "stranger"}
	n := 0
	for i := range r.Syncs {
		s := &r.Syncs[i]
		t := s.shown()
		if t == nil || len(t.peers) < 2 || len(f.Panels) >= maxTimelines {
			continue
		}
		n++
		all := 0.0
		for _, p := range t.peers {
			all += max(0, p.blocks)
		}
		var labels []string
		for _, p := range t.peers {
			part := 0.0
			if all > 0 && p.blocks > 0 {
				part = p.blocks / all
			}
			words := p.name
			switch {
			case p.rate > 0:
				words += ", " + exact(p.rate, "bit/s")
			case p.rate == 0:
				words += ", unlimited"
			}
			if p.manner > 0 {
				words += ", " + kinds[p.manner]
			}
			words += ": " + percent(part)
			if p.busy > 0 {
				words += " in " + show(p.busy, "s")
			}
			if p.timeouts > 0 {
				words += ", " + plural(int64(p.timeouts), "timeout", "timeouts")
			}
			if p.failed > 0 {
				words += fmt.Sprintf(", %s failed", count(int64(p.failed)))
			}
			labels = append(labels, words)
			kind := kinds[max(0, p.manner)]
			if kind == "" {
				kind = "honest"
			}
			f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, whole(t.ID), Entry{Text: p.name, Raw: p.name}, Entry{Text: kind, Raw: kind}, rateEntry(Num(p.rate)), number(Num(p.blocks), "1"), number(Num(p.bytes), "B"), number(Num(p.busy), "s"), number(Num(p.timeouts), "1"), number(Num(p.failed), "1")))
		}
		p := newRows(labels)
		most := 0.0
		bars := map[string][]spec{}
		for j, q := range t.peers {
			if all == 0 || !(q.blocks > 0) {
				continue
			}
			most = max(most, q.blocks/all)
			colour := "var(--s1)"
			switch q.manner {
			case peerSilent:
				colour = "var(--o-stalled)"
			case peerStranger:
				colour = "var(--s4)"
			}
			bars[colour] = append(bars[colour], spec{"y": p.y(j), "x": 0, "x2": q.blocks / all, "tip": labels[j]})
		}
		for _, colour := range []string{"var(--s1)", "var(--o-stalled)", "var(--s4)"} {
			p.bar(bars[colour], spec{"color": colour}, nil)
		}
		if most == 0 {
			continue
		}
		f.Panels = append(f.Panels, p.panel(fmt.Sprintf("%s, trial %d", r.syncName(s), t.ID), f.Title, spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, min(1, most*1.1)}, "nice": false}, "axis": spec{"title": "share of the blocks", "grid": true, "tickCount": 5, "format": "%"}}))
	}
	f.N = "n = " + plural(int64(n), "trial", "trials")
	return f
}

// usedFigure is what the node used, by configuration.
func (r *Report) usedFigure() Figure {
	f := Figure{ID: "used", Title: "What the node used, by configuration", Better: "shorter is better", Choose: "measure", Legend: []Legend{{"median", "var(--s1)", "bar"}, {"interval", "var(--ink)", "stroke"}},
		Reads: "Medians over the trials with their intervals, of the fresh node's own process and link, in the order of the figure of times."}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"measure", false}, Column{"median", true}, Column{"low", true}, Column{"high", true}, Column{"trials", true})
	trials, left := 0, 0
	for i := range r.Syncs {
		trials += r.Syncs[i].Trials
	}
	for _, key := range []string{"system_cpu", "node_rss_peak", "disk_written", "commits", "wire_bytes"} {
		m, ok := r.metric(key)
		if !ok || !r.measured(key) {
			continue
		}
		for i := range r.Syncs {
			s := &r.Syncs[i]
			if q, ok := s.cell.Metrics[key]; ok {
				f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, Entry{Text: m.Name, Raw: key}, number(q.Median, m.Unit), number(q.Lo, m.Unit), number(q.Hi, m.Unit), integer(q.N)))
			}
		}
		for _, t := range r.tunings() {
			cells, more := r.rowsOf(t)
			left = max(left, more)
			var labels []string
			var kept []*Synced
			most := 0.0
			for _, s := range cells {
				q, ok := s.cell.Metrics[key]
				if !ok || !q.Median.Known() {
					continue
				}
				kept = append(kept, s)
				labels = append(labels, r.configured(s.cell)+": "+show(float64(q.Median), m.Unit))
				most = max(most, float64(q.Median))
				if q.Hi.Known() {
					most = max(most, float64(q.Hi))
				}
			}
			if len(kept) == 0 || most == 0 {
				continue
			}
			p := newRows(labels)
			var bars, intervals []spec
			for i, s := range kept {
				q := s.cell.Metrics[key]
				bars = append(bars, spec{"y": p.y(i), "x": 0, "x2": q.Median, "tip": labels[i]})
				if q.N > 1 && q.Lo.Known() && q.Hi.Known() {
					intervals = append(intervals, spec{"y": p.y(i), "x": q.Lo, "x2": q.Hi, "tip": showRange(q.Median, q.Lo, q.Hi, m.Unit)})
				}
			}
			p.bar(bars, spec{"color": "var(--s1)"}, nil)
			p.bar(intervals, spec{"strokeWidth": 1.75, "color": "var(--ink)"}, nil)
			axis := timeAxis(most)
			_, suffix := quantity(most, m.Unit)
			axis["title"], axis["grid"], axis["labelExpr"] = joined([]string{m.Name, suffix}), true, fmt.Sprintf("format(datum.value * %g, '~g')", conversion(most, m.Unit))
			f.Panels = append(f.Panels, p.panel(joined([]string{m.Name, r.place(t)}), f.Title, spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, most * 1.03}, "nice": false}, "axis": axis}))
		}
	}
	f.Reads += leftWords(left)
	f.N = "n = " + plural(int64(trials), "valid trial", "valid trials")
	return f
}
