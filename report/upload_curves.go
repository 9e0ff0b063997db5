package report

import (
	"iter"
	"math"

	"github.com/plimsoll-project/plimsoll/system"
)

// stretch is a part of a line in a figure: what was so between two moments.
type stretch struct {
	from, to  float64 // seconds since the test began
	y, lo, hi float64
	part      int // of the line: another one after each gap
}

// gapPolls is the number of polls in a row that may be missing before a line is
// broken.
const gapPolls = 3

// chunks divides n things in their order into at most so many parts of nearly
// the same size.
func chunks(n, most int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		parts := min(n, most)
		for i := range parts {
			if !yield(i*n/parts, (i+1)*n/parts) {
				return
			}
		}
	}
}

// pair is two polls that a part of a line rests on.
type pair struct{ i, j, part int }

// pairs divides the polls at which a series is known into stretches of about
// the same time, at most so many, none of which reaches over a gap. Polls that
// did not ask for the series are none.
func (w *watch) pairs(v []float64, most int) []pair {
	var known []int
	var since []float64 // longest time without a poll that was answered, before each of known
	longest, latest := 0.0, 0.0
	for i, x := range v {
		rests := i < len(w.resting) && w.resting[i]
		if math.IsNaN(x) && !rests {
			continue
		}
		longest, latest = max(longest, w.start[i]-latest), w.end[i]
		if !math.IsNaN(x) {
			known, since, longest = append(known, i), append(since, longest), 0
		}
	}
	if len(known) < 2 {
		return nil
	}
	width := (w.end[known[len(known)-1]] - w.start[known[0]]) / float64(most)
	gap := gapPolls * max(w.every(), middle(w.spans()))
	var all []pair
	i, part, begun := known[0], 0, false
	emit := func(j int, whole bool) {
		if j > i && (whole || !begun || w.start[j]-w.start[i] >= width/2) {
			all = append(all, pair{i, j, part})
			begun = true
		}
	}
	for n := 1; n < len(known); n++ {
		k, before := known[n], known[n-1]
		switch {
		case since[n] > gap:
			emit(before, false)
			i, begun, part = k, false, part+1
		case w.start[k]-w.start[i] >= width:
			emit(k, true)
			i = k
		}
	}
	emit(known[len(known)-1], false)
	return all
}

// spans are how long the polls took.
func (w *watch) spans() []float64 {
	var d []float64
	for i := range w.start {
		d = append(d, w.end[i]-w.start[i])
	}
	return d
}

func (w *watch) mid(i int) float64 { return (w.start[i] + w.end[i]) / 2 }

// levels are a series' values: the last of each stretch, with the lowest and
// the highest in it.
func (w *watch) levels(v []float64, most int) []stretch {
	return w.lines(v, most, func(values []float64) float64 { return values[len(values)-1] })
}

// medians likewise, with the median of each stretch.
func (w *watch) medians(v []float64, most int) []stretch { return w.lines(v, most, middle) }

func (w *watch) lines(v []float64, most int, stand func([]float64) float64) []stretch {
	var all []stretch
	for _, p := range w.pairs(v, most) {
		var values []float64
		lo, hi := math.Inf(1), math.Inf(-1)
		for k := p.i; k <= p.j; k++ {
			if !math.IsNaN(v[k]) {
				values = append(values, v[k])
				lo, hi = min(lo, v[k]), max(hi, v[k])
			}
		}
		all = append(all, stretch{w.mid(p.i), w.mid(p.j), stand(values), lo, hi, p.part})
	}
	return all
}

// rates are the file and the absolute bandwidth over time. What is stored is
// known by the objects; what the servers hold only by polls, of which each saw
// it at some moment between its start and its end.
func (l *LoadTest) rates(most int) (file, absolute []stretch) {
	w := l.watch
	of := func(v []float64) []stretch {
		var all []stretch
		for _, p := range w.pairs(v, most) {
			rate, lo, hi := w.rate(v, p.i, p.j)
			all = append(all, stretch{w.mid(p.i), w.mid(p.j), rate, lo, hi, p.part})
		}
		return all
	}
	absolute = of(w.values[system.ReadAbsolute])
	if l.info.plan.Upload == nil {
		return of(w.values[system.ReadFileBytes]), absolute
	}
	for _, p := range w.pairs(w.start, most) {
		from, to := w.mid(p.i), w.mid(p.j)
		_, before := l.shelf.by(from)
		_, after := l.shelf.by(to)
		rate := (after - before) / (to - from)
		file = append(file, stretch{from, to, rate, rate, rate, p.part})
	}
	return file, absolute
}

// efficiencies are file bytes / absolute bytes over time, both since the test
// began.
func (l *LoadTest) efficiencies(most int) []stretch {
	w := l.watch
	v := w.values[system.ReadAbsolute]
	first, _ := edge(v)
	if first < 0 {
		return nil
	}
	base := 0.0
	if !l.fresh() {
		base = v[first]
	}
	var all []stretch
	for _, p := range w.pairs(v, most) {
		absolute := v[p.j] - base
		lo, hi := l.fileBytes(p.j)
		if absolute > 0 && hi > 0 {
			all = append(all, stretch{w.mid(p.i), w.mid(p.j), (lo + hi) / 2 / absolute, lo / absolute, hi / absolute, p.part})
		}
	}
	return all
}

// fileBytes are the bytes stored at the start and at the end of a poll.
func (l *LoadTest) fileBytes(poll int) (lo, hi float64) {
	w := l.watch
	if l.info.plan.Upload == nil {
		v, _ := latestAt(w.values[system.ReadFileBytes], poll)
		return v, v
	}
	_, lo = l.shelf.by(w.start[poll])
	_, hi = l.shelf.by(w.end[poll])
	return lo, hi
}
