package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Problem is a precondition that does not hold.
type Problem = testbed.Problem

// refuse returns a problem that prevents a run.
func refuse(what, hint string) Problem { return Problem{What: what, Hint: hint, Blocking: true} }

// precondition is one named check. It changes nothing.
type precondition struct {
	name  string
	check func(ctx context.Context, cfg Config, at nodePlace) []Problem
	here  bool // its problems concern only this machine
	each  bool // it checks every machine with nodes; otherwise only this one
}

// nodePlace is a machine and the number of nodes of each system on it.
type nodePlace struct {
	testbed.Machine
	nodes func(use experiment.SystemUse) int
	first bool // it has the first node of a system, which gets the RAM disks
}

// ourPlace is this machine, with all nodes unless there are other machines.
func ourPlace(cfg Config) nodePlace {
	alone := cfg.Machines == 0
	return nodePlace{testbed.Here(), func(use experiment.SystemUse) int {
		if !alone {
			return 0
		}
		return nodes(cfg.Plan.CellsOf(use.Name))
	}, alone}
}

// preconditions lists all checks. `plimsoll run` and `plimsoll doctor` make all of them,
// `plimsoll plan` those that do not concern this machine.
func preconditions() []precondition {
	return []precondition{
		{name: "machine", check: checkMachine, here: true, each: true},
		{name: "systems", check: checkSystems},
		{name: "scenario", check: checkScenario},
		{name: "links", check: checkLinks},
		{name: "open-files", check: checkFiles, here: true},
		{name: "data-readable", check: checkData, here: true},
		{name: "budget", check: checkBudget},
		{name: "memory", check: checkMemory, here: true, each: true},
		{name: "storage", check: checkStorage, here: true, each: true},
		{name: "disk-space", check: checkDisk, here: true},
	}
}

// Preconditions makes every check except those that the experiment skips, by the name of the
// check ("machine") or of a single problem ("busy").
func Preconditions(ctx context.Context, cfg Config) []Problem {
	return problems(ctx, cfg, ourPlace(cfg), func(precondition) bool { return true })
}

// PlanProblems returns the problems of the experiment and of its attached systems. It includes
// what started systems lack on this machine, marked as Here.
func PlanProblems(ctx context.Context, cfg Config) []Problem {
	return problems(ctx, cfg, ourPlace(cfg), func(p precondition) bool { return !p.here })
}

func problems(ctx context.Context, cfg Config, at nodePlace, wanted func(precondition) bool) (all []Problem) {
	skipped := func(name string) bool { return slices.Contains(cfg.Plan.Experiment.Skip, name) }
	for _, p := range preconditions() {
		if skipped(p.name) || !wanted(p) {
			continue
		}
		for _, problem := range p.check(ctx, cfg, at) {
			if problem.Name == "" {
				problem.Name = p.name
			}
			problem.Here = problem.Here || p.here
			if !skipped(problem.Name) {
				all = append(all, problem)
			}
		}
	}
	return all
}

// checkHosts checks the other machines like this one: they are known only once their hosts
// exist.
func checkHosts(ctx context.Context, cfg Config, hosts map[string][]testbed.Host) error {
	var all []Problem
	for _, h := range testbed.OneOnEach(slices.Concat(slices.Collect(maps.Values(hosts))...)) {
		m := h.Machine()
		if m.Name() == "" {
			continue
		}
		at := nodePlace{m, func(use experiment.SystemUse) (n int) {
			for _, h := range hosts[use.Name] {
				if h.Machine() == m {
					n++
				}
			}
			return n
		}, slices.ContainsFunc(cfg.Plan.Experiment.Systems, func(use experiment.SystemUse) bool {
			return len(hosts[use.Name]) > 0 && hosts[use.Name][0].Machine() == m
		})}
		for _, p := range Blocking(problems(ctx, cfg, at, func(p precondition) bool { return p.each })) {
			p.What = m.Name() + ": " + p.What
			all = append(all, p)
		}
	}
	if len(all) > 0 {
		return &scenario.PreconditionError{Problems: all}
	}
	return nil
}

// Blocking returns the problems that prevent a run.
func Blocking(all []Problem) []Problem {
	return slices.DeleteFunc(slices.Clone(all), func(p Problem) bool { return !p.Blocking })
}

// Skippable returns the names that `skip:` accepts: of checks, and of single problems of the
// machine.
func Skippable() []string {
	names := slices.Concat(needs, testbed.ProblemNames())
	for _, p := range preconditions() {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
