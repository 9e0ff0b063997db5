package engine

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

const skippedExperiment = `
scenario: overhead
systems: [mem]
data: {size: [1B, 1kB]}
overhead: {operation: [put, stat], count: 1}
repetitions: 3
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`

// skipping leaves the trials of one operation out.
type skipping struct{ overhead.Scenario }

func (s skipping) Prepare(ctx context.Context, site scenario.Site, cells []experiment.Cell) (scenario.Runner, error) {
	r, err := s.Scenario.Prepare(ctx, site, cells)
	return skippingRunner{r}, err
}

type skippingRunner struct{ scenario.Runner }

func (r skippingRunner) Trial(ctx context.Context, c experiment.Cell, seed uint64, sink scenario.Sink) (scenario.Load,
	error) {
	if c.Overhead.Operation == "stat" {
		return scenario.Load{}, &scenario.SkipError{Why: "it cannot be done here"}
	}
	return r.Runner.Trial(ctx, c, seed, sink)
}

func memPlan(t *testing.T, src string) *experiment.Plan {
	t.Helper()
	spec := experiment.SystemSpec{Name: "mem", Modes: []string{"start", "attach"},
		Options: (mem.System{}).Info().Options}
	e, err := experiment.Parse("test.yaml", []byte(src), nil, experiment.Catalog{spec})
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	return plan
}

// Skipped trials are neither failures nor invalid, and a resumed run leaves them.
func TestSkippedTrials(t *testing.T) {
	t.Parallel()
	plan := memPlan(t, skippedExperiment)
	dir := filepath.Join(t.TempDir(), "run")
	cfg := Config{Plan: plan, Systems: []system.System{mem.System{}}, Scenario: skipping{}, Dir: dir}
	res, err := runPlan(t.Context(), cfg)
	must(t, err)
	if res.Failed != 0 || res.Skipped != 6 || res.Trials != 6 {
		t.Errorf("got %+v", res)
	}
	r, err := record.Open(dir)
	must(t, err)
	trials, err := r.Trials()
	r.Close()
	must(t, err)
	skipped := 0
	for _, trial := range trials {
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
	again, err := runPlan(t.Context(), cfg)
	if err != nil || !again.Complete || again.Skipped != res.Skipped || again.Trials != res.Trials {
		t.Errorf("resumed: %+v, %v", again, err)
	}
}
