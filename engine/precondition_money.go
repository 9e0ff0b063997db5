package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
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
		pays := sys.Info().Able("cost")
		switch {
		case pays && e.Exit.MaxSpend == "":
			all = append(all, Problem{
				Name:     "budget",
				What:     use.Name + ": it pays for what it stores, and nothing ends the test when enough is spent",
				Hint:     "say exit: {max_spend: AMOUNT} in the system's currency, or skip: [budget] when its own limits are enough",
				Blocking: true,
			})
		case !pays && e.Exit.MaxSpend != "":
			all = append(all, Problem{Name: "budget", What: use.Name + ": it does not tell what it spends (it has no ability cost), so exit.max_spend will not end its test"})
		}
	}
	switch {
	case !e.LoadTest() || pays(cfg):
	case e.Exit.MaxSpend != "":
		all = append(slices.DeleteFunc(all, func(p Problem) bool { return !p.Blocking }), Problem{
			Name:     "budget",
			What:     fmt.Sprintf("exit.max_spend can never be met: %s has no ability cost", namesOf(e.Systems)),
			Hint:     "leave it out: --set exit.max_spend=",
			Blocking: true,
		})
	case e.Price() != "":
		all = append(all, Problem{Name: "budget", What: fmt.Sprintf("the price %s will not be used: %s has no ability cost", e.Price(), namesOf(e.Systems))})
	}
	return all
}

func namesOf(uses []experiment.SystemUse) string {
	names := make([]string, len(uses))
	for i, use := range uses {
		names[i] = use.Name
	}
	return strings.Join(names, ", ")
}

// pays reports whether a system of the plan tells what it spends.
func pays(cfg Config) bool {
	return slices.ContainsFunc(cfg.Plan.Experiment.Systems, func(use experiment.SystemUse) bool {
		sys := findSystem(cfg.Systems, use.Use)
		return sys != nil && sys.Info().Able("cost")
	})
}

// checkBalance refuses to wait for a balance that a system has no means to tell.
func checkBalance(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	if e.Upload == nil || e.Upload.Need.Balance == "" {
		return nil
	}
	return untold(cfg, "balance", "", "monitor", "cost")
}

// checkContracts does the same for contracts.
func checkContracts(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	if e.Upload == nil || e.Upload.Need.Contracts == 0 {
		return nil
	}
	return untold(cfg, "contracts", "0", "monitor")
}

// untold are the systems with none of the abilities by which a need is told. The
// key of the need has the name of its precondition.
func untold(cfg Config, key, zero string, abilities ...string) []Problem {
	var all []Problem
	for _, use := range cfg.Plan.Experiment.Systems {
		sys := findSystem(cfg.Systems, use.Use)
		if sys == nil || slices.ContainsFunc(abilities, func(a string) bool { return sys.Info().Able(a) }) {
			continue
		}
		all = append(all, Problem{
			Name:     key,
			What:     fmt.Sprintf("%s: upload.need.%s would be waited for, and this system has none that it tells", use.Name, key),
			Hint:     "leave it out: --set upload.need." + key + "=" + zero,
			Blocking: true,
		})
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
		if sys := findSystem(cfg.Systems, use.Use); sys != nil && !sys.Info().Able("allow") {
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
