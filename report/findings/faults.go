package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// FaultCount is in how many of a cell's valid trials a fault came, and was undone
// before the load was over. A fault that comes with progress may never come, and
// the last leecher may be done before what a fault took away is back: such trials
// are others than those that had the whole of it.
type FaultCount struct {
	Fault  string `json:"fault"`
	Trials int    `json:"trials"`
	Came   int    `json:"came"`
	Undone int    `json:"undone"`
	Ends   bool   `json:"ends"` // it is one that is to be undone
}

// Whole reports whether every trial had all of the fault.
func (c FaultCount) Whole() bool {
	return c.Came == c.Trials && (!c.Ends || c.Undone == c.Trials)
}

// Words tell how often it came.
func (c FaultCount) Words() string {
	n := words.Plural(int64(c.Trials), "trial", "trials")
	if !c.Ends {
		return fmt.Sprintf("came in %d of %s", c.Came, n)
	}
	return fmt.Sprintf("came in %d of %s, undone before the end in %d", c.Came, n, c.Undone)
}

// Faulted is the faults of one cell.
type Faulted struct {
	Where  string
	Faults []FaultCount
}

// PartialFaults names cells in whose medians are trials with a fault and without.
func PartialFaults(cells []Faulted) []Finding {
	f := Finding{Rule: "partial-faults", Tone: Warn, Title: "Not every trial had the whole fault",
		Text: "A fault did not come, or was not undone, before the last leecher was done: these cells' numbers are over trials with the fault, or the return, and trials without."}
	for _, c := range cells {
		for _, q := range c.Faults {
			if q.Trials > 0 && !q.Whole() {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: “%s” %s", c.Where, q.Fault, q.Words()))
			}
		}
	}
	return withEvidence(f)
}
