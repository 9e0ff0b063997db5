package engine

import (
	"context"
	"slices"
	"strings"
)

// Problem is a precondition that does not hold.
type Problem struct {
	Name     string `json:"name"` // of the precondition, as `skip:` in the experiment file takes it
	What     string `json:"what"`
	Hint     string `json:"hint,omitempty"`
	Blocking bool   `json:"blocking"` // the run would fail or be wrong; else it is worse than it could be
}

// precondition is one named check. It changes nothing.
type precondition struct {
	name  string
	check func(ctx context.Context, cfg Config) []Problem
}

// preconditions lists all checks; `plimsoll doctor` runs the same ones.
func preconditions() []precondition {
	return []precondition{
		{"skip", checkSkip},
		{"machine", checkMachine},
		{"open-files", checkFiles},
		{"systems", checkSystems},
		{"scenario", checkScenario},
		{"links", checkLinks},
		{"data-readable", checkData},
		{"budget", checkBudget},
		{"allowance", checkAllowance},
		{"balance", checkBalance},
		{"contracts", checkContracts},
		{"memory", checkMemory},
		{"cache", checkCache},
		{"storage", checkStorage},
		{"chains", checkChains},
		{"disk-space", checkDisk},
		{"run-directory", checkDirectory},
	}
}

// Preconditions runs every check that the experiment does not skip, by the name
// of the check ("machine") or of a single problem ("busy").
func Preconditions(ctx context.Context, cfg Config) []Problem {
	var all []Problem
	for _, p := range preconditions() {
		if slices.Contains(cfg.Plan.Experiment.Skip, p.name) {
			continue
		}
		for _, problem := range p.check(ctx, cfg) {
			if problem.Name == "" {
				problem.Name = p.name
			}
			if !slices.Contains(cfg.Plan.Experiment.Skip, problem.Name) {
				all = append(all, problem)
			}
		}
	}
	return all
}

// PlanProblems are those that the plan alone tells: whatever the machine, the
// run would fail.
func PlanProblems(cfg Config) []Problem {
	var all []Problem
	for _, check := range []func(context.Context, Config) []Problem{checkScenario, checkLinks, checkBudget, checkAllowance, checkBalance, checkContracts} {
		all = append(all, check(context.Background(), cfg)...)
	}
	all = slices.DeleteFunc(all, func(p Problem) bool { return slices.Contains(cfg.Plan.Experiment.Skip, p.Name) })
	return Blocking(append(checkSkip(context.Background(), cfg), all...))
}

// Blocking filters the problems that keep a run from beginning.
func Blocking(all []Problem) []Problem {
	var blocking []Problem
	for _, p := range all {
		if p.Blocking {
			blocking = append(blocking, p)
		}
	}
	return blocking
}

// PreconditionError lists what keeps a run from beginning.
type PreconditionError struct{ Problems []Problem }

// OfFile reports whether it is the experiment file that is wrong.
func (e *PreconditionError) OfFile() bool {
	return slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Name == "skip" })
}

// Error implements error.
func (e *PreconditionError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.What
		if p.Name != "" { // what the plan alone tells has none
			lines[i] = p.Name + ": " + p.What
		}
	}
	return strings.Join(lines, "\n")
}

// Hint tells what to do about each problem.
func (e *PreconditionError) Hint() string {
	var hints []string
	for _, p := range e.Problems {
		if p.Hint != "" {
			hints = append(hints, p.Hint)
		}
	}
	return strings.Join(slices.Compact(hints), "; ")
}
