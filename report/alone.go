package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// retrieveConcurrency is the factor whose levels a system without a baseline is compared by.
const retrieveConcurrency = "retrieve.concurrency"

// levelsOf are a system's measured cells in groups that differ in concurrency alone,
// each from the lowest to the highest.
func (r *Report) levelsOf(system string) [][]*Cell {
	var groups [][]*Cell
	for _, c := range r.cells() {
		if _, ok := c.Metrics["throughput"]; !ok || c.System != system {
			continue
		}
		k := slices.IndexFunc(groups, func(g []*Cell) bool { return g[0].without(retrieveConcurrency) == c.without(retrieveConcurrency) })
		if k < 0 {
			k = len(groups)
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], c)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b *Cell) int { return a.plan.Retrieve.Concurrency - b.plan.Retrieve.Concurrency })
	}
	return groups
}

// plateau is the lowest level above which throughput no longer grows: no higher level
// is more than the effect floor faster with an interval above this level's.
func plateau(levels []*Cell) int {
	for i, low := range levels {
		a := low.Metrics["throughput"]
		if !slices.ContainsFunc(levels[i+1:], func(high *Cell) bool {
			b := high.Metrics["throughput"]
			return b.Median > a.Median*(1+EffectFloor) && !(b.Lo <= a.Hi) // unknown limits decide nothing
		}) {
			return i
		}
	}
	return len(levels) - 1
}

// alone says what a system that is compared with nothing did: throughput, latency and
// where throughput stops growing, for each group of cells.
func (r *Report) alone(system string) []string {
	var out []string
	for _, levels := range r.levelsOf(system) {
		at := levels[plateau(levels)]
		text := fmt.Sprintf("%s (%s", show(float64(at.Metrics["throughput"].Median), "B/s"), r.shape.where(at))
		for _, q := range []string{"p50", "p99"} {
			if m, ok := at.Metrics["duration_"+q]; ok {
				text += fmt.Sprintf(", %s %s", q, show(float64(m.Median), "s"))
			}
		}
		text += ")"
		switch last := levels[len(levels)-1]; {
		case r.unmeasuredAbove(last):
			text += ", higher concurrency has no valid trial"
		case len(levels) == 1:
		case at == last && !(at.Metrics["throughput"].Lo > 0): // too few trials for an interval
			text += "; where throughput stops growing needs more repetitions"
		case at == last:
			text += ", still growing at the highest concurrency"
		default:
			text += ", no more at higher concurrency"
		}
		out = append(out, text)
	}
	return out
}

// unmeasuredAbove reports whether the plan has a cell like this one at a higher
// concurrency, of which no trial counts.
func (r *Report) unmeasuredAbove(c *Cell) bool {
	return slices.ContainsFunc(r.cells(), func(o *Cell) bool {
		return o.System == c.System && o.without(retrieveConcurrency) == c.without(retrieveConcurrency) && o.plan.Retrieve.Concurrency > c.plan.Retrieve.Concurrency
	})
}

// ourLimits are the reasons against a trial that our own side slowed down: what it
// measured is the least that the system can do.
var ourLimits = []string{record.ReasonGeneratorSaturated, record.ReasonBoxBusy, record.ReasonMachineLimited, record.ReasonEmulatorLate}

// atLeast says what each system without a valid trial in any cell delivered where
// nothing but our own side was the limit: the cell with the highest median throughput.
func (r *Report) atLeast() string {
	var parts []string
	for _, s := range r.Systems {
		var best *Cell
		most, valid := 0.0, false
		for _, c := range r.cells() {
			if c.System != s.Name {
				continue
			}
			var all []float64
			for _, t := range r.Trials {
				if t.Info != c || t.State != record.Done || t.Warmup {
					continue
				}
				valid = valid || t.Valid()
				ours := !slices.ContainsFunc(t.Invalid, func(reason string) bool { return !slices.Contains(ourLimits, reason) })
				if x := t.Metrics["throughput"]; ours && x > 0 {
					all = append(all, x)
				}
			}
			if len(all) == 0 {
				continue
			}
			if x := stats.Median(all); x > most {
				best, most = c, x
			}
		}
		if best != nil && !valid {
			parts = append(parts, fmt.Sprintf("%s delivered at least %s (%s)", s.Name, show(most, "B/s"), r.shape.where(best)))
		}
	}
	return strings.Join(parts, "; ")
}

// aloneVerdict is that of a run without a baseline.
func (r *Report) aloneVerdict() string {
	var parts []string
	for _, s := range r.Systems {
		if texts := r.alone(s.Name); len(texts) > 0 {
			parts = append(parts, s.Name+" delivered "+strings.Join(texts, "; "))
		}
	}
	return strings.Join(parts, ". ")
}
