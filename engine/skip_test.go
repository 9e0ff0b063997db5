package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// The plan expects 20 ms for each operation; the system takes 100 ms.
const slowExperiment = `
scenario: overhead
systems: [{use: mem, with: {a: 100ms}}]
data: {size: [1B, 1kB]}
overhead: {operation: [put, stat], count: 1, longest: 50ms}
repetitions: 3
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`

func memPlan(t *testing.T, src string) *experiment.Plan {
	t.Helper()
	spec := experiment.SystemSpec{Name: "mem", Modes: []string{"start", "attach"}}
	for _, o := range (mem.System{}).Info().Options {
		spec.Options = append(spec.Options, experiment.OptionSpec(o))
	}
	e, err := experiment.Parse("test.yaml", []byte(src), nil, experiment.Catalog{spec})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// Trials that would take too long are skipped: they are neither failures nor
// invalid, and a resumed run leaves them.
func TestSkippedTrials(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	plan := memPlan(t, slowExperiment)
	dir := filepath.Join(t.TempDir(), "run")
	cfg := Config{Plan: plan, Systems: []system.System{mem.System{}}, Scenario: overhead.Scenario{}, Dir: dir}
	res, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	// Two trials of an operation show that it takes too long; from then on the size
	// of the larger one of them, and what is larger, is left out.
	if res.Failed != 0 || res.Skipped < 4 || res.Trials+res.Skipped != 12 || res.Trials < 2 { // a busy machine may make some invalid
		t.Errorf("got %+v", res)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := r.Trials()
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, trial := range trials {
		if trial.State != record.Skipped {
			phases := slices.DeleteFunc(slices.Clone(trial.Details), func(d record.Detail) bool { return d.Kind != record.DetailPhase })
			if len(phases) != 3 {
				t.Errorf("phases are missing: %+v", trial)
			}
			continue
		}
		skipped++
		if !strings.Contains(trial.Error, "longer than overhead.longest (50ms)") || len(trial.Metrics) != 0 || len(trial.Invalid) != 0 {
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

// stopAtSkip interrupts a run at the first trial that is skipped.
type stopAtSkip struct {
	silent
	stop func()
}

func (p stopAtSkip) End(trial record.Trial, _ experiment.Cell) {
	if trial.State == record.Skipped {
		p.stop()
	}
}

// What was skipped is skipped by a resumed run, too: it need not find out again
// how long it takes.
func TestResumedRunKnowsWhatWasSkipped(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	for _, seed := range []int{2, 3} { // with these orders the cell would be the first again
		plan := memPlan(t, fmt.Sprintf("seed: %d%s", seed, slowExperiment))
		ctx, cancel := context.WithCancel(t.Context())
		dir := filepath.Join(t.TempDir(), "run")
		cfg := Config{Plan: plan, Systems: []system.System{mem.System{}}, Scenario: overhead.Scenario{}, Dir: dir, Progress: stopAtSkip{stop: cancel}}
		if res, err := Run(ctx, cfg); err != nil || !res.Interrupt || res.Skipped != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		cfg.Resume, cfg.Progress = true, nil
		if res, err := Run(t.Context(), cfg); err != nil || res.Interrupt || res.Failed != 0 {
			t.Fatalf("resumed: %+v, %v", res, err)
		}
		r, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		trials, err := r.Trials()
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		skipped, again := map[string]bool{}, 0
		for _, trial := range trials { // as they were executed
			if skipped[trial.Cell] {
				again++
				if trial.State != record.Skipped {
					t.Errorf("seed %d: %s was skipped and is executed in block %d", seed, trial.Cell, trial.Block)
				}
			}
			skipped[trial.Cell] = skipped[trial.Cell] || trial.State == record.Skipped
		}
		if again == 0 {
			t.Errorf("seed %d: nothing was skipped twice", seed)
		}
	}
}
