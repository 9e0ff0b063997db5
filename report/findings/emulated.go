package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Links is what a plan asks for, and how much of it there was.
type Links struct {
	Asked string // the link in words
	Bare  int    // trials that ran without it
	Why   string // as the testbed told; empty: it did not
}

// NotEmulated says where a number of the bare machine may pass for one of the link
// that was asked for.
func NotEmulated(l Links) []Finding {
	if l.Bare == 0 {
		return nil
	}
	if l.Why == "" {
		l.Why = "this machine has no emulator"
	}
	return []Finding{{Rule: "link-not-emulated", Tone: Bad, Title: "Links were not emulated",
		Text: fmt.Sprintf("The plan asks for %s; %s of this machine had no such link (%s). Their numbers are those of the bare machine.", l.Asked, words.Plural(int64(l.Bare), "trial", "trials"), l.Why)}}
}
