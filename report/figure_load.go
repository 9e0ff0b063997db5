package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// curve is a line of a figure over time.
type curve struct {
	load   *LoadTest
	name   string // in the legend
	colour string
	points []stretch
	dashed bool
}

// overTime is a figure whose panels have time from left to right.
type overTime struct {
	id, title, better, reads, unit string
	value                          string // column of the table
	log, stacked                   bool
	each                           bool // a panel for each load test; else one for all
	n                              string
	curves                         []curve
}

// crowd is from how many load tests on their lines are drawn with fewer points,
// for the page's size.
const crowd = 8

func (r *Report) points() int {
	if len(r.Loads) > crowd {
		return maxPoints * crowd / (2 * len(r.Loads))
	}
	return maxPoints
}

// LeftOut is a figure that is not drawn.
type LeftOut struct{ Title, Why string }

func (r *Report) leaveOut(title, why string) { r.left = append(r.left, LeftOut{title, why}) }

// drawLoads makes the figures of the load test in the order of the study.
func (r *Report) drawLoads(in *input) error {
	r.Hero = nil
	figures := []Figure{r.efficiencyFigure(), r.fundsFigure(), r.spendingFigure(), r.bandwidthFigure(false), r.bandwidthFigure(true), r.uploadedFigure(), r.latencyFigure(), r.latencyBandwidthFigure(), r.storeTimeFigure()}
	hero := slices.IndexFunc(figures, func(f Figure) bool { return f.ID == "api-latency" && len(f.Panels) > 0 })
	if hero < 0 {
		hero = slices.IndexFunc(figures, func(f Figure) bool { return len(f.Panels) > 0 })
	}
	for i, f := range figures {
		if i == hero {
			h := f
			h.ID = "hero"
			r.Hero = &h
			continue
		}
		r.add(f)
	}
	r.add(r.successFigure())
	r.add(r.outcomeFigure())
	return nil
}

// colourOf is the colour of a load test: its system's.
func (r *Report) colourOf(l *LoadTest) string {
	for _, s := range r.Systems {
		if s.Name == l.System {
			return systemColour(s.Slot)
		}
	}
	return systemColour(1)
}

// name is what a load test is called beside others.
func (l *LoadTest) name() string {
	if l.Where == "" {
		return l.System
	}
	return l.System + ", " + l.Where
}

// own are the curves of one series of every load test, in its system's colour.
func (r *Report) own(points func(*LoadTest) []stretch) []curve {
	var all []curve
	for i := range r.Loads {
		l := &r.Loads[i]
		if p := points(l); len(p) > 0 {
			all = append(all, curve{load: l, name: l.System, colour: r.colourOf(l), points: p})
		}
	}
	return all
}

// pollsBasis says what the figures of load tests rest on.
func (r *Report) pollsBasis(curves []curve) string {
	seen, n := map[*LoadTest]bool{}, 0
	for _, c := range curves {
		if !seen[c.load] {
			seen[c.load] = true
			n += c.load.Polls.N
		}
	}
	s := "n = " + plural(int64(n), "poll", "polls")
	if len(seen) > 1 {
		s += " of " + plural(int64(len(seen)), "load test", "load tests")
	}
	return s
}

// readsTime says how the figures over time are to be read.
const readsTime = " Each point is a stretch of time, of at most %d. Gaps are times without a poll that told it, those between sessions among them; vertical lines are sessions (dotted), faults (red) and the end (dashed)."

func (r *Report) efficiencyFigure() Figure {
	f := overTime{id: "efficiency", title: "Storage efficiency", better: "higher is better", unit: "ratio", value: "efficiency",
		reads: "File bytes divided by absolute bytes, both since the test began, at the end of each stretch; the band is what the moments of a poll leave open. The dashed line is the load line: what padding and the wanted redundancy allow at most."}
	f.curves = r.own(func(l *LoadTest) []stretch { return l.efficiencies(r.points()) })
	least, most := math.Inf(1), 0.0
	for _, c := range f.curves {
		for _, p := range c.points {
			if p.y > 0 {
				least, most = min(least, p.y), max(most, p.y)
			}
		}
	}
	for _, c := range slices.Clone(f.curves) {
		if e := c.load.Efficiency; e != nil && e.Line.Known() {
			line := c.load.loadLine(c.points)
			for _, p := range line {
				least, most = min(least, p.y), max(most, p.y)
			}
			f.curves = append(f.curves, curve{load: c.load, name: c.name + ", load line", colour: c.colour, points: line, dashed: true})
		}
	}
	f.log = most > 30*least
	return r.draw(f)
}

// loadLine is the efficiency that padding and the wanted redundancy of the
// objects stored so far allow.
func (l *LoadTest) loadLine(at []stretch) []stretch {
	var line []stretch
	padded, bytes, n := 0.0, 0.0, 0
	for _, p := range at {
		for ; n < len(l.shelf.accepted) && l.shelf.accepted[n].at <= p.to; n++ {
			s := l.shelf.accepted[n]
			padded, bytes = padded+float64(l.coding.padded(s.size)), bytes+float64(s.size)
		}
		if padded > 0 {
			y := bytes / padded * float64(l.coding.needed) / float64(l.coding.servers)
			line = append(line, stretch{p.from, p.to, y, y, y, 0})
		}
	}
	return line
}

func (r *Report) fundsFigure() Figure {
	f := overTime{id: "funds", title: "Funds", better: "for information", value: "amount", each: true,
		reads: "Money that can be spent (wallet), money that lies unspent in contracts, and what both were with all that was spent: in a closed system this sum is constant."}
	for i := range r.Loads {
		l := &r.Loads[i]
		w := l.watch
		f.unit = l.currency
		balance, spent := w.values[system.ReadBalance], w.values[system.ReadSpent]
		add := func(name, colour string, v []float64) {
			if p := w.levels(v, r.points()); len(p) > 0 {
				f.curves = append(f.curves, curve{load: l, name: name, colour: colour, points: p})
			}
		}
		add("wallet", "var(--s1)", balance)
		add("unspent in contracts", "var(--s5)", w.values[system.ReadUnspent])
		if balance != nil && spent != nil {
			add("wallet and contracts together", "var(--ink)", w.together())
		}
	}
	return r.draw(f)
}

// together is wallet and contracts, with what is under way.
func (w *watch) together() []float64 {
	sum := make([]float64, len(w.start))
	for _, p := range partsOfWealth {
		v := w.values[p.name]
		if v == nil {
			continue
		}
		for i := range sum {
			sum[i] += float64(p.sign) * v[i]
		}
	}
	return sum
}

// kindColours of spending, in the order of its kinds.
var kindColours = []string{"var(--s7)", "var(--s3)", "var(--s1)", "var(--s4)", "var(--s6)", "var(--s2)"}

func (r *Report) spendingFigure() Figure {
	f := overTime{id: "spending", title: "Spending", better: "lower is better", value: "amount", each: true, stacked: true,
		reads: "What contracts have cost so far, by purpose, one above the other; the unspent part may come back when a contract ends."}
	for i := range r.Loads {
		l := &r.Loads[i]
		f.unit = l.currency
		for k, name := range l.watch.kinds() {
			kind, colour := strings.TrimPrefix(name, system.ReadSpentPrefix), kindColours[k%len(kindColours)]
			if name == system.ReadUnspent {
				kind, colour = "unspent", "var(--s5)"
			}
			if p := l.watch.levels(l.watch.values[name], r.points()); len(p) > 0 {
				f.curves = append(f.curves, curve{load: l, name: kind, colour: colour, points: p})
			}
		}
	}
	return r.draw(f)
}

func (r *Report) bandwidthFigure(absolute bool) Figure {
	f := overTime{id: "file-bandwidth", title: "File bandwidth", better: "higher is better", unit: "B/s", value: "bandwidth",
		reads: "File bytes of the objects accepted within each stretch, per second of it."}
	if absolute {
		f.id, f.title = "absolute-bandwidth", "Absolute bandwidth"
		f.reads = "Bytes that came to the storage servers within each stretch, padding and redundancy included, per second. A poll sees a state at some moment between its start and its end: the band is every rate that these moments allow. Where polls take long it is wide, and peaks within it may be of the polling."
	}
	f.curves = r.own(func(l *LoadTest) []stretch {
		file, all := l.rates(r.points())
		if absolute {
			return all
		}
		return file
	})
	if absolute {
		r.limits(&f, (*LoadTest).absoluteLine, "what the link carries.")
	} else {
		r.limits(&f, (*LoadTest).fileLine, "what the link carries, divided by the redundancy that is made before it. Where a system accepts objects before they cross the link it may be above it for a while.")
	}
	return r.draw(f)
}

func (r *Report) uploadedFigure() Figure {
	f := overTime{id: "uploaded", title: "Data uploaded", better: "higher is better", unit: "B", value: "bytes", each: true,
		reads: "File bytes stored, and absolute bytes of the storage servers, padding and redundancy included."}
	for i := range r.Loads {
		l := &r.Loads[i]
		var file []stretch
		for _, p := range l.watch.pairs(l.watch.start, r.points()) {
			lo, hi := l.onServers(p.j)
			if !math.IsNaN(hi) {
				file = append(file, stretch{l.watch.mid(p.i), l.watch.mid(p.j), hi, lo, hi, p.part})
			}
		}
		absolute := l.watch.levels(l.watch.values[system.ReadAbsolute], r.points())
		if len(file) > 0 {
			f.curves = append(f.curves, curve{load: l, name: "file bytes", colour: "var(--s1)", points: file})
		}
		if len(absolute) > 0 {
			f.curves = append(f.curves, curve{load: l, name: "absolute bytes", colour: "var(--s2)", points: absolute})
			f.log = f.log || l.Absolute > 50*l.Bytes
		}
	}
	if f.log {
		f.reads += " The axis is logarithmic."
	}
	return r.draw(f)
}

func (r *Report) latencyFigure() Figure {
	f := overTime{id: "api-latency", title: "API latency", better: "lower is better", unit: "s", value: "latency",
		reads: "Time of all calls of one poll together: the median of each stretch, and the band from the fastest to the slowest of its polls. Polls with a call that was not answered are gaps."}
	f.curves = r.own(func(l *LoadTest) []stretch { return l.watch.medians(l.watch.latency, r.points()) })
	return r.draw(f)
}

func (r *Report) storeTimeFigure() Figure {
	f := overTime{id: "store-time", title: "Time to store an object", better: "lower is better", unit: "s", value: "time", each: true,
		reads: "From the call of the put that was accepted to its return, and to the sight of full redundancy where the system says so: the median of neighbouring objects, and the band of their middle half."}
	n := 0
	for i := range r.Loads {
		l := &r.Loads[i]
		for _, s := range []struct {
			name, colour string
			objects      []stored
		}{{"accepted", "var(--s1)", l.shelf.accepted}, {"durable", "var(--s3)", l.shelf.durable}} {
			var line []stretch
			for from, to := range chunks(len(s.objects), r.points()) {
				var took []float64
				for _, x := range s.objects[from:to] {
					if !math.IsNaN(x.took) {
						took = append(took, x.took)
					}
				}
				if e := quartiles(took); e.Value.Known() {
					line = append(line, stretch{s.objects[from].at, s.objects[to-1].at, float64(e.Value), float64(e.Lo), float64(e.Hi), l.session(s.objects[from].at)})
				}
			}
			if len(line) > 0 {
				f.curves = append(f.curves, curve{load: l, name: s.name, colour: s.colour, points: line})
				n += len(s.objects)
			}
		}
	}
	f.n = "n = " + plural(int64(n), "time of an object", "times of objects")
	r.limits(&f, (*LoadTest).storeLine, "a round trip, and the bytes of an object of the median size over the link until it has its full redundancy.")
	return r.draw(f)
}

// timeUnit is the unit of the axis from left to right.
func (r *Report) timeUnit() (name string, seconds float64) {
	longest := 0.0
	for _, l := range r.Loads {
		longest = max(longest, float64(l.Seconds))
	}
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

// draw makes a figure of its curves.
func (r *Report) draw(o overTime) Figure {
	if len(o.curves) == 0 {
		return Figure{}
	}
	longest, moves := 0, false
	for _, c := range o.curves {
		longest = max(longest, len(c.points))
		moves = moves || slices.ContainsFunc(c.points, func(p stretch) bool { return p.y != 0 })
	}
	n := o.n
	if n == "" {
		n = r.pollsBasis(o.curves)
	}
	if !moves {
		r.leaveOut(o.title, "all of it is 0 ("+n+")")
		return Figure{}
	}
	if longest < leastPoints {
		r.leaveOut(o.title, fmt.Sprintf("a course takes at least %d points; this has %d (%s)", leastPoints, longest, n))
		return Figure{}
	}
	f := Figure{ID: o.id, Title: o.title, Better: o.better, Reads: o.reads + fmt.Sprintf(readsTime, r.points()), N: n}
	unit, seconds := r.timeUnit()
	f.Table.Head = []Column{{"load test", false}, {"series", false}, {"from, " + unit, true}, {"to, " + unit, true}, {o.value, true}, {"low", true}, {"high", true}}
	var groups []string
	byGroup := map[string][]curve{}
	for _, c := range o.curves {
		key := r.shape.panel(c.load.info)
		if o.each {
			key = c.load.name()
		}
		if byGroup[key] == nil {
			groups = append(groups, key)
		}
		byGroup[key] = append(byGroup[key], c)
		mark := "line"
		switch {
		case c.dashed:
			mark = "dash"
		case o.stacked:
			mark = "bar"
		}
		if entry := (Legend{c.name, c.colour, mark}); !slices.Contains(f.Legend, entry) {
			f.Legend = append(f.Legend, entry)
		}
	}
	for _, key := range groups {
		title := key
		if !o.each {
			title = r.shape.names[key]
		} else if len(groups) == 1 {
			title = ""
		}
		f.Panels = append(f.Panels, r.panelOver(o, &f, title, byGroup[key], unit, seconds))
	}
	if o.each && len(f.Panels) > 2 {
		f.Choose = "load test"
	}
	return f
}

func (r *Report) panelOver(o overTime, f *Figure, title string, curves []curve, unit string, seconds float64) Panel {
	var rows, limits, rules []spec
	var names, colours []string
	top, bottom, end := 0.0, math.Inf(1), 0.0
	var values []float64
	seen := map[*LoadTest]bool{}
	for n, c := range curves {
		if !slices.Contains(names, c.name) {
			names, colours = append(names, c.name), append(colours, c.colour)
		}
		end = max(end, float64(c.load.Seconds))
		parts := map[int]int{}
		for _, p := range c.points {
			if !o.log || p.y > 0 {
				parts[p.part]++
			}
		}
		for _, p := range c.points {
			if o.log && !(p.y > 0) {
				continue
			}
			x := p.to
			if c.dashed || !o.stacked {
				x = (p.from + p.to) / 2
			}
			row := spec{"s": c.name, "l": fmt.Sprint(n, " ", p.part), "x": significant(x/seconds, 5), "y": significant(p.y, 5)}
			if p.lo != p.hi && !o.stacked && !c.dashed {
				row["lo"], row["hi"] = significant(p.lo, 4), significant(p.hi, 4)
				if math.IsInf(p.hi, 0) {
					row["hi"] = "∞"
				}
			}
			if parts[p.part] == 1 {
				row["alone"] = true // a line of one point is none
			}
			row["tip"] = fmt.Sprintf("%s, %s–%s %s: %s", c.name, digits(p.from/seconds, 3), digits(p.to/seconds, 3), unit, show(p.y, o.unit))
			values = append(values, p.y)
			if p.y > 0 {
				bottom = min(bottom, p.y)
			}
			if c.dashed {
				limits = append(limits, row)
			} else {
				rows = append(rows, row)
				f.Table.Rows = append(f.Table.Rows, []Entry{{Text: c.load.name(), Raw: c.load.name()}, {Text: c.name, Raw: c.name}, {Text: digits(p.from/seconds, 4), Raw: Plain(significant(p.from/seconds, 6))}, {Text: digits(p.to/seconds, 4), Raw: Plain(significant(p.to/seconds, 6))},
					number(Num(significant(p.y, 6)), o.unit), number(Num(significant(p.lo, 6)), o.unit), number(Num(significant(p.hi, 6)), o.unit)})
			}
		}
		if !seen[c.load] {
			seen[c.load] = true
			for _, m := range c.load.marks {
				rules = append(rules, spec{"kind": m.kind, "x": significant(m.at/seconds, 5), "tip": m.what})
			}
		}
	}
	if o.stacked {
		top = pile(rows)
	} else {
		top = slices.Max(values)
		// What a poll leaves open may reach far above all that was seen.
		for _, row := range rows {
			if hi, ok := row["hi"].(float64); ok {
				row["hi"] = min(hi, 1.5*top)
			} else if row["hi"] != nil {
				row["hi"] = 1.5 * top
			}
		}
		for _, row := range rows {
			if hi, ok := row["hi"].(float64); ok {
				top = max(top, hi)
			}
		}
	}
	least := min(0, slices.Min(values))
	y := spec{"field": "y", "type": "quantitative", "axis": r.valueAxis(o.unit, max(top, -least)), "scale": spec{"domain": []float64{least * 1.06, top * 1.06}, "nice": false, "clamp": true}}
	if o.log {
		y["axis"], y["scale"] = logAxis(o.unit), spec{"type": "log", "domain": []float64{bottom / 1.25, top * 1.25}, "nice": false, "clamp": true}
	}
	col := spec{"field": "s", "type": "nominal", "scale": spec{"domain": names, "range": colours}, "legend": nil}
	detail := spec{"field": "l", "type": "nominal"}
	tip := spec{"field": "tip", "type": "nominal"}
	layers := []spec{}
	alone := []spec{{"filter": "datum.alone"}}
	if o.stacked {
		layers = append(layers, spec{"mark": spec{"type": "area", "opacity": 0.85, "line": false}, "encoding": spec{"color": col, "detail": detail, "tooltip": tip,
			"y": spec{"field": "lo", "type": "quantitative"}, "y2": spec{"field": "hi"}}},
			spec{"transform": alone, "mark": spec{"type": "rule", "strokeWidth": 4, "opacity": 0.85}, "encoding": spec{"color": col, "tooltip": tip,
				"y": spec{"field": "lo", "type": "quantitative"}, "y2": spec{"field": "hi"}}})
	} else {
		layers = append(layers,
			spec{"transform": []spec{{"filter": "isValid(datum.lo)"}}, "mark": spec{"type": "area", "opacity": 0.2, "clip": true}, "encoding": spec{"color": col, "detail": detail, "y": spec{"field": "lo", "type": "quantitative"}, "y2": spec{"field": "hi"}}},
			spec{"mark": spec{"type": "line", "strokeWidth": 1.6, "clip": true}, "encoding": spec{"color": col, "detail": detail}},
			spec{"mark": spec{"type": "point", "filled": true, "size": 26, "opacity": 0.01}, "encoding": spec{"color": col, "tooltip": tip}},
			spec{"transform": alone, "mark": spec{"type": "point", "filled": true, "size": 26}, "encoding": spec{"color": col, "tooltip": tip}})
	}
	if len(limits) > 0 {
		layers = append(layers, spec{"data": spec{"values": limits}, "mark": spec{"type": "line", "strokeDash": []int{6, 4}, "strokeWidth": 1.5, "opacity": 0.8}, "encoding": spec{"color": col, "detail": detail, "tooltip": tip}})
	}
	layers = append(layers, markLayers(rules)...)
	label := f.Title
	if title != "" {
		label += ", " + title
	}
	return Panel{Title: title, Spec: spec{"$schema": vegaLite, "description": label, "data": spec{"values": rows},
		"encoding": spec{"x": spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, max(end/seconds, 1e-9)}, "nice": false}, "axis": spec{"title": unit + " since the test began", "grid": false, "tickCount": 6}}, "y": y},
		"layer":    layers}}
}

// pile puts the rows of one moment upon each other, in their order, and returns
// the highest. (Vega's own stacks would fill the gaps of a line.)
func pile(rows []spec) float64 {
	piles, top := map[float64]float64{}, 0.0
	for _, row := range rows {
		x := row["x"].(float64)
		row["lo"] = significant(piles[x], 6)
		piles[x] += row["y"].(float64)
		row["hi"] = significant(piles[x], 6)
		top = max(top, piles[x])
	}
	return top
}

// markLayers draw moments as vertical lines.
func markLayers(marks []spec) []spec {
	look := []struct {
		kind, colour string
		dash         []int
	}{{"session", "var(--soft)", []int{2, 3}}, {"fault", "var(--bad)", []int{1, 0}}, {"exit", "var(--ink)", []int{6, 4}}}
	var layers []spec
	for _, k := range look {
		var rows []spec
		for _, m := range marks {
			if m["kind"] == k.kind {
				rows = append(rows, m)
			}
		}
		if len(rows) > 0 {
			layers = append(layers, spec{"data": spec{"values": rows}, "mark": spec{"type": "rule", "color": k.colour, "strokeDash": k.dash, "strokeWidth": 1.2},
				"encoding": spec{"x": spec{"field": "x", "type": "quantitative"}, "y": spec{"value": 0}, "y2": spec{"value": "height"}, "tooltip": spec{"field": "tip", "type": "nominal"}}})
		}
	}
	return layers
}

// latencyBandwidthFigure asks whether the API is slow because much is uploaded.
func (r *Report) latencyBandwidthFigure() Figure {
	f := Figure{ID: "latency-bandwidth", Title: "API latency against bandwidth", Better: "for information", Legend: r.systemLegend(),
		Reads: fmt.Sprintf("Each mark is a stretch of time, of at most %d: its absolute bandwidth (file bandwidth where the system does not tell) and the median latency of its polls; pale marks are early, full ones late. Marks that rise to the right: the API is slow while much is uploaded. Marks that only get higher with time: it is not that.", r.points())}
	f.Table.Head = []Column{{"load test", false}, {"from", true}, {"bandwidth", true}, {"API latency", true}, {"polls", true}}
	colour, shape := r.systemScales()
	data := map[string][]spec{}
	tops, rights := map[string]float64{}, map[string]float64{}
	n := 0
	for i := range r.Loads {
		l := &r.Loads[i]
		file, line := l.rates(r.points())
		if len(line) == 0 {
			line = file
		}
		key := r.shape.panel(l.info)
		for _, p := range line {
			var took []float64
			for k := 0; k < len(l.watch.start); k++ {
				if at := l.watch.mid(k); at >= p.from && at <= p.to && !math.IsNaN(l.watch.latency[k]) {
					took = append(took, l.watch.latency[k])
				}
			}
			if len(took) == 0 || p.y < 0 {
				continue
			}
			n++
			y := middle(took)
			tops[key], rights[key] = max(tops[key], y), max(rights[key], p.y)
			data[key] = append(data[key], spec{"system": l.System, "x": significant(p.y, 4), "y": significant(y, 4), "age": significant(p.to/float64(l.Seconds), 3),
				"tip": fmt.Sprintf("%s, after %s: %s, %s", l.name(), span(p.from), show(p.y, "B/s"), show(y, "s"))})
			f.Table.Rows = append(f.Table.Rows, []Entry{{Text: l.name(), Raw: l.name()}, {Text: span(p.from), Raw: Plain(significant(p.from, 6))}, number(Num(significant(p.y, 6)), "B/s"), number(Num(significant(y, 6)), "s"), integer(len(took))})
		}
	}
	if n < leastPoints {
		if n > 0 {
			r.leaveOut(f.Title, fmt.Sprintf("it takes at least %d stretches of polls that tell both; there is no more than %d", leastPoints, n))
		}
		return Figure{}
	}
	f.N = "n = " + plural(int64(n), "stretch of polls", "stretches of polls")
	for _, key := range r.shape.groups {
		if len(data[key]) == 0 {
			continue
		}
		if rights[key] == 0 {
			r.leaveOut(strings.TrimSuffix(f.Title+", "+r.shape.names[key], ", "), "no byte came while it was watched: there is no bandwidth that the latency could be held against")
			continue
		}
		x := r.valueAxis("B/s", rights[key])
		_, suffix := quantity(rights[key], "B/s")
		f.Panels = append(f.Panels, Panel{Title: r.shape.names[key], key: key, Spec: spec{"$schema": vegaLite, "description": f.Title, "data": spec{"values": data[key]},
			"mark": spec{"type": "point", "filled": true, "size": 26},
			"encoding": spec{"x": spec{"field": "x", "type": "quantitative", "scale": spec{"domain": []float64{0, max(rights[key], 1e-9) * 1.04}, "nice": false}, "axis": spec{"title": "bandwidth, " + suffix, "grid": false, "tickCount": 6, "labelExpr": x["labelExpr"]}},
				"y":       spec{"field": "y", "type": "quantitative", "scale": spec{"domain": []float64{0, tops[key] * 1.06}, "nice": false}, "axis": r.valueAxis("s", tops[key])},
				"color":   spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil},
				"shape":   spec{"field": "system", "type": "nominal", "scale": shape, "legend": nil},
				"opacity": spec{"field": "age", "type": "quantitative", "scale": spec{"domain": []float64{0, 1}, "range": []float64{0.2, 1}}, "legend": nil},
				"tooltip": spec{"field": "tip", "type": "nominal"}}}})
	}
	return f
}
