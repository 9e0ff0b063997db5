package engine

import (
	"context"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// checkMachine asks the testbed what this machine lacks for the run.
func checkMachine(ctx context.Context, cfg Config) []Problem {
	var all []Problem
	for _, p := range testbed.Problems(ctx, testbedOptions(cfg)) {
		all = append(all, Problem{Name: p.Name, What: p.What, Hint: p.Hint, Blocking: p.Severity == testbed.Fatal})
	}
	return all
}

// testbedOptions are what the plan wants of a testbed.
func testbedOptions(cfg Config) testbed.Options {
	link := cfg.Plan.Experiment.Link
	return testbed.Options{
		Dir: cfg.Dir, Self: cfg.Self, Emulate: link.Emulator, Plain: attaches(cfg.Plan), IPv6: link.IPv6,
	}
}
