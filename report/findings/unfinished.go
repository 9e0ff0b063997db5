package findings

import "github.com/plimsoll-project/plimsoll/internal/words"

// Unfinished are the load tests of a run that have not come to an end of their own.
type Unfinished struct {
	Tests   []Going
	Running bool   // the run is still being executed
	Resume  string // the command that goes on with it
	Stores  bool   // and stores objects, rather than only watching
}

// Going is one of them.
type Going struct {
	Name    string
	Seconds float64 // so far
	Stores  bool    // objects; else it is only watched
	Stored  int64
	Set     int64 // 0: not known
}

// Partial says so: what is not over must not pass for a result.
func Partial(u Unfinished) []Finding {
	safe := ""
	if u.Stores {
		safe = "; nothing is stored twice"
	}
	f := Finding{Rule: "partial", Tone: Warn, Title: "This is not the end",
		Text: "These load tests have not come to an end of their own: what is said here is so far.",
		Try:  "Go on with `" + u.Resume + "`" + safe + "."}
	if u.Running {
		f.Text = "These load tests are still running: the numbers here are those so far."
		f.Try = ""
	}
	for _, g := range u.Tests {
		s := g.Name + ": " + words.Moment(g.Seconds) + " so far"
		if g.Stores {
			s += ", " + SoFar(g.Stored, g.Set)
		}
		f.Evidence = append(f.Evidence, s)
	}
	return withEvidence(f)
}
