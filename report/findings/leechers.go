package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Leechers is how the leechers of one cell ended that were to have everything.
type Leechers struct {
	Where   string
	Left    int64 // did not get everything
	Of      int64 // were to
	In      int   // trials with such
	Trials  int
	Faulted bool   // something was done to the swarm
	Ends    string // outcomes, counted
	Why     string // reasons, counted; empty: none is known
	// What those had that stopped, as shares of the content, least and most; NaN: not
	// known, or all of them got wrong bytes.
	Least, Most float64
}

// alikeShares is how far apart the shares may be for all to have stopped at one point: a
// piece of most contents is more.
const alikeShares = 0.005

// LeechersUnfinished names who never got everything, and why. In cells with faults that
// may be the fault's doing.
func LeechersUnfinished(cells []Leechers) []Finding {
	bad := Finding{Rule: "leechers-unfinished", Tone: Bad, Title: "Leechers did not get everything",
		Text: "Nothing was done to these swarms, and still some leechers were stalled, ran out of time or failed. Times of such cells count them as longer than any."}
	faulted := Finding{Rule: "leechers-unfinished-faults", Tone: Warn, Title: "Faults left leechers without the content",
		Text: "With these faults some leechers did not get everything. Where the only seeder dies before all pieces are out nobody can; what counts is that the others go on, and that nobody waits for ever."}
	for i := range cells {
		c := &cells[i]
		if c.Left == 0 {
			continue
		}
		s := fmt.Sprintf("%s: %s of %s in %d of %s: %s", c.Where, words.Count(c.Left), words.Plural(c.Of, "leecher", "leechers"), c.In, words.Plural(int64(c.Trials), "trial", "trials"), c.Ends)
		if c.Why != "" {
			s += " (" + c.Why + ")"
		}
		s += c.had()
		if c.Faulted {
			faulted.Evidence = append(faulted.Evidence, s)
		} else {
			bad.Evidence = append(bad.Evidence, s)
		}
	}
	return withEvidence(bad, faulted)
}

// had says how far those got that stopped: all at the same point is the sign of pieces
// that nobody has any more.
func (c *Leechers) had() string {
	switch {
	case !(c.Least <= c.Most):
		return ""
	case c.Most == 0:
		return "; none of them had a byte"
	case c.Most-c.Least < alikeShares:
		return "; each had " + words.Percent(c.Most)
	}
	return fmt.Sprintf("; they had %s to %s", words.Percent(c.Least), words.Percent(c.Most))
}
