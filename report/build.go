package report

import (
	"errors"
	"fmt"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
)

// Build evaluates a run directory with the limits of its plan, changed by --set arguments such
// as limits.others=none. The same directory gives the same result.
func Build(run *record.Reader, sets ...string) (*analysis.Result, error) {
	return build(run, false, sets)
}

// Rebuild is Build, but recomputes the metrics of trials from their records, as far as they
// contain what is needed, by this version's definitions. It reads operations and jobs if a
// metric needs them, which takes some 2 s per million.
func Rebuild(run *record.Reader, sets ...string) (*analysis.Result, error) {
	return build(run, true, sets)
}

func build(run *record.Reader, again bool, sets []string) (*analysis.Result, error) {
	plan, err := analysis.ReadPlan(run)
	if err != nil {
		return nil, err
	}
	s := scenarios.ByName(plan.Experiment.Scenario)
	if s == nil {
		return nil, fmt.Errorf("%s: unknown scenario %q; use the version of plimsoll that wrote it", run.Dir(),
			plan.Experiment.Scenario)
	}
	var recompute func(*record.Trial, experiment.Cell) error
	if again {
		recompute = func(t *record.Trial, cell experiment.Cell) error {
			m, err := scenario.Recompute(s, run, *t, cell, nil)
			if errors.Is(err, scenario.ErrNoFacts) {
				return nil
			}
			t.Metrics = m
			return err
		}
	}
	f, err := analysis.Load(run, plan, s.View(), recompute, sets...)
	if err != nil {
		return nil, err
	}
	return analysis.Analyse(f)
}
