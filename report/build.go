package report

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// Build judges a run directory, by the limits of its plan changed by --set arguments
// such as limits.others=none. The same directory gives the same result.
func Build(run *record.Reader, sets ...string) (*analysis.Result, error) {
	plan, err := analysis.ReadPlan(run.Plan(), run.Meta()[analysis.PlanSum])
	if err != nil {
		return nil, fmt.Errorf("plan of %s: %w", run.Dir(), err)
	}
	view := scenario.ViewOf(plan.Experiment.Scenario)
	if view == nil {
		return nil, fmt.Errorf("%s: unknown scenario %q; use the version of plimsoll that wrote it", run.Dir(), plan.Experiment.Scenario)
	}
	f, err := analysis.Load(run, view, sets...)
	if err != nil {
		return nil, err
	}
	return analysis.Analyse(f)
}
