package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Corrupt is how many operations of one trial delivered something else than what was
// asked for. Those of warm-up and of invalid trials count: corruption is never a
// detail.
type Corrupt struct {
	System, Where     string
	Trial, Operations int64
}

// WrongBytes says that objects were delivered which were others.
func WrongBytes(all []Corrupt) []Finding {
	return corrupt(all, "Wrong bytes were served", "delivered all bytes, and they were not the object's")
}

// WrongChains says the same of fresh nodes, which are asked for a chain.
func WrongChains(all []Corrupt) []Finding {
	return corrupt(all, "Another chain at the right height", "came to the height of the chain, and its last block was another")
}

func corrupt(all []Corrupt, title, did string) []Finding {
	f := Finding{Rule: "wrong-bytes", Tone: Bad, Title: title}
	total := int64(0)
	for _, c := range all {
		if c.Operations > 0 {
			total += c.Operations
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s, %s, trial %d: %s", c.System, c.Where, c.Trial, words.Plural(c.Operations, "operation", "operations")))
		}
	}
	f.Text = words.Plural(total, "operation", "operations") + " " + did + ". Nothing else about that system matters until this is explained; warm-up and invalid trials are counted here too."
	return withEvidence(f)
}
