package findings

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Growing is how one quantity of a load test changes from its beginning to its end.
// NaN: not known.
type Growing struct {
	Name   string // of the load test
	What   string // "API latency"
	Unit   string
	N      int    // points
	Class  string // of growth
	Best   string // also when the class is unclear; empty: there are too few points
	Fits   bool   // the best class describes it
	Level  float64
	First  float64 // where it changes: at the beginning
	Last   float64 // and at the end
	Change float64 // relative
	Lo, Hi float64 // its interval; where no growth is shown, only what is not excluded
	Shown  bool    // it changes, and the interval excludes 0
	Why    string
	Else   []string // classes against files and bytes, where they are others: "files: linear"
}

// LeastChange is the relative change below which growth is not worth a warning: what
// differs by so little nobody notices.
const LeastChange = 0.05

func (g *Growing) bounded() bool { return g.Lo-g.Lo == 0 && g.Hi-g.Hi == 0 }

// Moves reports whether it changes at all, in whichever direction, by so much that it
// matters.
func (g *Growing) Moves() bool {
	return g.Shown && (g.Change >= LeastChange || g.Change <= -LeastChange)
}

// outlook is what became of something that had better not change in one direction.
type outlook int

const (
	unsettled outlook = iota // neither is shown
	worse                    // a change to the worse that matters
	notWorse                 // a change to the worse that would matter is excluded
)

// gets says which; sign is that of a change to the worse.
func (g *Growing) gets(sign float64) outlook {
	switch {
	case g.Shown && sign*g.Change >= LeastChange:
		return worse
	case g.Class == string(stats.Constant), g.Shown && sign*g.Change < 0,
		g.bounded() && g.Lo > -stats.SmallGrowth && g.Hi < stats.SmallGrowth:
		return notWorse
	}
	return unsettled
}

// words say how it grows: "3 s → 310 s (+10233 %, +9800 to +10700), linear with time".
func (g *Growing) words() string {
	s := g.ChangeWords()
	switch {
	case g.Level-g.Level == 0:
		s = fmt.Sprintf("%s (%s), %s with time", words.Show(g.Level, g.Unit), s, g.class())
	case g.First-g.First == 0:
		s = fmt.Sprintf("%s → %s (%s), %s with time", words.Show(g.First, g.Unit), words.Show(g.Last, g.Unit), s, g.class())
	default:
		s = g.Why
	}
	s += fmt.Sprintf("; n = %s", words.Count(int64(g.N)))
	for _, other := range g.Else {
		s += "; against " + other
	}
	return s
}

// ChangeWords is the change in percent, with what bounds it.
func (g *Growing) ChangeWords() string {
	p := func(v float64) string { return fmt.Sprintf("%+.0f", 100*v) }
	known := g.Change-g.Change == 0
	switch {
	case known && g.bounded():
		return p(g.Change) + " %, " + p(g.Lo) + " to " + p(g.Hi)
	case known:
		return p(g.Change) + " %, without bounds"
	case g.bounded():
		return "a change of " + p(g.Lo) + " to " + p(g.Hi) + " % is not excluded"
	}
	return "no change is excluded"
}

func (g *Growing) class() string { return ClassWords(g.Best, g.Class, g.Fits) }

// ClassWords names a class of growth, with the best where it is unclear.
func ClassWords(best, class string, fits bool) string {
	switch {
	case best == "":
		return "not to be told"
	case !fits:
		return "in no class of growth"
	case class == "unclear":
		return "class unclear, best " + best
	}
	return class
}

// oneCall reports whether it is the latency of a single call, of which there are many.
func (g *Growing) oneCall() bool { return strings.HasPrefix(g.What, "latency of ") }

// LatencyGrows looks at the latency of the API: of single calls only where that of all
// together was not judged.
func LatencyGrows(all []Growing) []Finding {
	const text = "The time of all calls of a poll together, from the beginning of the test to its end; of each call, where not every poll makes all of them."
	whole := map[string]bool{}
	for i := range all {
		if g := &all[i]; g.What == apiLatency {
			whole[g.Name] = true
		}
	}
	return growths(all, func(g *Growing) bool { return g.What == apiLatency || g.oneCall() && !whole[g.Name] }, 1,
		Finding{Rule: "latency-grows", Tone: Warn, Title: "The API gets slower", Text: text},
		Finding{Rule: "latency-flat", Tone: Neutral, Title: "The API does not get slower", Text: text},
		Finding{Rule: "latency-unclear", Tone: Neutral, Title: "Whether the API gets slower cannot be told", Text: text})
}

const apiLatency = "API latency"

// StoreTimeGrows looks at the time that objects take.
func StoreTimeGrows(all []Growing) []Finding {
	const text = "The time from a put to its acceptance, and to full redundancy."
	return growths(all, func(g *Growing) bool { return strings.HasPrefix(g.What, "time to") }, 1,
		Finding{Rule: "store-time-grows", Tone: Warn, Title: "Storing an object takes longer and longer", Text: text},
		Finding{Rule: "store-time-flat", Tone: Neutral, Title: "Storing an object does not take longer with time", Text: text},
		Finding{Rule: "store-time-unclear", Tone: Neutral, Title: "Whether storing an object takes longer with time cannot be told", Text: text})
}

// BandwidthFalls looks at bandwidths.
func BandwidthFalls(all []Growing) []Finding {
	const text = "File and absolute bytes per second, over stretches of equal time."
	return growths(all, func(g *Growing) bool { return strings.HasSuffix(g.What, "bandwidth") }, -1,
		Finding{Rule: "bandwidth-falls", Tone: Warn, Title: "Bandwidth falls", Text: text},
		Finding{Rule: "bandwidth-flat", Tone: Neutral, Title: "Bandwidth does not fall", Text: text},
		Finding{Rule: "bandwidth-unclear", Tone: Neutral, Title: "Whether bandwidth falls cannot be told", Text: text})
}

// growths tell what gets worse (in the direction of sign), what does not, and what may
// or may not.
func growths(all []Growing, of func(*Growing) bool, sign float64, gets, flat, open Finding) []Finding {
	flat.Text += " It changed to the better, or a change beyond " + words.Percent(stats.SmallGrowth) + " is excluded."
	open.Text += " Neither is a change to the worse shown, nor one beyond " + words.Percent(stats.SmallGrowth) + " excluded: the run is too short for it, or the values too uneven."
	found := map[outlook]*Finding{worse: &gets, notWorse: &flat, unsettled: &open}
	for i := range all {
		if g := &all[i]; of(g) {
			f := found[g.gets(sign)]
			f.Evidence = append(f.Evidence, g.Name+", "+g.What+": "+g.words())
		}
	}
	return withEvidence(gets, flat, open)
}
