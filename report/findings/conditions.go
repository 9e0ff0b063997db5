package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Conditions are the cells of a run beside one another.
type Conditions struct {
	Knobs bool // some vary, too: then these are what was asked about
	Cells []Condition
}

// Condition is one set of conditions with the one configuration that was run.
type Condition struct {
	Where        string
	Trials, Left int     // of them, those whose node never came to serve
	Time         float64 // seconds until it serves; NaN: nobody did
	Lo, Hi       float64
	Against      *Gain // the first of its system; nil: it is that, or no trials are of the same repetition
}

// UnderConditions says the time under each, where no knob varies.
func UnderConditions(c Conditions) []Finding {
	f := Finding{Rule: "conditions", Tone: Neutral, Title: "The time under each condition",
		Text: "No knob was varied, so these are one configuration under different conditions: geometric means with their intervals, and the ratio to the first in trials of the same repetitions."}
	if c.Knobs || len(c.Cells) < 2 {
		return nil
	}
	for i := range c.Cells {
		f.Evidence = append(f.Evidence, c.Cells[i].Where+": "+c.Cells[i].words())
	}
	return withEvidence(f)
}

func (c *Condition) words() string {
	never := fmt.Sprintf("%d of %d never served", c.Left, c.Trials)
	switch {
	case c.Trials == 0:
		return "no valid trial"
	case c.Time-c.Time != 0:
		return never
	}
	s := words.Range(c.Time, c.Lo, c.Hi, "s")
	if c.Against != nil {
		s += ", " + c.Against.Words()
	}
	if c.Left > 0 {
		s += "; " + never
	}
	return s
}
