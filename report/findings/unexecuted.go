package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Unexecuted is a trial that could not run at all.
type Unexecuted struct{ System, Why string }

// NotExecuted counts such trials by system and reason.
func NotExecuted(trials []Unexecuted) []Finding {
	f := Finding{Rule: "not-executed", Tone: Bad, Title: "Trials could not be executed", Text: "These trials yielded nothing."}
	counts := map[Unexecuted]int64{}
	var order []Unexecuted
	for _, t := range trials {
		if counts[t] == 0 {
			order = append(order, t)
		}
		counts[t]++
	}
	for _, t := range order {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s, %s: %s", t.System, words.Plural(counts[t], "trial", "trials"), t.Why))
	}
	return withEvidence(f)
}
