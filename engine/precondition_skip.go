package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// checkSkip refuses names in `skip:` that no precondition has: who misspells one
// would learn of it by a refusal that seems to come in spite of it.
func checkSkip(_ context.Context, cfg Config) []Problem {
	known := Skippable()
	var all []Problem
	for _, name := range cfg.Plan.Experiment.Skip {
		if !slices.Contains(known, name) {
			all = append(all, Problem{
				Name: "skip", What: fmt.Sprintf("skip: there is no precondition %q", name),
				Hint: suggest.OrAll(name, known), Blocking: true,
			})
		}
	}
	return all
}

// Skippable are the names that `skip:` takes: of whole checks, and of single
// problems of the machine.
func Skippable() []string {
	var names []string
	for _, p := range preconditions() {
		if p.name == "skip" {
			continue
		}
		names = append(names, p.name)
	}
	for _, n := range needs() {
		names = append(names, n.name)
	}
	names = append(names, testbed.ProblemNames()...)
	slices.Sort(names)
	return slices.Compact(names)
}
