package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Best is the best configuration found of one system under one set of conditions.
type Best struct {
	Place         string  // system and conditions; empty: there is one of each
	Changed       string  // what it changes of the default: "storage ram"
	Before, After float64 // seconds that the default and the best take
	Gain          Gain
	Of            int // configurations that it is the best of
	Never         int // others, whose nodes never came to serve
}

// BestFound names the best configurations and how sure that is.
func BestFound(all []Best) []Finding {
	f := Finding{Rule: "best", Tone: Good, Title: "The best configuration found",
		Text: "The configuration with the least time, of those that were tried and whose nodes always came to serve. Times are geometric means, where trials are missing in the mean of all repetitions, as the figure has them. The gain is a ratio of geometric means over trials of the same blocks; as the same trials chose it and tell its gain, the interval (at 99 %) allows for the choice, while the middle promises a little too much where others are close."}
	for i := range all {
		b := &all[i]
		if b.Changed == "" {
			continue // the default is the best
		}
		if !b.Gain.Shown {
			f.Tone = Neutral
		}
		f.Evidence = append(f.Evidence, at(b.Place, fmt.Sprintf("%s: %s against %s of the default, %s, from %s of trials of %s", b.Changed, words.Show(b.After, "s"), words.Show(b.Before, "s"), b.Gain.Words(),
			words.Plural(int64(b.Gain.N), "pair", "pairs"), b.Compared())))
	}
	return withEvidence(f)
}

// at begins a sentence with its place.
func at(place, s string) string {
	if place == "" {
		return s
	}
	return place + ": " + s
}

// Compared counts the configurations that the best is one of, and those that were not
// considered.
func (b *Best) Compared() string {
	s := words.Plural(int64(b.Of), "configuration", "configurations")
	if b.Never > 0 {
		s += fmt.Sprintf(" (%d more not considered: nodes never came to serve)", b.Never)
	}
	return s
}

// Alike are the configurations that cannot be told from the best, those that change
// least of the default first.
type Alike struct {
	Place string
	Of    []AsGood
}

// AsGood is one of them.
type AsGood struct {
	Changed string // of the default; empty: it is that
	Gain    Gain   // its time over the best's
}

// alikeNamed is how many are named one by one; one more is named rather than counted.
const alikeNamed = 6

// AsGoodAsBest names them: of those that are as fast the simplest is the one to prefer.
func AsGoodAsBest(all []Alike) []Finding {
	f := Finding{Rule: "as-good", Tone: Neutral, Title: "What is not shown to be slower than the best",
		Text: "These cannot be told from the best configuration found, those that change least of the default first: of those that are as fast it is the one to prefer, as each change has its price. A wide interval is no sign of being as fast; more repetitions tell."}
	for _, a := range all {
		for i, c := range a.Of {
			if i == alikeNamed && len(a.Of) > alikeNamed+1 {
				f.Evidence = append(f.Evidence, at(a.Place, fmt.Sprintf("and %d more", len(a.Of)-i)))
				break
			}
			what := c.Changed
			if what == "" {
				what = "the default"
			}
			f.Evidence = append(f.Evidence, at(a.Place, fmt.Sprintf("%s: ~ %s of the best's time", what, words.Range(c.Gain.Value, c.Gain.Lo, c.Gain.Hi, "×"))))
		}
	}
	return withEvidence(f)
}
