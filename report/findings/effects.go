package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Effects are what the knobs of one system do under one set of conditions, or over all
// of them.
type Effects struct {
	Place    string
	Trials   int
	Freedom  int // degrees of freedom of the noise; 0: there is nothing to tell it from
	Of       []Effect
	Warnings []string
}

// Effect is a ratio of times: of a level to the default, or, of two knobs that may
// depend on each other, by what the one ratio is multiplied by the other.
type Effect struct {
	Name      string // "storage ram", "storage ram × subscribers none"
	Two       bool   // of two knobs
	Knobs     bool   // of what one can choose, and no condition
	Gain      Gain
	PHolm     float64 // corrected for all effects that were looked at; NaN: not known
	Survivors bool    // that of the trials that came to serve, which the others speak against
	Aliases   []string
	Warn      string
	// Of two: what the one does while the other is at its default, and while it is not,
	// then the other way round; empty: that is not known.
	Given []Given
}

// Given is what a level does while another factor is at its default and while not.
type Given struct {
	What  string // the level
	Other string // "subscribers is none"
	Knob  bool   // the level is of a knob, and no condition
	With  [2]Gain
}

// effectAlpha is the level at which knobs are said to depend on each other: a warning
// must not stand in one of a hundred runs in which no knob does anything; the table of
// effects shows those at 5 %.
const effectAlpha = 0.01

// Small reports whether the effect is known, and none to speak of.
func (e *Effect) Small() bool { return !e.Survivors && e.Gain.small() }

// Words is the effect in numbers, with "~" when nothing is shown.
func (e *Effect) Words() string {
	if !e.Two {
		return e.Gain.Words()
	}
	s := words.Range(e.Gain.Value, e.Gain.Lo, e.Gain.Hi, "×")
	if !e.Gain.Shown && e.Gain.known() {
		s = "~ " + s
	}
	return s
}

// Interactions names pairs of which each does what it does only together with the
// other.
func Interactions(all []Effects) []Finding {
	f := Finding{Rule: "interactions", Tone: Warn, Title: "Knobs that depend on each other",
		Text: "What these gain depends on where the other stands: measured one at a time, from one default, they would promise something else. Shown are pairs whose ratio of ratios differs from 1, at 1 % corrected for all effects that were looked at."}
	each(all, func(t *Effects, e *Effect) {
		if !e.Two || !e.Gain.Shown || e.Small() || !(e.PHolm <= effectAlpha) {
			return
		}
		s := e.Name + ": " + e.Words()
		if len(e.Given) == 2 {
			s += "; " + tellingOf(e.Given[0], e.Given[1]).words()
		}
		f.Evidence = append(f.Evidence, at(t.Place, s))
	})
	return withEvidence(f)
}

// each calls do for every effect.
func each(all []Effects, do func(*Effects, *Effect)) {
	for i := range all {
		for j := range all[i].Of {
			do(&all[i], &all[i].Of[j])
		}
	}
}

// tellingOf is the way round that says more: a knob under conditions, and one of which
// something is shown on one side alone.
func tellingOf(one, two Given) Given {
	if two.Knob && !one.Knob || one.Knob == two.Knob && two.With[0].Shown != two.With[1].Shown && one.With[0].Shown == one.With[1].Shown {
		return two
	}
	return one
}

// words say what a level does, once where the other factor is at its default and once
// where it is not.
func (g Given) words() string {
	nothing, open := "gains nothing", "is not shown to gain"
	if !g.Knob {
		nothing, open = "changes nothing", "is not shown to change anything"
	}
	say := func(q Gain) string {
		switch {
		case !q.known():
			return "is not known"
		case !q.Shown && q.small():
			return nothing + " (" + q.Words() + ")"
		case !q.Shown:
			return open + " (" + q.Words() + ")"
		case q.Value < 1:
			return "gains " + q.Words()
		}
		return "costs " + q.Words()
	}
	return fmt.Sprintf("%s %s, and %s once %s", g.What, say(g.With[0]), say(g.With[1]), g.Other)
}

// NoGain names knobs that are known to make no difference to speak of.
func NoGain(all []Effects) []Finding {
	f := Finding{Rule: "no-gain", Tone: Neutral, Title: "Knobs that change nothing to speak of",
		Text: "The whole interval of these lies within " + words.Percent(EffectFloor) + " of no change, on average over the other knobs. Where one of them depends on another it is named above."}
	each(all, func(t *Effects, e *Effect) {
		if !e.Two && e.Knobs && e.Small() {
			f.Evidence = append(f.Evidence, at(t.Place, e.Name+": "+e.Words()))
		}
	})
	return withEvidence(f)
}

// CannotTell names effects that may be large and may be none.
func CannotTell(all []Effects) []Finding {
	f := Finding{Rule: "cannot-tell", Tone: Neutral, Title: "What cannot be told",
		Text: "The intervals of these reach from no change to one that would matter, or exclude no change only as long as one does not count how many effects were looked at, or are those of the nodes that came to serve alone."}
	for i := range all {
		t := &all[i]
		say := func(s string) { f.Evidence = append(f.Evidence, at(t.Place, s)) }
		var pairs []string
		for j := range t.Of {
			e := &t.Of[j]
			switch {
			case e.Survivors:
				say(e.Name + ": " + e.Words() + "; " + e.Warn)
			case e.Gain.Shown || e.Small():
			case !e.Gain.known() || e.Gain.Lo-e.Gain.Lo != 0:
				if e.Warn != "" && !e.Two {
					say(e.Name + ": " + e.Warn)
				}
			case e.Two:
				pairs = append(pairs, e.Name+" "+e.Words())
			default:
				say(e.Name + ": " + e.Words())
			}
		}
		if len(pairs) > 0 {
			say("whether they depend on each other: " + words.Some(pairs))
		}
		if t.Freedom == 0 && len(t.Of) > 0 {
			say(fmt.Sprintf("%s are as many as the effects: nothing is left to tell the noise from, so no effect has an interval; repeat", words.Plural(int64(t.Trials), "trial", "trials")))
		}
		for _, w := range t.Warnings {
			say(w)
		}
	}
	return withEvidence(f)
}

// Aliased names effects that a fraction of a design cannot tell apart.
func Aliased(all []Effects) []Finding {
	f := Finding{Rule: "aliases", Tone: Warn, Title: "Effects that the design mixes",
		Text: "Not all combinations were executed, so these effects cannot be told from what stands beside them: an effect is that of the sum. It was taken for that of the simplest."}
	for i := range all {
		t := &all[i]
		var pairs []string
		for j := range t.Of {
			e := &t.Of[j]
			if len(e.Aliases) == 0 {
				continue
			}
			s := e.Name + " with " + words.List(e.Aliases)
			if e.Two {
				pairs = append(pairs, s)
			} else {
				f.Evidence = append(f.Evidence, at(t.Place, s))
			}
		}
		if len(pairs) > 0 {
			f.Evidence = append(f.Evidence, at(t.Place, "pairs: "+words.Some(pairs)))
		}
	}
	return withEvidence(f)
}
