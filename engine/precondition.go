package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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
	for _, h := range testbed.OnePerMachine(slices.Concat(slices.Collect(maps.Values(hosts))...)) {
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

// Busy checks how much of this machine's CPU others use, by the same measure and limit that
// later decide whether a trial is valid. Empty: trials can be valid.
func Busy(ctx context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	limit := float64(e.Limits.Others)
	// Polls of a system are not affected by a busy machine.
	if limit <= 0 || e.Collect != nil || slices.Contains(e.Skip, "machine") || slices.Contains(e.Skip, busyName) {
		return nil
	}
	what := testbed.Busy(ctx, limit)
	if what == "" {
		return nil
	}
	return []Problem{{
		Name: busyName, What: fmt.Sprintf("%s; with more than %.0f %% (limits.others) a trial is invalid", what,
			100*limit),
		Hint: "wait until it is quiet, or end the other programs",
	}}
}

const busyName = "busy"

// awaitQuiet waits up to Config.WaitQuiet until the machine is quiet, and then continues in any
// case: trials on a busy machine are marked as invalid.
func (r *run) awaitQuiet(ctx context.Context) error {
	begun := time.Now()
	for said := false; ; said = true {
		switch busy := Busy(ctx, r.cfg); {
		case ctx.Err() != nil || len(busy) == 0:
			return ctx.Err()
		case time.Since(begun) >= r.cfg.WaitQuiet:
			r.say.Note(busy[0].What + "; continuing anyway")
			return nil
		case !said:
			r.say.Note(fmt.Sprintf("%s; waiting up to %s for quiet", busy[0].What, r.cfg.WaitQuiet))
		}
	}
}
