package engine

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

const skippedExperiment = `
scenario: overhead
systems: [mem]
data: {size: [1B, 1kB]}
overhead: {operation: [put, stat], count: 1}
repetitions: 3
`

// Skipped trials are neither failures nor invalid, and a resumed run leaves them.
func TestSkippedTrials(t *testing.T) {
	t.Parallel()
	skipping := altered{trial: func(c experiment.Cell, execute func() (scenario.Load, error)) (scenario.Load, error) {
		if c.Overhead.Operation == "stat" {
			return scenario.Load{}, &scenario.SkipError{Why: "it cannot be done here"}
		}
		return execute()
	}}
	cfg := configOf(t, mustPlan(t, skippedExperiment), mem.System{}, skipping)
	res, err := Run(t.Context(), cfg)
	must(t, err)
	if res.Failed != 0 || res.Skipped != 6 || res.Trials != 6 {
		t.Errorf("got %+v", res)
	}
	skipped := 0
	for _, trial := range readRun(t, cfg.Dir).trials {
		if trial.State != record.Skipped {
			continue
		}
		skipped++
		if trial.Error != "it cannot be done here" || len(trial.Metrics) != 0 || len(trial.Invalid) != 0 {
			t.Errorf("got %+v", trial)
		}
	}
	if skipped != res.Skipped {
		t.Errorf("%d trials are recorded as skipped, the result says %d", skipped, res.Skipped)
	}
	cfg.Resume = true
	again, err := Run(t.Context(), cfg)
	if err != nil || !again.Complete || again.Skipped != res.Skipped || again.Trials != res.Trials {
		t.Errorf("resumed: %+v, %v", again, err)
	}
}
