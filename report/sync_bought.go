package report

import (
	"slices"

	"github.com/plimsoll-project/plimsoll/stats"
)

// gainConfidence is that of the interval of what the best configuration gains: it is named in every report, so of those in which no knob does
// anything fewer than one in a hundred may praise one.
const gainConfidence = 0.99

// compareBest fills the best configuration, its gain over the default, and what
// cannot be told from it. Cells with a trial that never came to serve are not
// considered: their other trials would flatter them.
func (r *Report) compareBest(t *Tuning, factors []stats.FactorialFactor, obs []stats.FactorialObs) {
	best, err := stats.Best(factors, obs, Confidence)
	if err != nil {
		t.Warnings = append(t.Warnings, "configurations could not be compared: "+err.Error())
		return
	}
	at := func(levels []int) *Cell {
		if s := t.cellAt(levels); s != nil {
			return s.cell
		}
		return nil
	}
	// The lowest is the one that all are compared with.
	for _, c := range best.Cells {
		if c.Ratio.Lo == 1 && c.Ratio.Hi == 1 {
			t.best = at(c.Levels)
		}
	}
	if t.best == nil {
		return
	}
	t.Best = t.best.ID
	for _, c := range best.Cells {
		cell := at(c.Levels)
		if !c.Tied || cell == nil || cell == t.best {
			continue
		}
		a := AsGood{Cell: cell.ID, Changed: r.changed(cell), Changes: len(r.changes(cell)),
			Ratio: Ratio{N: c.N, Value: Num(c.Ratio.Mid), Lo: Num(c.Ratio.Lo), Hi: Num(c.Ratio.Hi), Confidence: c.Ratio.Conf, P: Num(c.P), PHolm: Num(c.P), Warn: c.Ratio.Warn}}
		if !c.Ratio.Bounded() {
			a.Ratio.Lo, a.Ratio.Hi = unknown, unknown
		}
		t.Alike = append(t.Alike, a)
	}
	slices.SortStableFunc(t.Alike, func(a, b AsGood) int { return a.Changes - b.Changes })
	if t.base == nil || t.base == t.best {
		return
	}
	g, err := stats.BestGain(factors, obs, gainConfidence)
	if err != nil {
		t.Warnings = append(t.Warnings, "the best could not be compared with the default: "+err.Error())
		return
	}
	if at(g.To) != t.best {
		return // never seen: both take the lowest mean
	}
	for _, w := range append(best.Warnings, g.Warnings...) {
		if !slices.Contains(t.Warnings, w) {
			t.Warnings = append(t.Warnings, w)
		}
	}
	t.gain = ratioFrom(g.Ratio)
	pairs, _, _ := paired(t.best.Metrics[r.headline], t.base.Metrics[r.headline])
	t.gain.N = len(pairs)
	t.Gain = &t.gain
	for _, c := range best.Cells {
		if at(c.Levels) == t.base {
			t.before = Num(c.Value)
		}
	}
	t.after = t.before * t.gain.Value
}

// ratioFrom is an interval of a ratio as a Ratio; it is shown when it excludes 1.
func ratioFrom(i stats.Interval) Ratio {
	q := Ratio{N: i.N, Value: Num(i.Mid), Lo: Num(i.Lo), Hi: Num(i.Hi), Confidence: i.Conf, P: unknown, PHolm: unknown, Warn: i.Warn}
	if !i.Bounded() {
		q.Lo, q.Hi, q.Confidence = unknown, unknown, 0
		return q
	}
	q.Shown = q.Lo > 1 || q.Hi < 1
	if q.Shown {
		q.Better = 1
		if q.Value > 1 {
			q.Better = -1
		}
	}
	return q
}
