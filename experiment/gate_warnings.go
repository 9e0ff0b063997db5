package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// gateWarnings tell which rules of the plan its trials cannot decide.
func (p *Plan) gateWarnings() []string {
	e := &p.Experiment
	names := e.gateNames(p.Cells)
	var few, all []string
	for _, src := range e.Gates {
		rule, err := gate.Parse(src, names, 0)
		switch {
		case err != nil: // it names what --set took out
		case rule.Kind == gate.Limit && isSuccess(rule.Metric):
			if text := p.tooSeldom(rule); text != "" {
				all = append(all, text)
			}
		case p.Blocks < gate.FewestTrials:
			few = append(few, "`"+rule.Text+"`")
		}
	}
	if len(few) > 0 {
		all = append(all, fmt.Sprintf("with %s nothing can be decided of %s: the interval of a median, by which a gate is decided, needs %d valid trials of each cell; set repetitions to %[3]d or more",
			plural(p.Blocks, "repetition"), strings.Join(few, ", "), gate.FewestTrials))
	}
	return all
}

// isSuccess reports whether a rule's metric is a share of all operations, which
// operations decide and not trials.
func isSuccess(metric string) bool {
	return slices.Contains([]string{"success", "success_rate", "ok_rate"}, metric)
}

// tooSeldom tells that a share of successes cannot be shown by as many operations
// as the plan has in a cell, even if none fails: n of n show, with 95 %, no more
// than 0.05^(1/n) (Clopper and Pearson, 1934). Empty: it can, or how many
// operations there will be is not known.
func (p *Plan) tooSeldom(rule gate.Rule) string {
	if rule.Op[0] != '>' || rule.Value <= 0 {
		return ""
	}
	if rule.Value >= 1 {
		return fmt.Sprintf("`%s` cannot pass: no number of operations shows that all would succeed; ask for 99%% or 99.9%%", rule.Text)
	}
	need := int64(math.Ceil(math.Log(0.05) / math.Log(rule.Value)))
	for _, c := range p.Cells {
		r := c.Retrieve
		if r == nil || r.Requests == 0 || !rule.Means(c.levelOf) {
			continue
		}
		if n := r.Requests * int64(p.Blocks); n < need {
			return fmt.Sprintf("`%s` cannot pass: it takes %d operations of a cell without a failure to show, and %s has %d (%d requests × %s)", rule.Text, need, c.ID, n, r.Requests, plural(p.Blocks, "repetition"))
		}
	}
	return ""
}

// levelOf is the level that a cell has of a factor.
func (c *Cell) levelOf(path string) string {
	for _, f := range c.Factors {
		if f.Path == path {
			return f.Value
		}
	}
	return ""
}
