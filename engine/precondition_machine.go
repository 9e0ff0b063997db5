package engine

import (
	"context"

	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// checkMachine asks what a machine lacks for the run. Links are emulated on this one.
func checkMachine(cfg Config, at nodePlace) []Problem {
	var all []Problem
	changes, _ := plansChanges(cfg.Plan)
	opt := testbedOptions(cfg)
	if at.Name() != "" {
		opt = testbed.Options{Plain: !opt.Mesh, Emulate: opt.Emulate}
	}
	for _, p := range at.Problems(opt) {
		// Links that are not emulated can be no others in the middle of a trial.
		fatal := changes && (p.Name == "namespaces" || p.Name == "emulator") && p.Severity == testbed.Warning
		all = append(all, Problem{Name: p.Name, What: p.What, Hint: p.Hint, Blocking: p.Severity == testbed.Fatal ||
			fatal})
	}
	return all
}

// testbedOptions are what the plan wants of a testbed.
func testbedOptions(cfg Config) testbed.Options {
	wanted := cfg.Plan.Experiment.Link
	emulator := wanted.Emulator
	if _, pairs := plansChanges(cfg.Plan); pairs && (emulator == "" || emulator == "auto") {
		emulator = link.Own // the only one that knows pairs of hosts
	}
	mesh := cfg.Machines > 0 && EmulatesBetween(cfg.Plan)
	if mesh {
		emulator = link.Own
	}
	real := cfg.Machines > 0 && !mesh
	return testbed.Options{
		Dir: cfg.Dir, Self: cfg.Self, Emulate: emulator, IPv6: wanted.IPv6,
		Plain: real || attaches(cfg.Plan) && !shapes(cfg.Plan), Hosts: cfg.Hosts, Real: real, Mesh: mesh,
	}
}

// checkLinks refuses changes of links that no emulator makes here. An attached system
// is reached over the network there is, so its cells have no link to check.
func checkLinks(_ context.Context, cfg Config) []Problem {
	if cfg.Machines > 0 {
		return checkLinksBetween(cfg.Plan, cfg.Clients)
	}
	changes, pairs := plansChanges(cfg.Plan)
	switch emulator := cfg.Plan.Experiment.Link.Emulator; {
	case changes && emulator == "none":
		return []Problem{refuse("the experiment changes single nodes' links (slow, speeds, trouble or faults), and "+
			"asks for links that are not emulated",
			"say link: {emulator: auto}")}
	case pairs && emulator == "netem":
		return []Problem{refuse("netem does not know one pair of hosts from another, which link.regions and faults "+
			"that cut nodes off need",
			"say link: {emulator: user}, or auto, which chooses it")}
	}
	if changes && attaches(cfg.Plan) {
		return []Problem{refuse("the links of an attached system cannot be changed",
			"leave out what changes links, or let Plimsoll start the system")}
	}
	return nil
}
