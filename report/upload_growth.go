package report

import (
	"math"

	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// Growth says how something changes during a load test: the last quarter against the first.
type Growth struct {
	What   string   `json:"what"` // "API latency"
	Unit   string   `json:"unit"`
	N      int      `json:"n"`      // polls, objects, or stretches of time
	First  Estimate `json:"first"`  // median of the first quarter
	Last   Estimate `json:"last"`   // of the last
	Change Estimate `json:"change"` // last over first, less 1
	Slope  Estimate `json:"slope"`  // per hour
	Shown  bool     `json:"shown"`  // the intervals of change and slope both exclude 0
}

// Points that a growth is judged by. Neighbours depend on each other, so they are
// reduced to medians of as many blocks, six to a quarter: fewer have no interval of 95 %.
// Of fewer points than leastGrowth a block would be as dependent on the next as they are.
const (
	growthPoints = 50_000
	growthRates  = 200
	growthBlocks = 24
	leastGrowth  = 5 * growthBlocks
)

// progressed is a series in the order of time.
type progressed struct {
	what, unit string
	at, y      []float64 // seconds, values
}

// grow judges all series of a load test.
func (l *LoadTest) grow() {
	for _, s := range l.courses() {
		if len(s.y) >= leastGrowth {
			l.Growth = append(l.Growth, s.growth())
		}
	}
}

func (s progressed) growth() Growth {
	var hours, y []float64
	for b := range growthBlocks {
		from, to := b*len(s.y)/growthBlocks, (b+1)*len(s.y)/growthBlocks
		hours, y = append(hours, stats.Median(s.at[from:to])/3600), append(y, stats.Median(s.y[from:to]))
	}
	const quarter = growthBlocks / 4
	first, last := y[:quarter], y[growthBlocks-quarter:]
	g := Growth{What: s.what, Unit: s.unit, N: len(s.y), First: estimateOf(stats.MedianCI(first, Confidence)), Last: estimateOf(stats.MedianCI(last, Confidence)),
		Slope: estimateOf(stats.Slope(hours, y, Confidence))}
	ratio := estimateOf(stats.Ratio(last, first, Confidence))
	g.Change = Estimate{ratio.Value - 1, ratio.Lo - 1, ratio.Hi - 1}
	g.Shown = g.Change.Lo > 0 && g.Slope.Lo > 0 || g.Change.Hi < 0 && g.Slope.Hi < 0
	return g
}

// courses are the series that may grow: the latency of the API, altogether and
// by call, the time to store an object, the bandwidths and the efficiency.
func (l *LoadTest) courses() []progressed {
	w := l.watch
	all := []progressed{l.polled("API latency", "s", w.latency)}
	if len(w.calls) > 1 {
		for _, c := range w.calls {
			all = append(all, l.polled("latency of "+c, "s", w.took[c]))
		}
	}
	all = append(all, l.timed("time to store an object", l.shelf.accepted), l.timed("time to full redundancy", l.shelf.durable))
	file, absolute := l.rates(growthRates)
	from, to := l.storing()
	for _, r := range []struct {
		what string
		line []stretch
	}{{"file bandwidth", file}, {"absolute bandwidth", absolute}} {
		p := progressed{what: r.what, unit: "B/s"}
		for _, b := range r.line {
			if b.from >= from && b.to <= to {
				p.add((b.from+b.to)/2, b.y)
			}
		}
		all = append(all, p)
	}
	p := progressed{what: "storage efficiency", unit: "ratio"}
	for _, b := range l.efficiencies(growthPoints) {
		p.add(b.to, b.y)
	}
	return append(all, p)
}

// storing is the time from the first put to the last acceptance: before and
// after it no bandwidth is wanted. Of a system that is only watched it is that
// in which something came in: nobody knows that more was to come.
func (l *LoadTest) storing() (from, to float64) {
	n := len(l.shelf.accepted)
	if n == 0 && l.info.plan.Upload == nil {
		return l.watch.moved(system.ReadFileBytes, system.ReadAbsolute)
	}
	if n == 0 {
		return 0, math.Inf(1)
	}
	return l.began(), l.shelf.lastAccepted()
}

// moved is the time in which any of some readings changed, from the middle of the
// last poll before to that of the first after; all of it, if none did.
func (w *watch) moved(names ...string) (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, name := range names {
		before, v := -1, w.values[name]
		for i := range v {
			if math.IsNaN(v[i]) {
				continue
			}
			if before >= 0 && v[i] != v[before] {
				from, to = min(from, w.mid(before)), max(to, w.mid(i))
			}
			before = i
		}
	}
	if from > to {
		return 0, math.Inf(1)
	}
	return from, to
}

func (p *progressed) add(at, y float64) {
	if !math.IsNaN(y) && !math.IsInf(y, 0) {
		p.at, p.y = append(p.at, at), append(p.y, y)
	}
}

// polled is a series of polls; of more than are judged, medians of neighbours.
func (l *LoadTest) polled(what, unit string, v []float64) progressed {
	p := progressed{what: what, unit: unit}
	var known []int
	for i, y := range v {
		if !math.IsNaN(y) {
			known = append(known, i)
		}
	}
	for from, to := range chunks(len(known), growthPoints) {
		var y []float64
		for _, i := range known[from:to] {
			y = append(y, v[i])
		}
		mid := known[(from+to)/2]
		p.add((l.watch.start[mid]+l.watch.end[mid])/2, middle(y))
	}
	return p
}

// timed likewise of objects.
func (l *LoadTest) timed(what string, objects []stored) progressed {
	p := progressed{what: what, unit: "s"}
	for from, to := range chunks(len(objects), growthPoints) {
		var y []float64
		for _, s := range objects[from:to] {
			if !math.IsNaN(s.took) {
				y = append(y, s.took)
			}
		}
		if len(y) > 0 {
			p.add(objects[(from+to)/2].at, middle(y))
		}
	}
	return p
}
