package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// neverServed: who never came to serve, and why.
func neverServed(r *Report) []Finding {
	var all []findings.Nodes
	for i := range r.Syncs {
		n := r.Syncs[i].nodes()
		n.Where = r.syncName(&r.Syncs[i])
		all = append(all, n)
	}
	return findings.NeverServed(all)
}

// nodes are those of a cell that never came to serve, as rules look at them.
func (s *Synced) nodes() findings.Nodes {
	n := findings.Nodes{Left: s.unfinished(), Trials: s.Trials, Meant: !s.quiet() || s.troubled(), Least: math.NaN(), Most: math.NaN()}
	var ends []string
	for _, o := range record.Outcomes() {
		if k := s.Outcomes[o.String()]; k > 0 && o != record.OK {
			ends = append(ends, fmt.Sprintf("%s ×%d", o, k))
		}
	}
	n.Ends = strings.Join(ends, ", ")
	classes := map[string]int64{}
	for _, t := range s.trials {
		if t.served() {
			continue
		}
		if t.class != "" {
			classes[t.class]++
		}
		if x := t.share; !math.IsNaN(x) && !(n.Least <= x) {
			n.Least = x
		}
		if x := t.share; !math.IsNaN(x) && !(n.Most >= x) {
			n.Most = x
		}
	}
	names := sortedByCount(classes)
	n.Reasons = list(names[:min(3, len(names))])
	return n
}

// endWords say how those ended that never served, how far they were and why.
func (s *Synced) endWords() string {
	n := s.nodes()
	return n.Why()
}

// found is a ratio as rules look at it.
func (q Ratio) found() findings.Gain {
	return findings.Gain{Value: float64(q.Value), Lo: float64(q.Lo), Hi: float64(q.Hi), Shown: q.Shown, N: q.N}
}

// bestFound: the best configuration and how sure it is, for each set of conditions.
func bestFound(r *Report) []Finding {
	var all []findings.Best
	for _, t := range r.tunings() {
		if t.best != nil && t.base != nil && len(t.factors) > 0 {
			b := t.found()
			b.Place, b.Changed = r.place(t), r.changed(t.best)
			all = append(all, b)
		}
	}
	return findings.BestFound(all)
}

// found is the best of a tuning as rules look at it.
func (t *Tuning) found() findings.Best {
	b := findings.Best{Before: float64(t.before), After: float64(t.after), Gain: t.gain.found(), Of: t.Whole}
	for _, s := range t.cells {
		if s.unfinished() > 0 {
			b.Never++
		}
	}
	return b
}

// compared counts the configurations that the best is one of, and those that were
// not considered.
func (t *Tuning) compared() string {
	b := t.found()
	return b.Compared()
}

// effectsFound are the effects of each tuning as rules look at them.
func (r *Report) effectsFound() (all []findings.Effects) {
	for i := range r.Tunings {
		t := &r.Tunings[i]
		x := findings.Effects{Place: r.place(t), Trials: t.Trials, Freedom: t.Freedom, Warnings: t.Warnings}
		for j := range t.Effects {
			x.Of = append(x.Of, t.effectFound(&t.Effects[j]))
		}
		all = append(all, x)
	}
	return all
}

// found is an effect as rules look at it, but for what its factors are.
func (e *KnobEffect) found() findings.Effect {
	return findings.Effect{Name: e.name(), Two: e.interaction(), Gain: findings.Gain{Value: float64(e.Value), Lo: float64(e.Lo), Hi: float64(e.Hi), Shown: e.Shown},
		PHolm: float64(e.PHolm), Survivors: e.Survivors, Aliases: e.Aliases, Warn: e.Warn}
}

// effectFound is one with that, and with what each does given the other.
func (t *Tuning) effectFound(e *KnobEffect) findings.Effect {
	knob := func(i int) bool { return t.factors[e.factors[i]].knob() }
	x := e.found()
	x.Knobs = knob(0)
	if len(e.Given) == 4 {
		given := func(which int) findings.Given {
			level, other := &e.Of[which], &e.Of[1-which]
			with := e.Given[2*(1-which):]
			return findings.Given{What: level.name(), Other: other.Label + " is " + other.text, Knob: knob(which), With: [2]findings.Gain{with[0].found(), with[1].found()}}
		}
		x.Given = []findings.Given{given(1), given(0)}
	}
	return x
}

func interactionsFound(r *Report) []Finding { return findings.Interactions(r.effectsFound()) }
func nothingGained(r *Report) []Finding     { return findings.NoGain(r.effectsFound()) }
func cannotBeTold(r *Report) []Finding      { return findings.CannotTell(r.effectsFound()) }
func mixedUp(r *Report) []Finding           { return findings.Aliased(r.effectsFound()) }

// asGood: configurations that cannot be told from the best, those that change least
// first.
func asGood(r *Report) []Finding {
	var all []findings.Alike
	for _, t := range r.tunings() {
		x := findings.Alike{Place: r.place(t)}
		for _, a := range t.Alike {
			x.Of = append(x.Of, findings.AsGood{Changed: a.Changed, Gain: a.Ratio.found()})
		}
		all = append(all, x)
	}
	return findings.AsGoodAsBest(all)
}

func (r *Report) isBest(s *Synced) bool {
	for _, t := range r.tunings() {
		if t.best == s.cell {
			return true
		}
	}
	return false
}

// freshNodes are the times of all cells as rules look at them.
func (r *Report) freshNodes() (all []findings.Fresh) {
	for i := range r.Syncs {
		all = append(all, r.Syncs[i].fresh(r.syncName(&r.Syncs[i])))
	}
	return all
}

func slowReplays(r *Report) []Finding  { return findings.ReplayDisturbed(r.freshNodes()) }
func uselessPeers(r *Report) []Finding { return findings.UselessPeers(r.freshNodes()) }
func coarseSyncs(r *Report) []Finding  { return findings.CoarseSyncs(r.freshNodes()) }

// byCondition: where no knob varies, the conditions are what was asked about.
func byCondition(r *Report) []Finding {
	all := findings.Conditions{Knobs: slices.ContainsFunc(r.factors, func(f syncFactor) bool { return f.knob() })}
	first := map[string]*Synced{}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if first[s.System] == nil {
			first[s.System] = s
		}
		base := first[s.System]
		c := findings.Condition{Where: r.syncName(s), Trials: s.Trials, Left: s.unfinished(), Time: float64(s.time.Median), Lo: float64(s.time.Lo), Hi: float64(s.time.Hi)}
		if s != base {
			if xs, ys, _ := paired(s.cell.Metrics[r.headline], base.cell.Metrics[r.headline]); len(xs) > 0 {
				q := geometric(xs, ys).found()
				c.Against = &q
			}
		}
		all.Cells = append(all.Cells, c)
	}
	return findings.UnderConditions(all)
}

// busyHarnessSync: what measures must not be what limits.
func busyHarnessSync(r *Report) []Finding {
	var all []findings.CPUs
	for i := range r.Syncs {
		all = append(all, r.Syncs[i].cell.cpus(r.syncName(&r.Syncs[i])))
	}
	return findings.Harness(all)
}
