package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Shape is how the time to serve goes with a knob that is a number.
type Shape struct {
	Knob   string
	Where  string // system, conditions, other knobs; empty: there is one of each
	Unit   string
	Shape  string  // as package stats has it
	Why    string  // in words
	Lowest float64 // the level with the least time
	// Levels that cannot be told from it.
	From, To float64
	Levels   []Level
}

// Level is one level of the knob.
type Level struct {
	Name         string
	At           float64
	Left, Trials int  // of them, those whose node never came to serve
	Shown        bool // to fail more often than where all served: it was compared
}

// shapeAlpha is the level at which nodes are shown to fail, for all levels together:
// that of the intervals of the shape.
const shapeAlpha = 0.05

// ShowFailing marks the levels at which nodes are shown to fail more often than where
// every node came to serve, and counts them: Fisher's exact test, one-sided, of their
// trials against all of those, corrected for the number of levels. No time can tell
// it: such a trial is longer than any.
func ShowFailing(levels []Level) (n int) {
	whole, some := 0, 0
	for _, l := range levels {
		if l.Left == 0 {
			whole += l.Trials
		} else {
			some++
		}
	}
	for i := range levels {
		if l := &levels[i]; l.Left > 0 {
			if l.Shown = stats.AllAmong(l.Left, l.Trials, whole)*float64(some) <= shapeAlpha; l.Shown {
				n++
			}
		}
	}
	return n
}

// ShapeOf joins what the times of a fit show with where nodes are shown to fail: an end
// of the range at which they do is worse than any that was compared.
func ShapeOf(fit stats.ShapeFit, levels []Level, unit string) (shape, why string) {
	first, last := fit.Levels[0], fit.Levels[len(fit.Levels)-1]
	below, above := false, false
	for _, l := range levels {
		if l.Shown {
			below, above = below || l.At < first.At, above || l.At > last.At
		}
	}
	if !below && !above {
		return fit.Shape, fit.Why
	}
	value := func(v float64) string { return words.Exact(v, unit) }
	end := func(fails bool, l stats.ShapeLevel, side string) string {
		switch {
		case fails:
			return "nodes are shown not to serve " + side + " " + value(l.At)
		case !l.Tied:
			return fmt.Sprintf("%.3g times (at least %.3g times) as much at %s as at %s", l.Ratio.Mid, l.Ratio.Lo, value(l.At), value(fit.Levels[fit.Lowest].At))
		}
		return value(l.At) + " is not shown to be worse than the best"
	}
	why = end(below, first, "below") + ", " + end(above, last, "above")
	switch less, more := below || !first.Tied, above || !last.Tied; {
	case less && more:
		return stats.UShape, why
	case less:
		return stats.FallingShape, why
	}
	return stats.RisingShape, why
}

// ShapeFound says how the time goes with numbers.
func ShapeFound(all []Shape) []Finding {
	f := Finding{Rule: "shape", Tone: Neutral, Title: "Knobs that are numbers",
		Text: "How the time to serve goes with each, the other knobs as named or at their default. A U is said only when both ends are shown to be worse than a level between them, corrected for the number of levels. A level at which nodes never came to serve is worse than any time when that is shown to happen more often than at the levels where all did; else it is in no shape."}
	for i := range all {
		s := &all[i]
		where := s.Where
		if where != "" {
			where = " (" + where + ")"
		}
		text := fmt.Sprintf("%s%s: %s; %s", s.Knob, where, s.Words(), s.Why)
		for _, l := range s.Levels {
			if l.Left == 0 {
				continue
			}
			text += fmt.Sprintf("; at %s %d of %d never served", l.Name, l.Left, l.Trials)
			if !l.Shown {
				text += ", which shows nothing of it: it was not compared"
			}
		}
		f.Evidence = append(f.Evidence, text)
	}
	return withEvidence(f)
}

// Words say what the shape is.
func (s *Shape) Words() string {
	among := words.Exact(s.Lowest, s.Unit)
	if s.From != s.To {
		among = words.Exact(s.From, s.Unit) + " to " + words.Exact(s.To, s.Unit)
	}
	switch s.Shape {
	case stats.UShape:
		return fmt.Sprintf("too little and too much are both shown to be worse: the best is at %s", among)
	case stats.FallingShape:
		return fmt.Sprintf("less is shown to be worse, more is not: the best is at %s", among)
	case stats.RisingShape:
		return fmt.Sprintf("more is shown to be worse, less is not: the best is at %s", among)
	case stats.FlatShape:
		return "it makes no difference within this range"
	}
	return "no shape is shown"
}
