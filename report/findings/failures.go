package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// manyCut is the share of a cell's operations from which on those that the deadline
// ended are worth a word: fewer change no rate that anybody reads.
const manyCut = 0.01

// Outcomes is how the operations of one cell ended.
type Outcomes struct {
	Where   string
	OK      int64  // served
	Of      int64  // served or failed by the system's doing
	Cut     int64  // ended by the experiment's deadline
	Starved int64  // got nothing for the stall limit, while others filled the link
	All     int64  // with whatever else the experiment cut off
	Why     string // failures by class
}

func (o *Outcomes) failed() int64 { return o.Of - o.OK }

// Deadlines says what the experiment's own deadline or a full link ended: a client that
// counts that as a failure blames a healthy server.
func Deadlines(cells []Outcomes) []Finding {
	f := Finding{Rule: "deadlines", Tone: Warn, Title: "Deadlines, not failures",
		Text: "Operations passed the experiment's own deadline, or got nothing for its stall limit while others filled the link (starved). When many clients share a link all of them are slow, and TCP may leave some without a byte for long: that is the link's doing, not the server's failure."}
	for i := range cells {
		c := &cells[i]
		if cut := c.Cut + c.Starved; cut == 0 || float64(cut) < manyCut*float64(c.All) {
			continue
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: of %s operations %s passed the deadline and %s were starved by the link; the server failed %s. Counted together they would read as %s success",
			c.Where, words.Count(c.All), words.Count(c.Cut), words.Count(c.Starved), words.Count(c.failed()), words.Percent(float64(c.OK)/float64(c.All))))
	}
	return withEvidence(f)
}

// Failures says what the system did not do; one operation is enough.
func Failures(cells []Outcomes) []Finding {
	f := Finding{Rule: "failures", Tone: Bad, Title: "Operations failed",
		Text: "The server refused, broke off, stalled or answered with an error. These count against it."}
	for i := range cells {
		if c := &cells[i]; c.failed() > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of %s (%s): %s", c.Where, words.Count(c.failed()), words.Count(c.Of),
				words.Percent(float64(c.failed())/float64(c.Of)), c.Why))
		}
	}
	return withEvidence(f)
}
