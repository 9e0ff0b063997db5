package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// NearMisfit is the misfit of its worst cell below which a model that does not
// hold is still a fair description: its numbers are good to that share.
const NearMisfit = 0.1

// CostFit is how the fit of A + R·RTT + B·size to the times of one operation came out.
type CostFit struct {
	Name   string
	Fitted bool
	Tested bool   // there were trials and cells enough to tell whether it holds
	Holds  bool   // what is left is no more than what repeated trials differ by
	Why    string // it was not fitted, not tested, or does not hold
	// Residuals, as shares of the times: their spread, and that of the worst cell.
	Spread, Misfit float64
}

// near reports whether a model that was tested and does not hold misses by little.
func (f *CostFit) near() bool { return f.Tested && !f.Holds && f.Misfit < NearMisfit }

// CostModels says where one line does not describe an operation.
func CostModels(fits []CostFit) []Finding {
	bad := Finding{Rule: "model", Tone: Warn, Title: "The cost model does not hold",
		Text: fmt.Sprintf("What is left of these times after A + R·RTT + B·size is more than what repeated trials differ by, and in some cell %s or more.", words.Percent(NearMisfit))}
	near := Finding{Rule: "model-near", Tone: Neutral, Title: "The cost model is not exact",
		Text: fmt.Sprintf("What is left of these times after A + R·RTT + B·size is more than what repeated trials differ by, but in every cell less than %s: A, R and B are good to that.", words.Percent(NearMisfit))}
	none := Finding{Rule: "no-fit", Tone: Neutral, Title: "Not everything could be fitted", Text: "There is too little to tell what these operations cost."}
	untested := Finding{Rule: "model-untested", Tone: Neutral, Title: "Whether the cost model holds is not known",
		Text: "There are too few trials of a cell, or too few cells, to tell a model that misses from trials that differ."}
	for i := range fits {
		f := &fits[i]
		why := f.Name + ": " + f.Why
		misses := fmt.Sprintf("%s; residuals spread by %s, the worst cell is off by %s", why, words.Percent(f.Spread), words.Percent(f.Misfit))
		switch {
		case !f.Fitted:
			none.Evidence = append(none.Evidence, why)
		case !f.Tested && !f.Holds:
			untested.Evidence = append(untested.Evidence, why)
		case f.near():
			near.Evidence = append(near.Evidence, misses)
		case !f.Holds:
			bad.Evidence = append(bad.Evidence, misses)
		}
	}
	return withEvidence(bad, untested, near, none)
}
