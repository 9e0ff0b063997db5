package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

// fewestInterval is the number of trials that an exact 95 % interval of a median needs.
const fewestInterval = 6

// Warnings returns problems to consider before the run.
func (p *Plan) Warnings() []string {
	var warnings, late []string
	for _, c := range p.Cells {
		if c.Estimate.Operation > p.Experiment.Limits.Deadline.Seconds() {
			late = append(late, c.ID)
		}
	}
	if late != nil {
		warnings = append(warnings, fmt.Sprintf("in %s (%s) an operation is expected to take longer than its deadline "+
			"(limits.deadline): most would end as `deadline`, however healthy the server is",
			plural(len(late), "cell"), words.Some(late)))
	}
	r := p.Experiment.Repetitions
	// The effects of sync's factors are estimated over all cells.
	if r.Max > 1 && r.Max < fewestInterval && p.Experiment.Sync == nil {
		warnings = append(warnings, fmt.Sprintf("%s give no 95 %% interval of a median, only the range of the "+
			"trials: %d do (repetitions)", plural(r.Max, "repetition"), fewestInterval))
	}
	if p.Blocks < gate.FewestTrials && p.Experiment.Gates != nil {
		warnings = append(warnings, fmt.Sprintf("with %s no gate can be decided: it needs %d valid trials of each "+
			"cell (repetitions)", plural(p.Blocks, "repetition"), gate.FewestTrials))
	}
	return append(warnings, p.Unapplied()...)
}

// Unapplied lists for each attached system the parts of the experiment that do not apply to it.
func (p *Plan) Unapplied() []string {
	e := p.Experiment
	var parts, texts []string
	varied := func(section string) bool {
		return slices.ContainsFunc(sortedKeys(e.Factors), func(path string) bool {
			return strings.HasPrefix(path, section+".")
		})
	}
	if e.Link.Shaped() || varied("link") {
		parts = append(parts, "link")
	}
	if (e.Data.Given() || varied("data")) && !e.Allows("write") {
		parts = append(parts, "data")
	}
	for _, s := range e.Systems {
		if parts != nil && s.Attached() && e.Collect == nil {
			texts = append(texts, fmt.Sprintf("%s is attached, with its own network and objects; only systems that are "+
				"started have this: %s", s.Name, strings.Join(parts, ", ")))
		}
	}
	return texts
}

// Faults returns the faults of the cell, in any scenario.
func (c *Cell) Faults() []Fault {
	switch {
	case c.Disseminate != nil:
		return c.Disseminate.Faults
	case c.Sync != nil:
		return c.Sync.Faults
	}
	return nil
}
