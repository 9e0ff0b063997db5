package findings

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Goal is how one cell stands to what was asked of it, each time in words with its
// interval: "half of the leechers at 1.31× …".
type Goal struct {
	Where              string
	Met, Missed, Open  []string
	Trials             int
	Unfinished, Wanted int64 // leechers that did not get everything, of those that were to
}

// Goals says where the goal is not met, where by those alone that got everything, and
// where it cannot be told.
func Goals(cells []Goal, asked string) []Finding {
	missed := Finding{Rule: "goal-missed", Tone: Bad, Title: "The goal is not met",
		Text: "The goal is to be " + asked + ". In these cells the whole interval of the ratio lies beyond it, or the system never came to the end at all."}
	half := Finding{Rule: "goal-met-unfinished", Tone: Warn, Title: "The goal is met by those who got everything",
		Text: "Half of the leechers are as fast as the goal asks, but not all leechers got everything."}
	open := Finding{Rule: "goal-open", Tone: Neutral, Title: "Whether the goal is met cannot be told",
		Text: "The goal is to be " + asked + ". In these cells the trials do not decide it."}
	for i := range cells {
		c := &cells[i]
		if c.Missed != nil {
			missed.Evidence = append(missed.Evidence, c.Where+": "+strings.Join(c.Missed, "; "))
		}
		if c.Open != nil && c.Trials > 0 {
			open.Evidence = append(open.Evidence, c.Where+": "+strings.Join(c.Open, "; "))
		}
		if c.Met != nil && c.Unfinished > 0 {
			half.Evidence = append(half.Evidence, fmt.Sprintf("%s: %s; %s of %s did not get everything", c.Where, strings.Join(c.Met, "; "), words.Count(c.Unfinished), words.Plural(c.Wanted, "leecher", "leechers")))
		}
	}
	return withEvidence(missed, half, open)
}
