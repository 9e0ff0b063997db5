package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

const (
	// CoarseGap is the share of a time from which on polls so far apart make it a
	// coarse one: systems that differ by as much are to be told apart.
	CoarseGap = 0.10
	// blindGap is what one trial may have: its time alone does not move a median.
	blindGap = 0.25
)

// PollGaps is how far apart the polls of a cell's trials lay, in seconds.
type PollGaps struct {
	Where  string
	Took   float64   // median time of half of the leechers
	Median float64   // of the longest gap of each trial
	Trials []float64 // longest gap of each
}

// CoarsePolls names times that are no finer than the polls that tell them.
func CoarsePolls(cells []PollGaps) []Finding {
	f := Finding{Rule: "coarse", Tone: Warn, Title: "Times are coarse",
		Text: "Polls lay so far apart that they decide these times as much as the systems do: each is too long by up to that, and so late may a fault have struck that waits for a share of the content."}
	for _, c := range cells {
		if !(c.Took > 0) {
			continue
		}
		if c.Median > CoarseGap*c.Took {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: polls up to %s apart, with a median time of %s", c.Where, words.Show(c.Median, "s"), words.Show(c.Took, "s")))
			continue
		}
		n, most := 0, 0.0
		for _, gap := range c.Trials {
			if gap > blindGap*c.Took {
				n, most = n+1, max(most, gap)
			}
		}
		if n > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: in %d of %s nobody was asked for up to %s, with a median time of %s", c.Where, n, words.Plural(int64(len(c.Trials)), "trial", "trials"), words.Show(most, "s"), words.Show(c.Took, "s")))
		}
	}
	return withEvidence(f)
}
