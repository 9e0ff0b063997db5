package experiment

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// gateWarnings tell which rules of the plan its trials cannot decide.
func (p *Plan) gateWarnings() []string {
	e := &p.Experiment
	names := e.gateNames(p.Cells)
	var few, all []string
	for _, src := range e.Gates {
		rule, err := gate.Parse(src, names, 0)
		if err != nil {
			continue // a plan that an older release made
		}
		if text := cmp.Or(p.tooSeldom(rule), p.tooFew(rule), p.tooFast(src), p.nothingOffered(rule)); text != "" {
			all = append(all, text)
		} else if p.Blocks < gate.FewestTrials && !(rule.Kind == gate.Limit && isSuccess(rule.Metric)) {
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

// tooSeldom warns that a share of successes cannot be shown by as many operations
// as the plan has in a cell, even if none fails: n of n show, with 95 %, no more
// than 0.05^(1/n) (Clopper and Pearson, 1934), and in m trials they are worth
// n · (t(n−1)/t(m−1))² (Korn and Graubard, 1998). Empty: it can, or how many
// operations there will be is not known.
func (p *Plan) tooSeldom(rule gate.Rule) string {
	if rule.Kind != gate.Limit || !isSuccess(rule.Metric) || rule.Op[0] != '>' || rule.Value <= 0 {
		return ""
	}
	if rule.Value >= 1 {
		return fmt.Sprintf("`%s` cannot pass: no number of operations shows that all would succeed; ask for 99%% or 99.9%%", rule.Text)
	}
	trials := distuv.StudentsT{Sigma: 1, Nu: float64(max(p.Blocks, gate.FewestTrials) - 1)}
	few := math.Pow(trials.Quantile(0.95)/distuv.UnitNormal.Quantile(0.95), 2)
	need := int64(math.Ceil(few * math.Ceil(math.Log(0.05)/math.Log(rule.Value))))
	for _, c := range p.Cells {
		if !rule.Means(c.levelOf) {
			continue
		}
		trial, how := c.operations()
		if n := trial * int64(p.Blocks); trial > 0 && n < need {
			return fmt.Sprintf("`%s` cannot pass: it takes %d operations of a cell without a failure to show, and %s has %d (%s × %s)", rule.Text, need, c.ID, n, how, plural(p.Blocks, "repetition"))
		}
	}
	return ""
}

// operations are those of a trial, at most, and how they are counted; 0: how many
// there will be is not known. What a duration bounds are those that the line has
// time for, as the plan estimates them.
func (c *Cell) operations() (n int64, how string) {
	switch r, o := c.Retrieve, c.Overhead; {
	case o != nil && o.Operation != "fill":
		n = int64(o.Count) * int64(max(1, o.Concurrency))
		return n, fmt.Sprintf("at most %d operations", n)
	case r == nil:
	case r.Requests > 0:
		return r.Requests, fmt.Sprintf("%d requests", r.Requests)
	case r.Arrivals == nil && c.Link.Rate > 0 && c.Estimate.Bound == Exact && c.Estimate.Bytes > 0 && requestBytes(c.Data, r) > 0:
		n = int64(math.Ceil(c.Estimate.Bytes / float64(requestBytes(c.Data, r))))
		return n, fmt.Sprintf("about %d requests, by the plan's bytes", n)
	}
	return 0, ""
}

var percentile = regexp.MustCompile(`_p([0-9]+)$`)

// tooFew warns that no trial of a cell has the operations that a percentile needs.
func (p *Plan) tooFew(rule gate.Rule) string {
	digits := percentile.FindStringSubmatch(rule.Metric)
	if digits == nil {
		return ""
	}
	q, err := strconv.ParseFloat("0."+digits[1], 64)
	if err != nil || q <= 0.5 { // the median of few is still their middle
		return ""
	}
	need := max(10, int64(math.Ceil(1/(1-q)-1e-6))) // one of them lies beyond, and ten in all
	for _, c := range p.Cells {
		if trial, how := c.operations(); trial > 0 && trial < need && c.Retrieve != nil && rule.Means(c.levelOf) {
			return fmt.Sprintf("`%s` cannot be told: a trial needs %d operations for this percentile, and one of %s has %d (%s)", rule.Text, need, c.ID, trial, how)
		}
	}
	return ""
}

// tooFast warns that a rule asks for a throughput that the link cannot carry.
func (p *Plan) tooFast(src string) string {
	names := p.Experiment.gateNames(p.Cells)
	names.Metrics, names.Headline = []gate.Metric{{Key: "throughput", Unit: "B/s"}}, "throughput"
	rule, err := gate.Parse(src, names, 0)
	if err != nil || rule.Kind != gate.Limit || rule.Op[0] != '>' {
		return ""
	}
	for _, c := range p.Cells {
		if most := float64(c.Link.Rate) / 8; c.Retrieve != nil && most > 0 && rule.Value > most && rule.Means(c.levelOf) {
			return fmt.Sprintf("`%s` cannot pass: the link of %s carries %s/s at most", rule.Text, c.ID, RoughBytes(most))
		}
	}
	return ""
}

// nothingOffered warns that a rule needs an offered rate, which only cells with
// arrivals have.
func (p *Plan) nothingOffered(rule gate.Rule) string {
	for _, c := range p.Cells {
		if rule.Metric == "offered_rate" && c.Retrieve != nil && c.Retrieve.Arrivals == nil && rule.Means(c.levelOf) {
			return fmt.Sprintf("`%s` cannot be told: %s has no `retrieve.arrivals`, and so no offered rate", rule.Text, c.ID)
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
