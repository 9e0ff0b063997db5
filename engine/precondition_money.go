package engine

import (
	"context"
	"fmt"
	"slices"
)

// checkBudget refuses a load test that may spend without an end: it runs for weeks
// unattended.
func checkBudget(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	var all []Problem
	problem := func(what, hint string) { all = append(all, refuse(what, hint)) }
	pays := false
	for _, use := range e.Systems {
		if !cfg.can(use.Use, "cost") {
			continue
		}
		pays = true
		if e.Upload != nil && use.Attached() && e.Exit.MaxSpend == "" {
			problem(use.Name+": it pays for what it stores, and nothing ends the test when enough is spent",
				"say exit: {max_spend: AMOUNT} in the system's currency, or skip: [budget] when its own limits are "+
					"enough")
		}
	}
	if e.LoadTest() && !pays && e.Exit.MaxSpend != "" {
		problem("exit.max_spend can never be met: no system has the ability cost",
			"leave it out: --set exit.max_spend=")
	}
	return all
}

// checkBalance and checkContracts refuse to wait for what a system cannot report.
func checkBalance(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	return cfg.unable("balance", e.Upload != nil && e.Upload.Need.Balance != "", "monitor", "cost")
}

func checkContracts(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	return cfg.unable("contracts", e.Upload != nil && e.Upload.Need.Contracts > 0, "monitor")
}

// unable are the systems with none of the abilities that a need, if it is asked for,
// takes one of.
func (c Config) unable(need string, asked bool, abilities ...string) (all []Problem) {
	for _, use := range c.Plan.Experiment.Systems {
		able := func(ability string) bool { return c.can(use.Use, ability) }
		if asked && !slices.ContainsFunc(abilities, able) {
			all = append(all, refuse(fmt.Sprintf("%s: upload.need.%s: this system has none that can be read or set",
				use.Name, need), "leave it out: --set upload.need."+need+"="))
		}
	}
	return all
}

// can reports whether a kind of system has an ability.
func (c Config) can(name, ability string) bool {
	sys := findSystem(c.Systems, name)
	return sys != nil && slices.Contains(sys.Info().Can, ability)
}
