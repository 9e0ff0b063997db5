package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Polled is how the polls of a load test went.
type Polled struct {
	Name   string
	Made   int
	Missed int64   // of the schedule
	Failed []Wrong // calls that were not answered
	Absurd []Wrong // readings that make no sense
}

// Wrong is a call or a reading, how often it was so, and the words of the latest.
type Wrong struct {
	Name  string
	Times int64
	Last  string
}

func (w Wrong) words(verb string) string {
	return fmt.Sprintf("%s %s×%s, last: %s", w.Name, verb, words.Count(w.Times), words.Clip(w.Last, mostQuoted))
}

const (
	// gapShare is the share of polls from which on gaps are named: fewer do not show
	// in any figure.
	gapShare = 0.01
	// mostQuoted is how many letters of a system's words are shown.
	mostQuoted = 120
)

// Gaps says where polls or calls are missing.
func Gaps(all []Polled) []Finding {
	f := Finding{Rule: "gaps", Tone: Neutral, Title: "Not every poll was answered",
		Text: "Calls that failed and polls of the schedule that were left out are gaps in the figures; nothing is drawn or counted over them."}
	for _, p := range all {
		failed := int64(0)
		for _, w := range p.Failed {
			failed += w.Times
		}
		if p.Made == 0 || float64(p.Missed+failed) < gapShare*float64(p.Made) {
			continue
		}
		s := fmt.Sprintf("%s: %s left out of %s", p.Name, words.Plural(p.Missed, "poll", "polls"), words.Count(int64(p.Made)+p.Missed))
		for _, w := range p.Failed {
			s += "; " + w.words("failed ")
		}
		f.Evidence = append(f.Evidence, s)
	}
	return withEvidence(f)
}

// Absurd names the readings that were left out because they make no sense. One is
// enough: a reader of the system's own numbers must know.
func Absurd(all []Polled) []Finding {
	f := Finding{Rule: "absurd", Tone: Neutral, Title: "Some numbers of the system make no sense",
		Text: "They are recorded, and in no figure and no sum."}
	for _, p := range all {
		for _, w := range p.Absurd {
			f.Evidence = append(f.Evidence, p.Name+": "+w.words(""))
		}
	}
	return withEvidence(f)
}
