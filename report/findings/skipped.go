package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Omitted is a cell that was left out on purpose.
type Omitted struct {
	System, Where string
	Trials        int // of it; 0: all
	Why           string
}

// Skipped names such cells: one without trials must not pass for one without a problem.
func Skipped(cells []Omitted) []Finding {
	f := Finding{Rule: "skipped", Tone: Neutral, Title: "Cells were left out",
		Text: words.Plural(int64(len(cells)), "cell was", "cells were") + " left out on purpose, whole or in part, because one operation takes too long there. That is neither invalid nor failed; what is said of a system is said without them."}
	for _, c := range cells {
		part := ""
		if c.Trials > 0 {
			part = ", " + words.Plural(int64(c.Trials), "trial", "trials")
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s, %s%s: %s", c.System, c.Where, part, c.Why))
	}
	return withEvidence(f)
}
