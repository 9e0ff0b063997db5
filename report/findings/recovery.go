package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Recovery is how the nodes of one cell went on after a fault was undone.
type Recovery struct {
	Where  string
	Next   Value   // seconds to the next verified byte
	Outage float64 // seconds without; 0: not known
	WentOn float64 // share of the nodes that did at all, median; NaN: not known
}

// SlowRecovery names cells whose nodes needed longer to go on than they were disturbed
// for, or never did.
func SlowRecovery(cells []Recovery) []Finding {
	f := Finding{Rule: "slow-recovery", Tone: Warn, Title: "Nodes are slow to go on after a fault",
		Text: "After the fault was undone, the nodes that it touched got no further verified byte for longer than they had been without, or never got one."}
	for _, c := range cells {
		var say []string
		if c.Outage > 0 && c.Next.Mid > c.Outage {
			say = append(say, fmt.Sprintf("%s to the next verified byte after an outage of %s", c.Next.words("s"), words.Show(c.Outage, "s")))
		}
		if c.WentOn < 1 {
			say = append(say, fmt.Sprintf("%s of the nodes went on at all", words.Percent(c.WentOn)))
		}
		if say != nil {
			f.Evidence = append(f.Evidence, c.Where+": "+words.List(say))
		}
	}
	return withEvidence(f)
}
