package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// Searched is a run that walked its knobs instead of executing all combinations.
type Searched struct {
	Tried, Planned int // combinations
	Trials         int // valid ones
	Walks          []Walk
}

// Walk is the search of one system.
type Walk struct {
	System        string
	Best          string // where it stands, in words
	Races         int
	Won, Open     int // of them; open: not decided
	Spent, Budget string
	Ended         string // as [record.Search] has it; empty: it is not at its end
}

// SearchTrust says how far a search is to be believed.
func SearchTrust(s Searched) []Finding {
	if s.Walks == nil {
		return nil
	}
	f := Finding{Rule: "search", Tone: Warn, Title: "The best was searched for, not all was tried",
		Text:     "The search changes one knob at a time from where it stands and keeps what races faster. It finds the best where knobs help independently; a pair that helps only together it may miss, and each race errs now and then. Effects and interactions rest on the combinations that it visited, and it is said where these do not tell them apart.",
		Evidence: []string{fmt.Sprintf("%d of %s were tried, in %s", s.Tried, words.Plural(int64(s.Planned), "combination", "combinations"), words.Plural(int64(s.Trials), "valid trial", "valid trials"))}}
	for _, w := range s.Walks {
		text := fmt.Sprintf("%s: %s, %d won; it stands at %s, after %s of %s", w.System, words.Plural(int64(w.Races), "race", "races"), w.Won, w.Best, w.Spent, w.Budget)
		switch {
		case w.Ended == record.SearchBudget:
			text += "; the budget ended it, so what it had not tried yet may be better"
		case w.Ended == "":
			text += "; it is not at its end"
		case w.Open > 0:
			text += fmt.Sprintf("; %s not decided", words.Plural(int64(w.Open), "race is", "races are"))
		}
		f.Evidence = append(f.Evidence, text)
	}
	return withEvidence(f)
}
