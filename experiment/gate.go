package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// gateNames are what rules over these cells may speak of, without the metrics.
func (e *Experiment) gateNames(cells []Cell) gate.Names {
	names := gate.Names{Base: true, Gone: e.Dropped}
	for _, c := range cells {
		levels := map[string]string{}
		for _, f := range c.Factors {
			levels[f.Path] = f.Value
		}
		names.AddCell(levels)
	}
	return names
}

// gateWarnings say which rules of the plan its trials cannot decide.
func (p *Plan) gateWarnings() []string {
	names, success := p.Experiment.gateNames(p.Cells), []string{"success", "success_rate", "ok_rate"}
	var undecided []string
	for _, src := range p.Experiment.Gates {
		rule, err := gate.Parse(src, names, 0)
		// A share of operations is decided by their number, not by that of the trials.
		if err == nil && p.Blocks < gate.FewestTrials && !(rule.Kind == gate.Limit &&
			slices.Contains(success, rule.Metric)) {
			undecided = append(undecided, "`"+rule.Text+"`")
		}
	}
	if len(undecided) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("with %s nothing can be decided of %s: the interval of a median, by which a gate is "+
		"decided, needs %d valid trials of each cell; set repetitions to %[3]d or more",
		plural(p.Blocks, "repetition"), strings.Join(undecided, ", "), gate.FewestTrials)}
}
