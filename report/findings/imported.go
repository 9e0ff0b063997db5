package findings

import (
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Source is where numbers come from that another program measured.
type Source struct {
	Format  string   // of what was read; empty: nothing was
	From    []string // names of the files
	Unknown []string // what they do not tell
	Notes   []string
}

// Imported says that numbers are another program's.
func Imported(s Source) []Finding {
	if s.Format == "" {
		return nil
	}
	return []Finding{{Rule: "imported", Tone: Warn, Title: "These numbers were imported",
		Text:     fmt.Sprintf("They were read from %s (%s), not measured by this program: what it would have checked is not known.", s.Format, words.List(s.From)),
		Evidence: append(slices.Clone(s.Unknown), s.Notes...)}}
}
