package findings

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Growing is how one quantity of a load test changes from its first quarter to its last.
type Growing struct {
	Name        string // of the load test
	What        string // "API latency"
	Unit        string
	N           int // points
	First, Last float64
	Change      float64 // relative
	Lo, Hi      float64 // its interval
	Shown       bool    // it changes
}

// LeastChange is the relative change below which growth is not worth a warning, and
// SmallGrowth that which has to be excluded for something to be called flat.
const (
	LeastChange = 0.05
	SmallGrowth = 0.1
)

// worse is the sign of a change to the worse; 0: neither direction is.
func (g *Growing) worse() float64 {
	switch {
	case g.What == apiLatency, strings.HasPrefix(g.What, "time to"), g.oneCall():
		return 1
	case strings.HasSuffix(g.What, "bandwidth"):
		return -1
	}
	return 0
}

// Slows reports a change to the worse that matters.
func (g *Growing) Slows() bool { return g.Shown && g.worse()*g.Change >= LeastChange }

func (g *Growing) flat() bool { return g.worse() != 0 && g.Lo > -SmallGrowth && g.Hi < SmallGrowth }

// words say how it changes: "last quarter 310 s against first quarter 3 s (+10233 %, +9800 to +10700)".
func (g *Growing) words() string {
	return fmt.Sprintf("last quarter %s against first quarter %s (%s); n = %s", words.Show(g.Last, g.Unit), words.Show(g.First, g.Unit), g.ChangeWords(), words.Count(int64(g.N)))
}

// ChangeWords is the change in percent, with its interval.
func (g *Growing) ChangeWords() string {
	p := func(v float64) string { return fmt.Sprintf("%+.0f", 100*v) }
	switch {
	case g.Change != g.Change:
		return "–"
	case g.Lo != g.Lo || g.Hi != g.Hi:
		return p(g.Change) + " %"
	}
	return p(g.Change) + " %, " + p(g.Lo) + " to " + p(g.Hi)
}

// oneCall reports whether it is the latency of a single call, of which there are many.
func (g *Growing) oneCall() bool { return strings.HasPrefix(g.What, "latency of ") }

const apiLatency = "API latency"

// Slowing says what slows down during a load test, and what is flat. Single calls
// count only where not every poll makes all of them.
func Slowing(all []Growing) []Finding {
	slows := Finding{Rule: "slows-down", Tone: Warn, Title: "Slows down with load",
		Text: "Medians of the last quarter of the test against those of the first, with the interval of the change. Files, bytes and time grow together in a load test: this does not say which of them does it."}
	flat := Finding{Rule: "flat", Tone: Neutral, Title: "Flat over the whole test",
		Text: "The medians of the first and the last quarter differ by less than " + words.Percent(SmallGrowth) + ", with their whole interval."}
	whole := map[string]bool{}
	for i := range all {
		if g := &all[i]; g.What == apiLatency {
			whole[g.Name] = true
		}
	}
	for i := range all {
		g := &all[i]
		switch evidence := g.Name + ", " + g.What + ": " + g.words(); {
		case g.oneCall() && whole[g.Name]:
		case g.Slows():
			slows.Evidence = append(slows.Evidence, evidence)
		case g.flat():
			flat.Evidence = append(flat.Evidence, evidence)
		}
	}
	return withEvidence(slows, flat)
}
