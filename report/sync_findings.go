package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// Limits from which on something is said of a fresh node's time.
const (
	// A time told by polls this share of it apart is a coarse one: the limit of swarms.
	coarseSync = findings.CoarseGap
	// A replay of more than so many times the time of the sync was disturbed.
	overReplay = 1.1
	// A warning must not stand in one of a hundred runs in which no knob does anything;
	// the table of effects shows those at 5 %.
	warnAlpha = 0.01
)

// neverServed: who never came to serve, and why.
func neverServed(r *Report) []Finding {
	bad := Finding{Rule: "never-served", Tone: Bad, Title: "Nodes never came to serve",
		Text: "Nothing was done to these trials, and still the fresh node stalled, ran out of time or failed. Such trials count as longer than any; a cell that has one is not called the best, and the effects of knobs are those of the trials that ended, which are not shown where these speak against them."}
	faulted := Finding{Rule: "never-served-faults", Tone: Warn, Title: "Faults or useless peers kept nodes from serving",
		Text: "With these faults or peers some fresh nodes never came to serve. Such trials count as longer than any; effects are those of the others, which are not shown where these speak against them."}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		n := s.unfinished()
		if n == 0 {
			continue
		}
		words := fmt.Sprintf("%s: %d of %s: %s", r.syncName(s), n, plural(int64(s.Trials), "trial", "trials"), s.endWords())
		if s.quiet() && !s.troubled() {
			bad.Evidence = append(bad.Evidence, words)
		} else {
			faulted.Evidence = append(faulted.Evidence, words)
		}
	}
	return withEvidence(bad, faulted)
}

// endWords count how those ended that never served, how far they were and why.
func (s *Synced) endWords() string {
	var words []string
	for _, o := range record.Outcomes() {
		if n := s.Outcomes[o.String()]; n > 0 && o != record.OK {
			words = append(words, fmt.Sprintf("%s ×%d", o, n))
		}
	}
	classes := map[string]int64{}
	lo, hi := 1.0, 0.0
	for _, t := range s.trials {
		if t.served() {
			continue
		}
		if t.class != "" {
			classes[t.class]++
		}
		if !math.IsNaN(t.share) {
			lo, hi = min(lo, t.share), max(hi, t.share)
		}
	}
	text := strings.Join(words, ", ")
	if names := sortedByCount(classes); len(names) > 0 {
		text += " (" + list(names[:min(3, len(names))]) + ")"
	}
	switch {
	case hi < lo:
	case hi == 0:
		text += "; none had a block"
	case hi-lo < 0.005:
		text += "; with " + percent(hi) + " of the chain"
	default:
		text += fmt.Sprintf("; with %s to %s of the chain", percent(lo), percent(hi))
	}
	return text
}

// fasterThanRate is an alarm: no chain comes faster than its links carry it.
func fasterThanRate(r *Report) []Finding {
	f := Finding{Rule: "beyond-line", Tone: Bad, Title: "Faster than the links can be",
		Text: "In these trials the chain was whole before the links can have carried it, by more than their tolerance. A link was not what it should be, bytes went another way, or the measurement is wrong. Do not believe these trials."}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		tolerance := float64(s.cell.plan.Link.Tolerance)
		if tolerance == 0 {
			tolerance = EffectFloor
		}
		n, most := 0, 0.0
		for _, t := range s.trials {
			line, chain := t.Metrics["link_line"], t.Metrics["chain_time"]
			if t.served() && line > 0 && chain > 0 && chain < line*(1-tolerance-findings.BeyondSlack) {
				n++
				most = max(most, line/chain)
			}
		}
		if n > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %d of %s, at up to %s of the line", r.syncName(s), n, plural(int64(s.Trials), "trial", "trials"), percent(most)))
		}
	}
	return withEvidence(f)
}

// bestFound: the best configuration and how sure it is, for each set of conditions.
func bestFound(r *Report) []Finding {
	f := Finding{Rule: "best", Tone: Good, Title: "The best configuration found",
		Text: "The configuration with the least time, of those that were tried and whose nodes always came to serve. Times are geometric means, where trials are missing in the mean of all repetitions, as the figure has them. The gain is a ratio of geometric means over trials of the same blocks; as the same trials chose it and tell its gain, the interval (at 99 %) allows for the choice, while the middle promises a little too much where others are close."}
	for _, t := range r.tunings() {
		if t.best == nil || t.base == nil || t.best == t.base || len(t.factors) == 0 {
			continue
		}
		if !t.gain.Shown {
			f.Tone = Neutral
		}
		q := gain(t.gain.Value, t.gain.Lo, t.gain.Hi)
		if !t.gain.Shown {
			q = "~ " + q
		}
		f.Evidence = append(f.Evidence, r.at(t, fmt.Sprintf("%s: %s against %s of the default, %s, from %s of trials of %s", r.changed(t.best), show(float64(t.after()), "s"), show(float64(t.before()), "s"), q,
			plural(int64(t.gain.N), "pair", "pairs"), t.compared())))
	}
	return withEvidence(f)
}

// compared counts the configurations that the best is one of, and those that were
// not considered.
func (t *Tuning) compared() string {
	words := plural(int64(t.Whole), "configuration", "configurations")
	never := 0
	for _, s := range t.cells {
		if s.unfinished() > 0 {
			never++
		}
	}
	if never > 0 {
		words += fmt.Sprintf(" (%d more not considered: nodes never came to serve)", never)
	}
	return words
}

// boughtFound: what each change is worth on the way from the default to the best.
func boughtFound(r *Report) []Finding {
	f := Finding{Rule: "bought", Tone: Neutral, Title: "What bought what",
		Text: "The changes of the best configuration one after the other, the one that gains most at each step first, and the share of the whole gain that each has on average over all orders (Shapley). Shares differ from steps where changes do more or less together."}
	for _, t := range r.tunings() {
		for i := range t.Steps {
			s := &t.Steps[i]
			words := fmt.Sprintf("%s: %s, %s → %s", s.To.name(), s.words(), show(float64(s.Before), "s"), show(float64(s.After), "s"))
			if s.Share.Known() {
				words += ", " + s.shareWords() + " of the gain"
			}
			if s.Model {
				words += " (computed from the effects: a combination on the way was not tried)"
			}
			f.Evidence = append(f.Evidence, r.at(t, words))
		}
	}
	return withEvidence(f)
}

// shareWords is a part of the gain with its interval. A change that costs time has a
// negative one: all of them add up to the whole.
func (s *BoughtStep) shareWords() string {
	w := s.shareText()
	if s.ShareLo.Known() && s.ShareHi.Known() {
		w += fmt.Sprintf(" (%s…%s)", minus(100*s.ShareLo), minus(100*s.ShareHi))
	}
	return w
}

// shareText is the part alone.
func (s *BoughtStep) shareText() string { return minus(100*s.Share) + " %" }

// givenWords say what a level does, once where the other factor is at its default
// and once where it is not.
func givenWords(what, other string, knob bool, with [2]Ratio) string {
	nothing, open := "gains nothing", "is not shown to gain"
	if !knob {
		nothing, open = "changes nothing", "is not shown to change anything"
	}
	say := func(q Ratio) string {
		switch {
		case !q.Value.Known():
			return "is not known"
		case !q.Shown && q.Lo.Known() && math.Abs(math.Log(float64(q.Lo))) < math.Log1p(EffectFloor) && math.Abs(math.Log(float64(q.Hi))) < math.Log1p(EffectFloor):
			return nothing + " (" + q.gainWords() + ")"
		case !q.Shown:
			return open + " (" + q.gainWords() + ")"
		case q.Value < 1:
			return "gains " + q.gainWords()
		}
		return "costs " + q.gainWords()
	}
	return fmt.Sprintf("%s %s, and %s once %s", what, say(with[0]), say(with[1]), other)
}

// interactionsFound: what two do together that neither does alone.
func interactionsFound(r *Report) []Finding {
	f := Finding{Rule: "interactions", Tone: Warn, Title: "Knobs that depend on each other",
		Text: "What these gain depends on where the other stands: measured one at a time, from one default, they would promise something else. Shown are pairs whose ratio of ratios differs from 1, at 1 % corrected for all effects that were looked at."}
	for i := range r.Tunings {
		t := &r.Tunings[i]
		for j := range t.Effects {
			e := &t.Effects[j]
			if !e.interaction() || !e.Shown || e.small() || !(e.PHolm <= warnAlpha) {
				continue
			}
			words := e.name() + ": " + e.words()
			if len(e.Given) == 4 {
				// The way round that says more: a knob under conditions, and one of which
				// something is shown on one side alone.
				one := givenWords(e.Of[1].name(), e.Of[0].Label+" is "+e.Of[0].text, t.factors[e.factors[1]].knob(), [2]Ratio{e.Given[0], e.Given[1]})
				two := givenWords(e.Of[0].name(), e.Of[1].Label+" is "+e.Of[1].text, t.factors[e.factors[0]].knob(), [2]Ratio{e.Given[2], e.Given[3]})
				a, b := t.factors[e.factors[0]].knob(), t.factors[e.factors[1]].knob()
				if a && !b || a == b && e.Given[2].Shown != e.Given[3].Shown && e.Given[0].Shown == e.Given[1].Shown {
					one = two
				}
				words += "; " + one
			}
			f.Evidence = append(f.Evidence, r.at(t, words))
		}
	}
	return withEvidence(f)
}

// nothingGained: knobs that are known to make no difference to speak of.
func nothingGained(r *Report) []Finding {
	f := Finding{Rule: "no-gain", Tone: Neutral, Title: "Knobs that change nothing to speak of",
		Text: "The whole interval of these lies within " + percent(EffectFloor) + " of no change, on average over the other knobs. Where one of them depends on another it is named above."}
	for i := range r.Tunings {
		t := &r.Tunings[i]
		for j := range t.Effects {
			if e := &t.Effects[j]; !e.interaction() && e.small() && r.knobs(t, e) {
				f.Evidence = append(f.Evidence, r.at(t, e.name()+": "+e.words()))
			}
		}
	}
	return withEvidence(f)
}

// knobs reports whether an effect is one of knobs alone.
func (r *Report) knobs(t *Tuning, e *KnobEffect) bool {
	for _, f := range e.factors {
		if !t.factors[f].knob() {
			return false
		}
	}
	return true
}

// cannotBeTold: effects that may be large and may be none.
func cannotBeTold(r *Report) []Finding {
	f := Finding{Rule: "cannot-tell", Tone: Neutral, Title: "What cannot be told",
		Text: "The intervals of these reach from no change to one that would matter, or exclude no change only as long as one does not count how many effects were looked at, or are those of the nodes that came to serve alone."}
	for i := range r.Tunings {
		t := &r.Tunings[i]
		var pairs []string
		for j := range t.Effects {
			e := &t.Effects[j]
			switch {
			case e.Survivors:
				f.Evidence = append(f.Evidence, r.at(t, e.name()+": "+e.words()+"; "+e.Warn))
			case e.Shown || e.small():
			case !e.Value.Known() || !e.Lo.Known():
				if e.Warn != "" && !e.interaction() {
					f.Evidence = append(f.Evidence, r.at(t, e.name()+": "+e.Warn))
				}
			case e.interaction():
				pairs = append(pairs, e.name()+" "+e.words())
			default:
				f.Evidence = append(f.Evidence, r.at(t, e.name()+": "+e.words()))
			}
		}
		if len(pairs) > 0 {
			f.Evidence = append(f.Evidence, r.at(t, "whether they depend on each other: "+some(pairs)))
		}
		if t.Freedom == 0 && len(t.Effects) > 0 {
			f.Evidence = append(f.Evidence, r.at(t, fmt.Sprintf("%s are as many as the effects: nothing is left to tell the noise from, so no effect has an interval; repeat", plural(int64(t.Trials), "trial", "trials"))))
		}
		for _, w := range t.Warnings {
			f.Evidence = append(f.Evidence, r.at(t, w))
		}
	}
	return withEvidence(f)
}

// asGood: configurations that cannot be told from the best, those that change least
// first.
func asGood(r *Report) []Finding {
	f := Finding{Rule: "as-good", Tone: Neutral, Title: "What is not shown to be slower than the best",
		Text: "These cannot be told from the best configuration found, those that change least of the default first: of those that are as fast it is the one to prefer, as each change has its price. A wide interval is no sign of being as fast; more repetitions tell."}
	for _, t := range r.tunings() {
		for i, a := range t.Alike {
			if i == 6 && len(t.Alike) > 7 {
				f.Evidence = append(f.Evidence, r.at(t, fmt.Sprintf("and %d more", len(t.Alike)-i)))
				break
			}
			what := a.Changed
			if what == "" {
				what = "the default"
			}
			f.Evidence = append(f.Evidence, r.at(t, fmt.Sprintf("%s: ~ %s of the best's time", what, showRange(a.Ratio.Value, a.Ratio.Lo, a.Ratio.Hi, "×"))))
		}
	}
	return withEvidence(f)
}

// mixedUp: a fraction of the design cannot tell all apart.
func mixedUp(r *Report) []Finding {
	f := Finding{Rule: "aliases", Tone: Warn, Title: "Effects that the design mixes",
		Text: "Not all combinations were executed, so these effects cannot be told from what stands beside them: an effect is that of the sum. It was taken for that of the simplest."}
	for i := range r.Tunings {
		t := &r.Tunings[i]
		var pairs []string
		for j := range t.Effects {
			e := &t.Effects[j]
			if len(e.Aliases) == 0 {
				continue
			}
			words := e.name() + " with " + list(e.Aliases)
			if e.interaction() {
				pairs = append(pairs, words)
			} else {
				f.Evidence = append(f.Evidence, r.at(t, words))
			}
		}
		if len(pairs) > 0 {
			f.Evidence = append(f.Evidence, r.at(t, "pairs: "+some(pairs)))
		}
	}
	return withEvidence(f)
}

func (r *Report) isBest(s *Synced) bool {
	for _, t := range r.tunings() {
		if t.best == s.cell {
			return true
		}
	}
	return false
}

// slowReplays: a replay that others disturbed is no bound.
func slowReplays(r *Report) []Finding {
	f := Finding{Rule: "replay-disturbed", Tone: Warn, Title: "Faster than the replay",
		Text: "The nodes were faster than the same program with the same blocks from a local file and without a network. The replay was disturbed, by other work on the machine or its disk: its time is no load line, and nothing is said of what these are bound by."}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if s.fasterThanReplay() {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: serves after %s, the replay took %s", r.syncName(s), show(s.metric("sync_time"), "s"), show(s.metric("replay"), "s")))
		}
	}
	return withEvidence(f)
}

// byCondition: where no knob varies, the conditions are what was asked about.
func byCondition(r *Report) []Finding {
	if len(r.Syncs) < 2 || slices.ContainsFunc(r.factors, func(f syncFactor) bool { return f.knob() }) {
		return nil
	}
	f := Finding{Rule: "conditions", Tone: Neutral, Title: "The time under each condition",
		Text: "No knob was varied, so these are one configuration under different conditions: geometric means with their intervals, and the ratio to the first in trials of the same repetitions."}
	first := map[string]*Synced{}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		base := first[s.System]
		if base == nil {
			base, first[s.System] = s, s
		}
		words := r.syncName(s) + ": "
		switch {
		case s.Trials == 0:
			words += "no valid trial"
		case !s.time.Median.Known():
			words += fmt.Sprintf("%d of %d never served", s.unfinished(), s.Trials)
		default:
			words += r.syncTime(s.cell)
			if s != base {
				if xs, ys := paired(s.cell.Metrics[r.headline], base.cell.Metrics[r.headline]); len(xs) > 0 {
					words += ", " + geometric(xs, ys).gainWords()
				}
			}
			if n := s.unfinished(); n > 0 {
				words += fmt.Sprintf("; %d of %d never served", n, s.Trials)
			}
		}
		f.Evidence = append(f.Evidence, words)
	}
	return withEvidence(f)
}

// uselessPeers: requests in vain, and peers that gave nothing.
func uselessPeers(r *Report) []Finding {
	f := Finding{Rule: "useless-peers", Tone: Neutral, Title: "Timeouts and useless peers",
		Text: "Medians over trials. A peer is useful when it delivered a block; a request that timed out is asked again elsewhere, and the wait for it is lost."}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		timeouts, again, useful := s.metric("timeouts"), s.metric("rerequests"), s.metric("useful_share")
		if !(timeouts > 0 || again > 0 || useful < 1) {
			continue
		}
		var words []string
		if timeouts > 0 {
			words = append(words, plural(int64(math.Round(timeouts)), "timeout", "timeouts"))
		}
		if again > 0 {
			words = append(words, plural(int64(math.Round(again)), "request", "requests")+" in vain, timeouts among them")
		}
		if useful < 1 {
			words = append(words, percent(useful)+" of the peers useful")
		}
		if v := s.metric("peer_share_max"); v > 0 && s.cell.plan.Sync.Peers > 1 {
			words = append(words, fmt.Sprintf("%s of the blocks from one peer", percent(v)))
		}
		f.Evidence = append(f.Evidence, r.syncName(s)+": "+strings.Join(words, ", "))
	}
	return withEvidence(f)
}

// coarseSyncs: a time is as exact as the polls that tell it.
func coarseSyncs(r *Report) []Finding {
	f := Finding{Rule: "coarse", Tone: Warn, Title: "Times are coarse",
		Text: "The polls that tell the times lie far apart for what they measure: a time may be too long by as much, and never too short."}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		gap, at := s.metric("resolution"), s.metric("sync_time")
		if gap > coarseSync*at {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s between polls, %s until it serves", r.syncName(s), show(gap, "s"), show(at, "s")))
		}
	}
	return withEvidence(f)
}

// busyHarnessSync: what measures must not be what limits.
func busyHarnessSync(r *Report) []Finding {
	var all []findings.CPUs
	for i := range r.Syncs {
		all = append(all, r.Syncs[i].cell.cpus(r.syncName(&r.Syncs[i])))
	}
	return findings.Harness(all)
}
