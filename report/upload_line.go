package report

import (
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/system"
)

// spread is what of the bytes on the link the file's own are at most, n/k of the
// code that the client applies; 1 where none is known, for every byte crosses once.
func (l *LoadTest) spread() float64 {
	if !l.coding.known() {
		return 1
	}
	return float64(l.coding.servers) / float64(l.coding.needed)
}

// fileLine is the most file bytes a second that the link carries. Padding is not
// in it, for small objects may be stored together.
func (l *LoadTest) fileLine() Num { return l.link["bandwidth_line"] / Num(l.spread()) }

// fileLineShare is what of its line was reached over the whole test. What was accepted
// need not have crossed the link: where objects are seen to come to their full
// redundancy, those that did count, until the last of them did; where none does, only
// acceptances that the link could have carried.
func (l *LoadTest) fileLineShare() Num {
	line := l.fileLine()
	if !l.shelf.settled {
		if share := l.FileRate.Value / line; share <= 1 {
			return share
		}
		return unknown
	}
	bytes, last := 0.0, math.Inf(-1)
	for _, s := range l.shelf.durable {
		bytes, last = bytes+float64(s.size), max(last, s.at)
	}
	if l.shelf.sparse {
		bytes, last = float64(l.shelf.fullBytes), l.shelf.fullAt
	}
	from := l.began()
	if !(last > from) {
		return unknown
	}
	return Num(bytes/(last-from)) / line
}

// arrivedShare is what of its line surely arrived at the servers: their growth from
// the last poll before the first put to the first after the last acceptance, over the
// longest that it can have taken. Of it no more than the file's own bytes count, where
// what else is there may be of the servers' making. Unknown where no two such polls
// tell it.
func (l *LoadTest) arrivedShare() Num {
	w, from := l.watch, l.began()
	v := w.values[system.ReadAbsolute]
	before, after := -1, -1
	_, to := l.storing()
	for i, x := range v {
		switch {
		case math.IsNaN(x):
		case w.end[i] <= from:
			before = i
		case w.start[i] >= to && after < 0:
			after = i
		}
	}
	if before < 0 || after < 0 {
		return unknown
	}
	arrived := v[after] - v[before]
	if !l.absoluteLine().Known() {
		arrived = min(arrived, float64(l.Bytes))
	}
	return Num(arrived/(w.end[after]-from)) / l.link["bandwidth_line"]
}

// leastCarried is for how long, in seconds, a link must have been needed for what was
// stored, to be held against it: a token bucket lets a first burst through, and what
// is in the queues when a put returns has not arrived.
const leastCarried = 1

// beyondLoadLine looks for load tests that stored what their links cannot carry.
func beyondLoadLine(r *Report) []Finding {
	var arrived, accepted []findings.Lined
	for _, c := range r.cells() {
		lined := func(measure string) findings.Lined { return c.lined(r.shape.named(c), measure) }
		full, seen, taken := lined("file bytes at their full redundancy"), lined("bytes seen on the servers"), lined("file bandwidth")
		for i := range r.Loads {
			l := &r.Loads[i]
			if l.info != c || !r.validTrial(l.Trial) || !(l.Bytes/l.link["bandwidth_line"] >= leastCarried) {
				continue
			}
			share := l.fileLineShare()
			if l.shelf.settled && share.Known() {
				full.Shares = append(full.Shares, float64(share))
			}
			there := l.arrivedShare()
			if there.Known() {
				seen.Shares = append(seen.Shares, float64(there))
			}
			if share := l.FileRate.Value / l.fileLine(); share.Known() && !l.shelf.settled && !(there > 1) {
				taken.Shares = append(taken.Shares, float64(share))
			}
		}
		arrived, accepted = append(arrived, full, seen), append(accepted, taken)
	}
	return append(findings.Beyond(arrived), findings.AcceptedBeyond(accepted)...)
}

// validTrial reports whether a trial counts.
func (r *Report) validTrial(id int64) bool {
	for i := range r.Trials {
		if r.Trials[i].ID == id {
			return r.Trials[i].Valid()
		}
	}
	return false
}

// absoluteLine is likewise that of the servers' bytes. Redundancy that servers make
// among themselves does not cross the client's link, so it takes a code that is
// known to be the client's.
func (l *LoadTest) absoluteLine() Num {
	if !l.coding.known() {
		return unknown
	}
	return l.link["bandwidth_line"]
}

// storeLine is the least time in which an object of the median size can be at its
// full redundancy.
func (l *LoadTest) storeLine() Num {
	var sizes []float64
	for _, s := range l.shelf.accepted {
		sizes = append(sizes, float64(s.size))
	}
	if len(sizes) == 0 {
		return unknown
	}
	line := 0.0
	if rate := float64(l.link["bandwidth_line"]); rate > 0 {
		line = middle(sizes) * l.spread() / rate
	}
	if wait := float64(l.link["wait_line"]); wait > 0 {
		line += wait
	}
	if line <= 0 {
		return unknown
	}
	return Num(line)
}

// outOfSight is how far above all that was measured a load line is told and not
// drawn: it would press everything else to the foot of the picture.
const outOfSight = 20

// limits adds the load lines of a figure over time; words say what they are.
func (r *Report) limits(f *overTime, of func(*LoadTest) Num, words string) {
	seen, drawn, most := map[*LoadTest]bool{}, false, 0.0
	for _, c := range f.curves {
		for _, p := range c.points {
			most = max(most, p.y)
		}
	}
	var above []string
	for _, c := range slices.Clone(f.curves) {
		y := float64(of(c.load))
		if seen[c.load] || math.IsNaN(y) || len(c.points) == 0 {
			continue
		}
		seen[c.load] = true
		if y > outOfSight*most {
			above = append(above, c.load.name()+": "+show(y, f.unit))
			continue
		}
		drawn = true
		var line []stretch
		for _, at := range []float64{c.points[0].from, c.points[len(c.points)-1].to} {
			line = append(line, stretch{at, at, y, y, y, 0})
		}
		name, colour := c.name+", load line", c.colour
		if f.each {
			name, colour = "load line", "var(--ink)"
		}
		f.curves = append(f.curves, curve{load: c.load, name: name, colour: colour, points: line, dashed: true})
	}
	switch {
	case drawn:
		f.reads += " The dashed line is the load line: " + words
	case above != nil:
		f.reads += " The load line is far above the picture (" + some(above) + "): " + words
	}
}

// loadLineWords is the paragraph on the load lines of a load test.
func (r *Report) loadLineWords() string {
	var parts []string
	for i := range r.Loads {
		l := &r.Loads[i]
		line := l.fileLine()
		if !line.Known() {
			continue
		}
		words := l.name() + ": " + show(float64(line), "B/s")
		if share := l.fileLineShare(); share.Known() {
			words += ", reached were " + percent(float64(share)) + " of it over the whole test, by " + map[bool]string{true: "objects at their full redundancy", false: "objects that were accepted"}[l.shelf.settled]
		}
		parts = append(parts, words)
	}
	var s string
	if parts != nil {
		s = "The load line of the file bandwidth is what the link between the client and the system carries, as measured before the test, divided by the redundancy that the client makes where its code is known (" + some(parts) + "). "
	}
	if at := r.efficiencyLines(); at != "" {
		s += "That of the efficiency is what padding to whole sectors and the wanted redundancy leave at most: " + at + ". "
	}
	if s != "" && parts == nil {
		s += "The bandwidth has none. " + r.whyNoLine()
	}
	return strings.TrimSpace(s)
}

// efficiencyLines are where the load lines of the efficiency lie.
func (r *Report) efficiencyLines() string {
	lo, hi := unknown, unknown
	for i := range r.Loads {
		if e := r.Loads[i].Efficiency; e != nil && e.Line.Known() {
			lo, hi = least(lo, float64(e.Line)), highest(hi, float64(e.Line))
		}
	}
	switch {
	case !lo.Known():
		return ""
	case hi <= lo*1.02:
		return tiny(lo).Text
	}
	return tiny(lo).Text + " to " + tiny(hi).Text
}

// lineEntry is a load line with the share that was reached of it.
func lineEntry(line, share Num, unit string) Entry {
	e := number(line, unit)
	if line.Known() && share.Known() {
		e.Note = percent(float64(share)) + " of it"
	}
	return e
}

// watchedLineWords is the paragraph of polls alone.
func (r *Report) watchedLineWords() string {
	s := "Nothing is moved here, so that no time and no rate has a line: calls of the API are answered on the machine of the system."
	if at := r.efficiencyLines(); at != "" {
		s += " The efficiency has one, what padding to whole sectors and the wanted redundancy leave at most: " + at + "."
	}
	return s
}
