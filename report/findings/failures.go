package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/report/internal/words"
)

// manyCut is the share of a cell's operations from which on those that the deadline
// ended are worth a word: fewer change no rate that anybody reads.
const manyCut = 0.01

// Outcomes is how the operations of one cell ended.
type Outcomes struct {
	Where string
	OK    int64  // served
	Of    int64  // served or failed by the system's doing
	Cut   int64  // ended by the experiment's deadline while bytes still came
	All   int64  // with whatever else the experiment cut off
	Why   string // failures by class
}

func (o *Outcomes) failed() int64 { return o.Of - o.OK }

// Deadlines says what the experiment's own deadline ended: a client that counts that as
// a failure blames a healthy server.
func Deadlines(cells []Outcomes) []Finding {
	f := Finding{Rule: "deadlines", Tone: Warn, Title: "Deadlines, not failures",
		Text: "The experiment's own deadline ended operations that were still receiving. Under a burst that shares the link fairly all operations end late together; that is the link's arithmetic, not the server's failure."}
	for i := range cells {
		c := &cells[i]
		if c.Cut == 0 || float64(c.Cut) < manyCut*float64(c.All) {
			continue
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of %s operations passed the deadline while bytes still came; the server failed %s. Counted together they would read as %s success",
			c.Where, words.Count(c.Cut), words.Count(c.All), words.Count(c.failed()), words.Percent(float64(c.OK)/float64(c.All))))
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
