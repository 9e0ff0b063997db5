package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Nodes is how the fresh nodes of one cell ended that never came to serve.
type Nodes struct {
	Where   string
	Left    int // never came to serve
	Trials  int
	Meant   bool   // faults, or peers that are of little use on purpose
	Ends    string // outcomes, counted
	Reasons string // the most frequent ones; empty: none is known
	// What they had of the chain, least and most, as shares; NaN: not known.
	Least, Most float64
}

// NeverServed names who never came to serve, and why.
func NeverServed(cells []Nodes) []Finding {
	bad := Finding{Rule: "never-served", Tone: Bad, Title: "Nodes never came to serve",
		Text: "Nothing was done to these trials, and still the fresh node stalled, ran out of time or failed. Such trials count as longer than any; a cell that has one is not called the best, and the effects of knobs are those of the trials that ended, which are not shown where these speak against them."}
	faulted := Finding{Rule: "never-served-faults", Tone: Warn, Title: "Faults or useless peers kept nodes from serving",
		Text: "With these faults or peers some fresh nodes never came to serve. Such trials count as longer than any; effects are those of the others, which are not shown where these speak against them."}
	for i := range cells {
		n := &cells[i]
		if n.Left == 0 {
			continue
		}
		s := fmt.Sprintf("%s: %d of %s: %s", n.Where, n.Left, words.Plural(int64(n.Trials), "trial", "trials"), n.Why())
		if n.Meant {
			faulted.Evidence = append(faulted.Evidence, s)
		} else {
			bad.Evidence = append(bad.Evidence, s)
		}
	}
	return withEvidence(bad, faulted)
}

// Why is how they ended, for what reasons, and how far they were.
func (n *Nodes) Why() string {
	s := n.Ends
	if n.Reasons != "" {
		s += " (" + n.Reasons + ")"
	}
	switch {
	case !(n.Least <= n.Most):
	case n.Most == 0:
		s += "; none had a block"
	case n.Most-n.Least < alikeShares:
		s += "; with " + words.Percent(n.Most) + " of the chain"
	default:
		s += fmt.Sprintf("; with %s to %s of the chain", words.Percent(n.Least), words.Percent(n.Most))
	}
	return s
}
