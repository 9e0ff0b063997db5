package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// SameBytes is the time of one operation divided by what the baseline needs for as many
// absolute bytes.
type SameBytes struct {
	Name        string
	Ratio       Value  // geometric mean over cells
	Operation   string // the baseline's, where it is another; empty: the same
	Doubtful    bool   // the baseline's fit does not hold
	Least, Most Cell
}

// Cell is a figure of one cell.
type Cell struct {
	Where string
	Value float64
}

// AgainstSameBytes says how each operation compares; an operation without a ratio is
// not named.
func AgainstSameBytes(all []SameBytes, baseline string) []Finding {
	f := Finding{Rule: "same-bytes", Tone: Neutral, Title: "Against " + baseline + " for the same absolute bytes",
		Text: "The time of an operation divided by what the baseline's fit gives for as many bytes as the system sends to its storage nodes: what remains is not the price of redundancy. Geometric mean over cells."}
	for _, a := range all {
		if a.Ratio.N == 0 {
			continue
		}
		s := a.Name + ": " + a.Ratio.words("×")
		if a.Operation != "" {
			s += " (its " + a.Operation + ")"
		}
		if a.Doubtful {
			s += ", by a fit of the baseline that does not hold"
		}
		if a.Least.Where != a.Most.Where {
			s += fmt.Sprintf("; from %s (%s) to %s (%s)", words.Show(a.Least.Value, "×"), a.Least.Where, words.Show(a.Most.Value, "×"), a.Most.Where)
		}
		f.Evidence = append(f.Evidence, s)
	}
	return withEvidence(f)
}
