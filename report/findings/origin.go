package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Origin is what is known of which of files, bytes and time makes a load test slower.
type Origin struct {
	Name     string
	Designed bool // it varied them apart from one another
	Causes   []Cause
	// Else: what grew, and how closely they rose together.
	Growths     []Growing
	Correlation float64 // the least of any two of files, bytes and hours; NaN: not known
	N           int     // over so many polls
}

// Cause is what a designed experiment tells of one quantity.
type Cause struct {
	What string
	By   []string
	Told bool
	Why  string // in words
	Call bool   // it is the latency of a single call, which is in the table only
}

// Origins says which it is, or that it cannot be told.
func Origins(all []Origin) []Finding {
	told := Finding{Rule: "attributed", Tone: Warn, Title: "What makes it slower",
		Text: "The designed experiment varied files, bytes and idle time apart from one another; this is what each does while the others are held."}
	open := Finding{Rule: "not-attributed", Tone: Neutral, Title: "Files, bytes and time cannot be told apart",
		Text: "In these tests the number of files, the bytes and the elapsed time rose together, so whatever grew with one grew with all."}
	unclear := Finding{Rule: "attribution-unclear", Tone: Neutral, Title: "The designed experiment does not tell what makes it slower",
		Text: "Files, bytes and idle time were varied apart from one another, and what is left is too little, or too noisy, to name one of them."}
	nothing := Finding{Rule: "attributed-none", Tone: Good, Title: "Neither files, bytes nor time makes it slower",
		Text: "The designed experiment varied files, bytes and idle time apart from one another, and none of them moves these."}
	for i := range all {
		o := &all[i]
		if !o.Designed {
			if grew := o.grew(); grew != nil {
				open.Evidence = append(open.Evidence, o.Name+": "+words.List(grew)+o.together())
			}
			continue
		}
		for _, c := range o.Causes {
			f := &unclear
			switch {
			case c.Call:
				continue
			case c.Told && len(c.By) > 0:
				f = &told
			case c.Told:
				f = &nothing
			}
			f.Evidence = append(f.Evidence, o.Name+", "+c.What+": "+c.Why)
		}
	}
	return withEvidence(told, unclear, nothing, open)
}

// grew is what changed, single calls aside.
func (o *Origin) grew() (what []string) {
	for i := range o.Growths {
		if g := &o.Growths[i]; g.Moves() && !g.oneCall() {
			what = append(what, g.What)
		}
	}
	return what
}

// together says how closely files, bytes and time rose together.
func (o *Origin) together() string {
	if o.N == 0 {
		return ""
	}
	return fmt.Sprintf(" (correlations of files, bytes and hours: at least %s, n = %s)", words.Digits(o.Correlation, 3), words.Count(int64(o.N)))
}
