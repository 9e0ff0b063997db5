package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Below is how many objects of a load test were below their redundancy, having been
// at it, as the polls told.
type Below struct {
	Name       string
	Start, End []float64 // of each poll, seconds since the test began
	Objects    []float64 // NaN: not told
}

// Lack is a time in which some were.
type Lack struct {
	From, To float64
	Objects  int64 // at most
	Open     bool  // it lasted until the last poll that told
}

// fellPolls is how many polls in a row must see objects below their redundancy: a
// piece that moves from one server to another is on neither for a moment.
const fellPolls = 2

// Lacks are the times with objects below their redundancy.
func (b *Below) Lacks() []Lack {
	var all []Lack
	var now *Lack
	seen, last := 0, -1
	for i, n := range b.Objects {
		switch {
		case n > 0 && now == nil:
			now, seen = &Lack{From: b.Start[i], To: b.End[i], Objects: int64(n)}, 1
		case n > 0:
			now.To, now.Objects, seen = b.End[i], max(now.Objects, int64(n)), seen+1
		case n == 0 && now != nil:
			if seen >= fellPolls {
				now.To = b.End[i]
				all = append(all, *now)
			}
			now = nil
		}
		if n >= 0 {
			last = i
		}
	}
	if now != nil && seen >= fellPolls {
		now.Open, now.To = true, b.End[last]
		all = append(all, *now)
	}
	return all
}

// RedundancyFell: an object that was durable and no longer is.
func RedundancyFell(tests []Below) []Finding {
	fell := Finding{Rule: "redundancy-fell", Tone: Bad, Title: "Redundancy fell and was not repaired",
		Text: "Objects that were at their full redundancy no longer are, until the last poll: servers that held their pieces are gone or dropped, and nothing was put in their place in the time that was watched."}
	mended := Finding{Rule: "redundancy-repaired", Tone: Neutral, Title: "Redundancy fell and was repaired",
		Text: "Objects that were at their full redundancy were below it for a while; at the last poll none was."}
	for i := range tests {
		for _, x := range tests[i].Lacks() {
			s := fmt.Sprintf("%s: up to %s, from %s after the beginning", tests[i].Name, words.Plural(x.Objects, "object", "objects"), words.Moment(x.From))
			if x.Open {
				fell.Evidence = append(fell.Evidence, fmt.Sprintf("%s; not repaired within %s, when the watching ended", s, words.Moment(x.To-x.From)))
			} else {
				mended.Evidence = append(mended.Evidence, fmt.Sprintf("%s, for %s", s, words.Moment(x.To-x.From)))
			}
		}
	}
	return withEvidence(fell, mended)
}
