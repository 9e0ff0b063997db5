package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Ending is how a load test came to its end.
type Ending struct {
	Name       string
	By         string // an exit condition, or that all was done; empty: nothing yet
	Why        string // in words
	Sessions   int
	CutOff     int   // of them, without a word
	Unrecorded int64 // attempts of which those left no operation, at least
	Crashes    int   // ends of the system's own processes
}

// Ended says what ended them.
func Ended(all []Ending) []Finding {
	f := Finding{Rule: "ended", Tone: Neutral, Title: "What ended it", Text: "An exit condition of the experiment, or that all was done; and how many sessions of ours it took."}
	for _, e := range all {
		if e.By == "" {
			continue
		}
		s := e.Name + ": " + e.By
		if e.Why != "" {
			s += ", " + e.Why
		}
		s += "; " + words.Plural(int64(e.Sessions), "session", "sessions")
		if e.CutOff > 0 {
			s += ", " + words.Count(int64(e.CutOff)) + " of them cut off"
			if e.Unrecorded > 0 {
				s += fmt.Sprintf(" (attempts whose details were lost with them, or that they cut off: %s at least; what became of the objects is known)", words.Count(e.Unrecorded))
			}
		}
		if e.Crashes > 0 {
			s += ", " + words.Plural(int64(e.Crashes), "crash", "crashes")
		}
		f.Evidence = append(f.Evidence, s)
	}
	return withEvidence(f)
}
