package findings

import (
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Started is how much of the time of one cell passed before the first byte or block
// came.
type Started struct {
	System string
	Cell   string  // its factors
	Share  Value   // of the whole time, over trials
	Before float64 // seconds
	Whole  float64 // seconds, of the same trial or fit
	Middle bool    // Before and Whole are of the one trial with the middle share, not of a fit
	Then   string  // what the rest went at: "then 3.1 MB/s"; empty: not known
}

// muchStartUp is the share of the time from which on a start is worth a word.
const muchStartUp = 0.25

// StartUp says where much of a time is no transfer.
func StartUp(all []Started) []Finding {
	f := Finding{Rule: "start-up", Tone: Neutral, Title: "Much of the time passes before the first byte",
		Text: fmt.Sprintf("In these cells more than %s of what was measured is what comes before: starting, connecting, asking, and the system's own intervals. It does not grow with what is moved, so its share falls with larger objects or a longer chain: a ratio or a gain found here holds for sizes like these only.", words.Percent(muchStartUp)),
		Try:  "Measure larger objects (a longer chain) beside these, and compare the time before and the rate after the first byte apart; reused connections and fewer round trips before the first byte shorten it."}
	var order []string
	by := map[string][]Started{}
	cells := map[string]int{}
	for _, s := range all {
		cells[s.System]++
		if !s.Share.above(muchStartUp) {
			continue
		}
		if by[s.System] == nil {
			order = append(order, s.System)
		}
		by[s.System] = append(by[s.System], s)
	}
	for _, system := range order {
		of := by[system]
		slices.SortStableFunc(of, func(a, b Started) int {
			switch {
			case a.Share.Mid > b.Share.Mid:
				return -1
			case a.Share.Mid < b.Share.Mid:
				return 1
			}
			return 0
		})
		var some []string
		for _, s := range of {
			where := s.Cell
			if where != "" {
				where += ": "
			}
			one := fmt.Sprintf("%s%s, %s", where, s.times(), s.Share.words("ratio"))
			if s.Then != "" {
				one += ", " + s.Then
			}
			some = append(some, fmt.Sprintf("%s (n = %d)", one, s.Share.N))
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s in %d of %s: %s", system, len(of), words.Plural(int64(cells[system]), "cell", "cells"), words.Some(some)))
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}

// mostlyBefore is the share from which on two times would be told by digits that do not
// divide to it: what is left is told instead.
const mostlyBefore = 0.95

// times are the time before and the whole: "1.40 s of 3.12 s", "all but 190 µs of
// 125 ms".
func (s Started) times() string {
	text := words.Show(s.Before, "s") + " of " + words.Show(s.Whole, "s")
	if s.Before > mostlyBefore*s.Whole && s.Before < s.Whole {
		text = "all but " + words.Show(s.Whole-s.Before, "s") + " of " + words.Show(s.Whole, "s")
	}
	if s.Middle && s.Share.N > 1 {
		text += " in the middle trial"
	}
	return text
}
