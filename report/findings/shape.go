package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/report/internal/words"
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
	Some     []Level // those at which some nodes never came to serve
}

// Level is one of them.
type Level struct {
	Name         string
	Left, Trials int
	Shown        bool // to fail more often than where all served: it was compared
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
		for _, l := range s.Some {
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
