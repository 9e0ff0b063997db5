package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// spoiltRun is a run whose trials are invalid while spoil says so.
func spoiltRun(t *testing.T, spoil func() bool) Config {
	t.Helper()
	trial := func(_ experiment.Cell, execute func() (scenario.Load, error)) (scenario.Load, error) {
		load, err := execute()
		load.Invalid = nil // this machine may be busy
		if spoil() {
			load.Invalid = append(load.Invalid, record.ReasonDaemonRestarted)
		}
		return load, err
	}
	plan := mustPlan(t, `
scenario: overhead
systems: [mem]
data: {size: [1B, 1kB]}
overhead: {operation: put, count: 1}
repetitions: 3
`, "warmup=1", "limits.machine=")
	cfg := configOf(t, plan, mem.System{}, altered{trial: trial})
	cfg.StopInvalid = true
	cfg.Plan.Experiment.Limits.Others = 1e9 // likewise
	return cfg
}

// A run stops when no trial of its first block is valid; told to go on, it does. Its
// invalid trials are executed again when that is asked for, and stay recorded.
func TestFirstBlockWithoutAValidTrial(t *testing.T) {
	t.Parallel()
	spoilt := true
	cfg := spoiltRun(t, func() bool { return spoilt })
	step := func(what string, executed, valid int, stops bool) {
		t.Helper()
		res, err := Run(t.Context(), cfg)
		if err != nil || res.Trials != executed || res.Valid != valid || (res.Invalid != "") != stops {
			t.Fatalf("%s: %+v, %v", what, res, err)
		}
		if stops && res.Invalid != "none of the 2 trials of the first block is valid (daemon-restarted 2)" {
			t.Errorf("%s: %s", what, res.Invalid)
		}
		cfg.Resume = true
	}
	step("run", 2, 0, true)
	step("resumed", 4, 0, true)
	cfg.StopInvalid = false
	step("keeps going", 6, 0, false)
	spoilt, cfg.RetryInvalid, cfg.StopInvalid = false, true, true
	step("tried again", 6, 6, false)
	trials := readRun(t, cfg.Dir).trials
	if n := len(trials); n != 2+6+6 { // two of the warm-up block
		t.Errorf("%d trials are recorded", n)
	}
	if kept := slices.IndexFunc(trials, func(t record.Trial) bool {
		return slices.Contains(t.Invalid, record.ReasonDaemonRestarted) && !t.Warmup
	}); kept < 0 {
		t.Error("the invalid trials are gone")
	}
	cfg.RetryInvalid = false
	if res, err := Run(t.Context(), cfg); err != nil || !res.Complete || res.Valid != 6 {
		t.Errorf("then: %+v, %v", res, err)
	}
}

// A busy machine is waited for, said once when the wait begins and once when the run
// goes on; without a limit nobody looks.
func TestBusyMachineIsWaitedFor(t *testing.T) {
	t.Parallel()
	cfg := spoiltRun(t, func() bool { return false })
	cfg.Plan.Experiment.Skip = nil
	cfg.WaitQuiet = 1500 * time.Millisecond
	for _, c := range []struct {
		limit experiment.Fraction
		says  int
	}{{1e-9, 2}, {0, 0}} {
		cfg.Plan.Experiment.Limits.Others = c.limit
		said := 0
		r := &run{cfg: cfg, say: func(e Event) {
			if strings.Contains(e.Text, "the machine is busy") {
				said++
			}
		}}
		begun := time.Now()
		if err := r.awaitQuiet(t.Context()); err != nil || said > c.says || c.says == 0 &&
			time.Since(begun) > time.Second {
			t.Errorf("limit %v: said %d times, %v", c.limit, said, err)
		}
	}
}
