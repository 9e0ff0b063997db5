package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
)

// checkBudget refuses a load test that may spend without an end: nobody looks at
// it for weeks.
func checkBudget(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	var all []Problem
	if e.Exit.MaxSpend != "" {
		if _, err := smallestUnits(e.Exit.MaxSpend, 0); err != nil {
			all = append(all, Problem{Name: "budget", What: "exit.max_spend: " + err.Error(), Hint: "max_spend: 3600", Blocking: true})
		}
	}
	for _, use := range e.Systems {
		sys := findSystem(cfg.Systems, use.Use)
		if sys == nil || e.Upload == nil || use.Mode != string(system.Attach) {
			continue
		}
		pays := slices.Contains(sys.Info().Can, "cost")
		switch {
		case pays && e.Exit.MaxSpend == "":
			all = append(all, Problem{
				Name:     "budget",
				What:     use.Name + ": it pays for what it stores, and nothing ends the test when enough is spent",
				Hint:     "say exit: {max_spend: AMOUNT} in the system's currency, or skip: [budget] when its own limits are enough",
				Blocking: true,
			})
		case !pays && e.Exit.MaxSpend != "":
			all = append(all, Problem{Name: "budget", What: use.Name + ": it does not tell what it spends, so exit.max_spend will not end its test"})
		}
	}
	return all
}

// checkAllowance refuses to set a budget that nobody has allowed, or cannot be set.
func checkAllowance(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	if e.Upload == nil || e.Upload.Need.Allowance == "" {
		return nil
	}
	var all []Problem
	if e.Upload.Need.Allowance != wholeBalance {
		if _, err := smallestUnits(e.Upload.Need.Allowance, 0); err != nil {
			all = append(all, Problem{Name: "allowance", What: "upload.need.allowance: " + err.Error(), Hint: "allowance: 500, or allowance: all", Blocking: true})
		}
	}
	if !slices.Contains(e.Allow, "spend") {
		all = append(all, Problem{
			Name:     "allowance",
			What:     "upload.need.allowance sets a budget, and the experiment does not allow to spend money",
			Hint:     "say allow: [write, spend]",
			Blocking: true,
		})
	}
	for _, use := range e.Systems {
		if sys := findSystem(cfg.Systems, use.Use); sys != nil && !slices.Contains(sys.Info().Can, "allow") {
			all = append(all, Problem{
				Name:     "allowance",
				What:     fmt.Sprintf("%s: upload.need.allowance sets a budget, and this system has none that can be set", use.Name),
				Hint:     "leave it out",
				Blocking: true,
			})
		}
	}
	return all
}

// wholeBalance is the allowance that leaves nothing.
const wholeBalance = "all"
