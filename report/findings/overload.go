package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// KeptUp is the share of the offered load from which on a system counts as keeping up
// with it: the last requests of a trial are cut off, which is no queue yet.
const KeptUp = 0.95

// Offered is an open-loop cell: requests come at moments that do not depend on answers.
type Offered struct {
	Where string
	Ended float64 // share of the offered load that ended within the trial, median
}

// Overloaded names the cells that did not keep up: there the times of what did end say
// little, while more and more is waiting.
func Overloaded(cells []Offered) []Finding {
	f := Finding{Rule: "overloaded", Tone: Bad, Title: "The offered load was not kept up with",
		Text: "Requests came faster than answers in these cells, so they queued, and every time grew with the length of the trial: medians there are no property of the system."}
	for _, c := range cells {
		if c.Ended < KeptUp {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of the offered load ended within the trial", c.Where, words.Percent(c.Ended)))
		}
	}
	return withEvidence(f)
}
