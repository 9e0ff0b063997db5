package report

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// gateMetrics are the times that the goal of disseminate.gate is asked of: the
// study's own, half of the leechers, first.
var gateMetrics = []string{"time_median", "time_last"}

// gateShare is how much longer than the baseline a system may take; false: no goal is
// set.
func (r *Report) gateShare() (experiment.Fraction, bool) {
	for _, c := range r.Cells {
		if d := c.plan.Disseminate; d != nil {
			return d.Gate, d.Gate > 0
		}
	}
	return 0, false
}

// gateWords is the goal in words.
func (r *Report) gateWords() string {
	share, ok := r.gateShare()
	if !ok {
		return ""
	}
	return "at most " + percent(float64(share)) + " slower than " + r.Baseline
}

// gateMost is the largest ratio that meets the goal.
func (r *Report) gateMost() float64 {
	share, _ := r.gateShare()
	return 1 + float64(share)
}

// goalRules are the goal as gates: each time within the share of the baseline.
func (r *Report) goalRules() []gate.Rule {
	share, ok := r.gateShare()
	if !ok || r.Baseline == "" {
		return nil
	}
	var rules []gate.Rule
	for _, key := range gateMetrics {
		if _, ok := r.metric(key); ok {
			rules = append(rules, gate.Rule{Text: fmt.Sprintf("%s within %s of %s", key, share, r.Baseline), Metric: key, Kind: gate.Within, Share: float64(share), System: r.Baseline})
		}
	}
	return rules
}

// gateOf is what the goal of one metric says of a cell; nil: there is none.
func (r *Report) gateOf(s *Swarm, key string) *CellRuling {
	for i := range r.Gates {
		g := &r.Gates[i]
		if !g.Goal || g.metric != key {
			continue
		}
		for k := range g.Cells {
			if g.Cells[k].cell == s.cell {
				return &g.Cells[k]
			}
		}
	}
	return nil
}

// goalEntry is a goal in a table.
func goalEntry(d *CellRuling) Entry {
	if d == nil {
		return Entry{Text: "–"}
	}
	word := map[string]string{RulePass: "met", RuleFail: "not met", RuleOpen: "cannot be told"}[d.State]
	return Entry{Text: word, Raw: word, Tone: stateTone(d.State)}
}
