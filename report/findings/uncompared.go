package findings

import (
	"slices"
	"strings"
)

// NotCompared says from the notes of trials that there are some whose content nobody
// looked at: what was not compared cannot have been seen to be wrong.
func NotCompared(notes []string) []Finding {
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "receive: drop") }) {
		return nil
	}
	return []Finding{{Rule: "not-compared", Tone: Neutral, Title: "Content was not compared",
		Text: "Trials with receive: drop check status, headers and length and let the kernel discard the bytes. Wrong content would not have been seen in them."}}
}
