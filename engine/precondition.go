package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Problem is a precondition that does not hold.
type Problem = testbed.Problem

// refuse is a problem that keeps a run from beginning.
func refuse(what, hint string) Problem { return Problem{What: what, Hint: hint, Blocking: true} }

// precondition is one named check. It changes nothing.
type precondition struct {
	name  string
	check func(ctx context.Context, cfg Config, at nodePlace) []Problem
	here  bool // all of its problems are of this machine
	each  bool // every machine with nodes is asked, at; else this one
}

// nodePlace is a machine and how many nodes of a system run on it.
type nodePlace struct {
	testbed.Machine
	nodes func(use experiment.SystemUse) int
	first bool // the first node of a system is among them: it has the RAM disks
}

// ourPlace is this machine, with all nodes unless there are others for them.
func ourPlace(cfg Config) nodePlace {
	alone := cfg.Machines == 0
	return nodePlace{testbed.Here(), func(use experiment.SystemUse) int {
		if !alone {
			return 0
		}
		return nodes(cfg.Plan.CellsOf(use.Name))
	}, alone}
}

// preconditions lists all checks: `plimsoll run` and `plimsoll doctor` make all of them,
// `plimsoll plan` those that do not look at this machine.
func preconditions() []precondition {
	return []precondition{
		{name: "machine", check: checkMachine, here: true, each: true},
		{name: "systems", check: checkSystems},
		{name: "scenario", check: checkScenario},
		{name: "links", check: checkLinks},
		{name: "open-files", check: checkFiles, here: true},
		{name: "data-readable", check: checkData, here: true},
		{name: "budget", check: checkBudget},
		{check: checkNeeds}, // its problems have names
		{name: "memory", check: checkMemory, here: true, each: true},
		{name: "storage", check: checkStorage, here: true, each: true},
		{name: "disk-space", check: checkDisk, here: true},
		{name: "run-directory", check: checkDirectory, here: true},
	}
}

// Preconditions makes every check that the experiment does not skip, by the name
// of the check ("machine") or of a single problem ("busy").
func Preconditions(ctx context.Context, cfg Config) []Problem {
	return problems(ctx, cfg, ourPlace(cfg), func(precondition) bool { return true })
}

// PlanProblems are those of the experiment and of the systems that it attaches to.
// What a started system misses on this machine is among them, marked as Here.
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

// checkHosts asks the machines elsewhere that hosts are on what this machine was asked
// before: they are known only now that the hosts are there.
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
		return &PreconditionError{all}
	}
	return nil
}

// Blocking filters the problems that keep a run from beginning.
func Blocking(all []Problem) []Problem {
	return slices.DeleteFunc(slices.Clone(all), func(p Problem) bool { return !p.Blocking })
}

// PreconditionError lists what keeps a run from beginning.
type PreconditionError struct{ Problems []Problem }

// Error implements error.
func (e *PreconditionError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.What
		if p.Name != "" { // of the plan alone
			lines[i] = p.Name + ": " + p.What
		}
	}
	return strings.Join(lines, "\n")
}

// Hint is what to do about each problem.
func (e *PreconditionError) Hint() string {
	var hints []string
	for _, p := range e.Problems {
		if p.Hint != "" {
			hints = append(hints, p.Hint)
		}
	}
	return strings.Join(slices.Compact(hints), "; ")
}

// Skippable are the names that `skip:` takes: of whole checks, and of single
// problems of the machine.
func Skippable() []string {
	names := slices.Concat(needs, testbed.ProblemNames())
	for _, p := range preconditions() {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
