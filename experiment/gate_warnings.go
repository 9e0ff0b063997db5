package experiment

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// gateWarnings say which rules of the plan its trials cannot decide.
func (p *Plan) gateWarnings() []string {
	names := p.Experiment.gateNames(p.Cells)
	var few, all []string
	for _, src := range p.Experiment.Gates {
		rule, err := gate.Parse(src, names, 0)
		if err != nil {
			continue // a plan that an older release made
		}
		known := names
		known.Metrics = []gate.Metric{{Key: "throughput", Unit: "B/s"}}
		if throughput, err := gate.Parse(src, known, 0); err == nil {
			rule = throughput // of a metric that is not known the value has no unit
		}
		if text := p.doubt(rule); text != "" {
			all = append(all, "`"+rule.Text+"` "+text)
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

// doubt is why a rule cannot pass or will be inconclusive, by the first cell of which it
// is known; empty: it may be decided.
func (p *Plan) doubt(rule gate.Rule) string {
	least := rule.Kind == gate.Limit && rule.Op[0] == '>'
	successes := int64(0)
	switch {
	case !least || !isSuccess(rule.Metric) || rule.Value <= 0:
	case rule.Value >= 1:
		return "cannot pass: no number of operations shows that all would succeed; ask for 99% or 99.9%"
	default:
		successes = p.successes(rule.Value)
	}
	beyond := percentileNeeds(rule.Metric)
	for i := range p.Cells {
		c := &p.Cells[i]
		trial, how := c.operations()
		all, most := trial*int64(p.Blocks), float64(c.Link.UpRate())/8
		switch {
		case !rule.Means(c.levelOf):
		case trial > 0 && all < successes:
			return fmt.Sprintf("cannot pass: it takes %d operations of a cell without a failure to show, and %s has %d (%s × %s)",
				successes, c.ID, all, how, plural(p.Blocks, "repetition"))
		case c.Retrieve == nil:
		case trial > 0 && trial < beyond:
			return fmt.Sprintf("will be inconclusive: a trial needs %d operations for this percentile, and one of %s has %d (%s)", beyond, c.ID, trial, how)
		case least && rule.Metric == "throughput" && most > 0 && rule.Value > most:
			return fmt.Sprintf("cannot pass: the link of %s carries %s/s at most", c.ID, RoughBytes(most))
		case rule.Metric == "offered_rate" && c.Retrieve.Arrivals == nil:
			return fmt.Sprintf("will be inconclusive: %s has no `retrieve.arrivals`, and so no offered rate", c.ID)
		}
	}
	return ""
}

// isSuccess reports whether a rule's metric is a share of all operations, which
// operations decide and not trials.
func isSuccess(metric string) bool {
	return slices.Contains([]string{"success", "success_rate", "ok_rate"}, metric)
}

// successes is how many operations of a cell show a share of successes if none fails: n
// of n show, with 95 %, no more than 0.05^(1/n) (Clopper and Pearson, 1934), and in m
// trials they are worth n · (t(n−1)/t(m−1))² (Korn and Graubard, 1998).
func (p *Plan) successes(share float64) int64 {
	trials := distuv.StudentsT{Sigma: 1, Nu: float64(max(p.Blocks, gate.FewestTrials) - 1)}
	few := math.Pow(trials.Quantile(0.95)/distuv.UnitNormal.Quantile(0.95), 2)
	return int64(math.Ceil(few * math.Ceil(math.Log(0.05)/math.Log(share))))
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
	case r.Arrivals == nil && c.Link.UpRate() > 0 && c.Estimate.Bound == Exact && c.Estimate.Bytes > 0 && requestBytes(c.Data, r) > 0:
		n = int64(math.Ceil(c.Estimate.Bytes / float64(requestBytes(c.Data, r))))
		return n, fmt.Sprintf("about %d requests, by the plan's bytes", n)
	}
	return 0, ""
}

var percentile = regexp.MustCompile(`_p([0-9]+)$`)

// percentileNeeds is how many operations of a trial a percentile needs: one of them lies
// beyond it, and ten in all; 0 for other metrics, and the median: that of few is their middle.
func percentileNeeds(metric string) int64 {
	digits := percentile.FindStringSubmatch(metric)
	if digits == nil {
		return 0
	}
	q, err := strconv.ParseFloat("0."+digits[1], 64)
	if err != nil || q <= 0.5 {
		return 0
	}
	return max(10, int64(math.Ceil(1/(1-q)-1e-6)))
}

// levelOf is the level that a cell has of a factor.
func (c *Cell) levelOf(path string) string {
	f, _ := c.Factor(path)
	return f.Value
}
