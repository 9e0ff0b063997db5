package report

import (
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// Growth says how something changes with files, bytes or time.
type Growth struct {
	What    string   `json:"what"`    // "API latency"
	Against string   `json:"against"` // "files", "bytes" or "hours"
	Unit    string   `json:"unit"`
	N       int      `json:"n"` // polls, objects, or stretches of time
	Class   string   `json:"class"`
	Best    string   `json:"best"` // also when the class is unclear
	Second  string   `json:"second"`
	Fits    bool     `json:"fits"`   // the best class describes it
	Level   Num      `json:"level"`  // as fitted, where no growth is shown
	First   Num      `json:"first"`  // else: at the beginning
	Last    Num      `json:"last"`   // and at the end
	Change  Estimate `json:"change"` // relative, from the beginning to the end; where no growth is shown, only what is not excluded
	Shown   bool     `json:"shown"`  // it changes, and the interval of the change excludes 0
	Why     string   `json:"why"`
}

// Cause says which of files, bytes and time explains a change.
type Cause struct {
	What    string   `json:"what"`
	By      []string `json:"by"`
	Told    bool     `json:"told"`
	Why     string   `json:"why"`
	Effects []Effect `json:"effects"`
}

// Effect is what one quantity does, the others held.
type Effect struct {
	Name  string   `json:"name"`
	Slope Estimate `json:"slope"`
	Moves Estimate `json:"moves"`
	P     Num      `json:"p"`
}

// Points that a growth is judged by. Polls and objects are given as they are, as
// far as memory allows: what one slow answer does, and that neighbours are alike,
// is package stats' to judge. Rates are of stretches of time, since what is stored
// comes in pieces, and most of the time between two polls may bring none.
const (
	growthPoints = 50_000
	growthRates  = 200
	leastGrowth  = 12
)

// against are the quantities that something may grow with.
var against = []string{"files", "bytes", "hours"}

// progressed is a series beside what it may grow with, in the order of time.
type progressed struct {
	what, unit string
	y          []float64
	x          [3][]float64
}

// grow judges all series of a load test.
func (l *LoadTest) grow() {
	for _, s := range l.courses() {
		if len(s.y) < leastGrowth {
			continue
		}
		for i, name := range against {
			g, ok := growthOf(s, i, name)
			if !ok {
				continue
			}
			l.Growth = append(l.Growth, g)
		}
	}
	if l.designed() {
		for _, s := range l.quiet() {
			l.attribute(s)
		}
	}
}

// quiet are the series that tell what a designed experiment raised has done: the
// times of the probes, and the polls while nothing else was under way.
func (l *LoadTest) quiet() []progressed {
	took := progressed{what: "time to store an object", unit: "s"}
	for _, p := range l.phases {
		for _, s := range l.shelf.accepted {
			if s.at > p.to && s.at <= p.probed {
				took.add(l, s.at, s.took)
			}
		}
	}
	all := []progressed{l.quietPolls("API latency", l.watch.latency)}
	if len(l.watch.calls) > 1 {
		for _, c := range l.watch.calls {
			all = append(all, l.quietPolls("latency of "+c, l.watch.took[c]))
		}
	}
	return append(all, took)
}

func (l *LoadTest) quietPolls(what string, v []float64) progressed {
	p := progressed{what: what, unit: "s"}
	for i, y := range v {
		for _, phase := range l.phases {
			from := phase.to
			if phase.what == "idle" {
				from = phase.from
			}
			if l.watch.start[i] >= from && l.watch.end[i] <= phase.probed {
				p.add(l, l.watch.mid(i), y)
				break
			}
		}
	}
	return p
}

// around is an estimate whose middle is known better.
func (e Estimate) around(v float64) Estimate { return Estimate{Num(v), e.Lo, e.Hi} }

func (l *LoadTest) designed() bool {
	return l.info.plan.Upload != nil && l.info.plan.Upload.Attribution
}

func growthOf(s progressed, i int, name string) (Growth, bool) {
	x := s.x[i]
	if len(x) != len(s.y) || slices.Max(x) == slices.Min(x) {
		return Growth{}, false
	}
	fit, err := stats.Growth(x, s.y)
	if err != nil {
		return Growth{}, false
	}
	g := Growth{What: s.what, Against: name, Unit: s.unit, N: len(s.y), Class: string(fit.Class), Best: string(fit.Best), Second: string(fit.Second), Fits: fit.Fits, Why: fit.Why,
		Level: unknown, First: unknown, Last: unknown, Change: estimateOf(fit.PerX)}
	switch {
	case fit.Best == "": // too few points
		g.Change = noEstimate
	case !fit.Fits:
		g.ends(s.y)
	case fit.Best == stats.Constant:
		// The change is that of a line, which is no better than the level.
		g.Level, g.Change.Value = Num(fit.At(fit.X0)), unknown
	default:
		g.First, g.Last = Num(fit.At(slices.Min(x))), Num(fit.At(slices.Max(x)))
		g.Shown = g.bounded() && (g.Change.Lo > 0 || g.Change.Hi < 0)
	}
	return g, true
}

// ends takes what no class describes by its first and its last tenth: their
// medians, and as the range of the change what the middle halves of both allow.
func (g *Growth) ends(y []float64) {
	n := max(len(y)/10, 5)
	first, last := quartiles(y[:n]), quartiles(y[len(y)-n:])
	g.First, g.Last, g.Change = first.Value, last.Value, noEstimate
	if !(first.Lo > 0) {
		return
	}
	g.Change = Estimate{last.Value/first.Value - 1, last.Lo/first.Hi - 1, last.Hi/first.Lo - 1}
	g.Shown = g.Change.Lo > 0 || g.Change.Hi < 0
}

func (g *Growth) bounded() bool { return g.Change.Lo.Known() && g.Change.Hi.Known() }

// attribute asks which quantity explains a series of a designed experiment.
func (l *LoadTest) attribute(s progressed) {
	var names []string
	var x [][]float64
	for i, name := range against {
		if len(s.y) > 0 && slices.Max(s.x[i]) > slices.Min(s.x[i]) {
			names, x = append(names, name), append(x, s.x[i])
		}
	}
	if len(names) == 0 {
		return
	}
	a, err := stats.Attribute(s.y, names, x)
	if err != nil {
		return
	}
	c := Cause{What: s.what, By: append([]string{}, a.By...), Told: a.Told, Why: a.Why, Effects: []Effect{}}
	for _, e := range a.Effects {
		c.Effects = append(c.Effects, Effect{Name: e.Name, Slope: estimateOf(e.Interval).around(e.Slope), Moves: estimateOf(e.Moves), P: Num(e.P)})
	}
	l.Attribution = append(l.Attribution, c)
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
				p.add(l, (b.from+b.to)/2, b.y)
			}
		}
		all = append(all, p)
	}
	p := progressed{what: "storage efficiency", unit: "ratio"}
	for _, b := range l.efficiencies(growthPoints) {
		p.add(l, b.to, b.y)
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

func (p *progressed) add(l *LoadTest, at, y float64) {
	files, bytes := l.progress(at)
	if math.IsNaN(y) || math.IsInf(y, 0) || math.IsNaN(files) {
		return
	}
	p.y = append(p.y, y)
	for i, v := range []float64{files, bytes, at / 3600} {
		p.x[i] = append(p.x[i], v)
	}
}

// progress is how many files and bytes are stored at a moment.
func (l *LoadTest) progress(at float64) (files, bytes float64) {
	if l.info.plan.Upload != nil {
		n, b := l.shelf.by(at)
		return float64(n), b
	}
	i, _ := slices.BinarySearch(l.watch.end, at)
	files, f := latestAt(l.watch.values[system.ReadFiles], i)
	bytes, b := latestAt(l.watch.values[system.ReadFileBytes], i)
	if f < 0 || b < 0 {
		return 0, 0
	}
	return files, bytes
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
		p.add(l, (l.watch.start[mid]+l.watch.end[mid])/2, middle(y))
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
			p.add(l, objects[(from+to)/2].at, middle(y))
		}
	}
	return p
}
