package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// cellWarnings are what may be wrong with single cells: whether it is, and what to say
// of all cells of which it is.
var cellWarnings = []struct {
	is   func(e *Experiment, c *Cell) bool
	text string
}{
	{func(e *Experiment, c *Cell) bool { return c.Estimate.Operation > e.Limits.Deadline.Seconds() },
		"an operation is expected to take longer than its deadline (limits.deadline): most would end as `deadline`, " +
			"however healthy the server is"},
	{func(_ *Experiment, c *Cell) bool {
		return slices.ContainsFunc(c.faults(), func(f Fault) bool { return c.tooLate(f, c.Estimate.Operation) })
	}, "a fault begins when the transfer is expected to be done: then the trial is over, and the fault never " +
		"happens; let it begin earlier, or at a share such as 50%"},
	{func(_ *Experiment, c *Cell) bool {
		return c.Sync != nil && slices.ContainsFunc(c.faults(), func(f Fault) bool {
			return f.Who() == WhoPeers && f.Kind() != FaultRate && f.For == 0 && f.Of(c.Sync.Peers) == c.Sync.Peers
		})
	}, "all peers are gone for good after a fault: no sync ends well"},
}

// fewestInterval is how many trials an exact 95 % interval of a median needs.
const fewestInterval = 6

// Warnings are what a reader should think about before the run.
func (p *Plan) Warnings() []string {
	var warnings []string
	for _, w := range cellWarnings {
		var ids []string
		for i := range p.Cells {
			if w.is(&p.Experiment, &p.Cells[i]) {
				ids = append(ids, p.Cells[i].ID)
			}
		}
		if ids != nil {
			warnings = append(warnings, fmt.Sprintf("in %s (%s) %s", plural(len(ids), "cell"), words.Some(ids), w.text))
		}
	}
	r := p.Experiment.Repetitions
	// The effects of sync's factors are estimated over all cells.
	if r.Max > 1 && r.Max < fewestInterval && p.Experiment.Sync == nil {
		warnings = append(warnings, fmt.Sprintf("%s give no 95 %% interval of a median, only the range of the "+
			"trials: %d do (repetitions)",
			plural(r.Max, "repetition"), fewestInterval))
	}
	warnings = append(warnings, p.Unapplied()...)
	return append(warnings, p.gateWarnings()...)
}

// Unapplied says of each attached system what of the experiment does not apply to it.
func (p *Plan) Unapplied() []string {
	e := p.Experiment
	var texts []string
	for _, s := range e.Systems {
		if s.Mode != "attach" || e.Collect != nil {
			continue
		}
		var parts []string
		for _, section := range []string{"link", "data"} {
			given := slices.ContainsFunc(e.axes(), func(a axis) bool {
				return strings.HasPrefix(a.path, section+".") &&
					slices.ContainsFunc(a.levels, func(v reflect.Value) bool { return !v.IsZero() })
			})
			if given && (section == "link" || !e.allows("write")) {
				parts = append(parts, section)
			}
		}
		if parts != nil {
			texts = append(texts,
				fmt.Sprintf("%s is attached, with its own network and objects; only systems that are started have "+
					"this: %s", s.Name, strings.Join(parts, ", ")))
		}
	}
	return texts
}

// faults are those of the cell, whatever its scenario.
func (c *Cell) faults() []Fault {
	switch {
	case c.Disseminate != nil:
		return c.Disseminate.Faults
	case c.Sync != nil:
		return c.Sync.Faults
	}
	return nil
}
