package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Peak is what a process holds during one upload at a time.
type Peak struct {
	Name    string
	Bytes   float64 // peak, of the largest object
	Largest string  // its size
	// Slope of the peak over the size of the object, bytes per file byte, from trials
	// (Theil–Sen); N 0: it is not known.
	Slope Value
	// Hidden: what earlier loads left behind hides some of the growth, so the slope is
	// at least so much.
	Hidden bool
	// AtMost is all that the largest upload had above rest, for each file byte; NaN:
	// not known.
	AtMost float64
	Grows  string // "yes" or "no", as those show it; empty: it cannot be told
}

// MemoryGrows says of which processes the memory grows with the size of the object, and
// of which it does not.
func MemoryGrows(all []Peak) []Finding {
	yes := Finding{Rule: "memory-grows", Tone: Warn, Title: "Memory grows with the file",
		Text: "The peak of these processes during one upload rises with the size of the object: the slope over trials (Theil–Sen), with its interval."}
	no := Finding{Rule: "memory-flat", Tone: Good, Title: "Memory does not grow with the file",
		Text: "The peak of these processes during one upload does not rise by more than a tenth of each further file byte. Only trials before which nothing larger was handled tell that, or how little the largest upload had above rest."}
	for i := range all {
		p := &all[i]
		s := fmt.Sprintf("%s: %s of memory for each file byte, up to %s; peak %s", p.Name, p.slope(), p.Largest, words.Show(p.Bytes, "B"))
		switch p.Grows {
		case "yes":
			yes.Evidence = append(yes.Evidence, s)
		case "no":
			no.Evidence = append(no.Evidence, s)
		}
	}
	return withEvidence(yes, no)
}

// slope is how much of each file byte a process keeps.
func (p *Peak) slope() string {
	switch {
	case p.Slope.N > 0 && p.Hidden:
		return "at least " + p.Slope.words("B")
	case p.Slope.N > 0:
		return p.Slope.words("B")
	}
	return "at most " + words.Show(p.AtMost, "B")
}
