package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/stats"
)

// Gate is the goal of a cell: a time may be no more than so much longer than the
// baseline's.
type Gate struct {
	Metric string `json:"metric"`
	Most   Num    `json:"most"` // the largest ratio that meets the goal
	N      int    `json:"n"`    // pairs of trials
	Ratio  Num    `json:"ratio"`
	Lo     Num    `json:"lo"`
	Hi     Num    `json:"hi"`
	State  string `json:"state"` // "met", "not met", "cannot be told"
	Why    string `json:"why"`
}

// States of a gate.
const (
	gateMet    = "met"
	gateMissed = "not met"
	gateOpen   = "cannot be told"
)

// gateMetrics are the times that the goal is asked of: the study's own, half of
// the leechers, first.
var gateMetrics = []string{"time_median", "time_last"}

// gateWords is the goal in words.
func (r *Report) gateWords() string {
	for _, c := range r.Cells {
		if d := c.plan.Disseminate; d != nil {
			return "at most " + percent(float64(d.Gate)) + " slower than " + r.Baseline
		}
	}
	return ""
}

// gateMost is the largest ratio that meets the goal.
func (r *Report) gateMost() float64 {
	for _, c := range r.Cells {
		if d := c.plan.Disseminate; d != nil {
			return 1 + float64(d.Gate)
		}
	}
	return 1
}

// gates judges a cell against the baseline's.
func (r *Report) gates(s *Swarm) []Gate {
	if r.Baseline == "" || s.cell.Baseline {
		return nil
	}
	var base *Swarm
	for i := range r.Swarms {
		if b := &r.Swarms[i]; b.cell.Baseline && b.cell.Group == s.cell.Group {
			base = b
		}
	}
	if base == nil {
		return nil
	}
	var all []Gate
	for _, key := range gateMetrics {
		all = append(all, r.gate(s, base, key))
	}
	return all
}

// gate decides by the interval of the ratio: it must lie on one side of the goal.
// Fewer pairs than give an interval decide nothing. A trial that never came to
// the time was slower than any: then the interval of the median of the pairs' own
// ratios, which bears infinite ones, stands in for that of the ratio of medians.
func (r *Report) gate(s, base *Swarm, key string) Gate {
	g := Gate{Metric: key, Most: Num(r.gateMost()), Ratio: unknown, Lo: unknown, Hi: unknown, State: gateOpen}
	gone, without := s.beyond(key), base.beyond(key)
	switch {
	case s.Trials == 0:
		g.Why = "no valid trial"
		return g
	case base.Trials == 0:
		g.Why = r.Baseline + " has no valid trial"
		return g
	case without > 0:
		g.Why = fmt.Sprintf("%s itself never came to it in %d of %s", r.Baseline, without, plural(int64(base.Trials), "trial", "trials"))
		return g
	case gone == s.Trials && gone > 1:
		g.State, g.N = gateMissed, gone
		g.Why = "it never came to it in any of " + plural(int64(gone), "trial", "trials")
		return g
	case gone > 0:
		return s.beyondGate(base, key, g)
	}
	q, ok := s.cell.Ratios[key]
	if !ok || !q.Value.Known() {
		g.Why = "no block in which both have a valid trial"
		return g
	}
	g.N, g.Ratio, g.Lo, g.Hi = q.N, q.Value, q.Lo, q.Hi
	return g.decide(q.N < fewestForPlusMinus || !q.Lo.Known() || !q.Hi.Known())
}

// beyondGate judges where some of the trials never came to the time.
func (s *Swarm) beyondGate(base *Swarm, key string, g Gate) Gate {
	var ratios []float64
	for _, t := range s.trials {
		at := slices.IndexFunc(base.trials, func(b swarmTrial) bool { return b.Block == t.Block })
		if at < 0 {
			continue
		}
		y, ok := base.trials[at].Metrics[key]
		if !ok || y <= 0 {
			continue
		}
		x, told := t.Metrics[key]
		if !told {
			x = math.Inf(1)
		}
		ratios = append(ratios, x/y)
	}
	g.N = len(ratios)
	if g.N == 0 {
		g.Why = "no block in which both have a valid trial"
		return g
	}
	i := stats.MedianCI(ratios, Confidence)
	// An upper end of +∞ is one that is known: some trials never came to it.
	few := i.Conf < Confidence || math.IsInf(i.Lo, -1)
	if !math.IsInf(i.Mid, 0) {
		g.Ratio = Num(i.Mid)
	}
	if !few {
		g.Lo, g.Hi = Num(i.Lo), Num(i.Hi)
	}
	g = g.decide(few)
	g.Why += fmt.Sprintf("; in %d of %s it never came to it", s.beyond(key), plural(int64(s.Trials), "trial", "trials"))
	return g
}

// decide compares the interval with the goal.
func (g Gate) decide(few bool) Gate {
	n := plural(int64(g.N), "pair of trials", "pairs of trials")
	switch {
	case few:
		g.State, g.Why = gateOpen, fmt.Sprintf("too few trials for an interval (%s)", n)
	case float64(g.Lo) > float64(g.Most):
		g.State, g.Why = gateMissed, "the whole interval lies beyond the goal"
	case float64(g.Hi) <= float64(g.Most):
		g.State, g.Why = gateMet, "the whole interval lies within the goal"
	default:
		g.State, g.Why = gateOpen, "the goal lies within the interval"
	}
	return g
}

// gateOf is the goal of one metric; nil: there is none.
func (s *Swarm) gateOf(key string) *Gate {
	for i := range s.Gates {
		if s.Gates[i].Metric == key {
			return &s.Gates[i]
		}
	}
	return nil
}

// words is the ratio that a gate was decided by.
func (g *Gate) words() string {
	if !g.Ratio.Known() {
		return "no ratio"
	}
	if math.IsInf(float64(g.Hi), 1) && g.Lo.Known() {
		return fmt.Sprintf("%s (%s–∞)", show(float64(g.Ratio), "×"), digits(float64(g.Lo), 3))
	}
	return showRange(g.Ratio, g.Lo, g.Hi, "×")
}

func (g *Gate) entry() Entry {
	if g == nil {
		return Entry{Text: "–"}
	}
	return Entry{Text: g.State, Raw: g.State, Tone: map[string]Tone{gateMet: Good, gateMissed: Bad, gateOpen: Neutral}[g.State]}
}
