package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
)

// checkBudget refuses a load test that may spend without an end: it runs for weeks
// unattended.
func checkBudget(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	var all []Problem
	problem := func(what, hint string) { all = append(all, refuse(what, hint)) }
	if e.Exit.MaxSpend != "" {
		if _, err := smallestUnits(e.Exit.MaxSpend, 0); err != nil {
			problem("exit.max_spend: "+err.Error(), "max_spend: 3600")
		}
	}
	pays := false
	for _, use := range e.Systems {
		if !cfg.can(use.Use, "cost") {
			continue
		}
		pays = true
		if e.Upload != nil && use.Mode == string(system.Attach) && e.Exit.MaxSpend == "" {
			problem(use.Name+": it pays for what it stores, and nothing ends the test when enough is spent",
				"say exit: {max_spend: AMOUNT} in the system's currency, or skip: [budget] when its own limits are enough")
		}
	}
	if e.LoadTest() && !pays && e.Exit.MaxSpend != "" {
		problem("exit.max_spend can never be met: no system has the ability cost", "leave it out: --set exit.max_spend=")
	}
	return all
}

// checkNeed is the part of checkNeeds of one name.
func checkNeed(name string) func(context.Context, Config) []Problem {
	return func(ctx context.Context, cfg Config) []Problem {
		return slices.DeleteFunc(checkNeeds(ctx, cfg), func(p Problem) bool { return p.Name != name })
	}
}

// checkNeeds refuses to wait for what a system cannot report, and to set a budget
// that is not allowed or cannot be set.
func checkNeeds(_ context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	if e.Upload == nil {
		return nil
	}
	n := e.Upload.Need
	var all []Problem
	for _, c := range []struct {
		key   string
		asked bool
		by    []string // abilities, of which one is enough
	}{
		{"balance", n.Balance != "", []string{"monitor", "cost"}},
		{"contracts", n.Contracts > 0, []string{"monitor"}},
		{"allowance", n.Allowance != "", []string{"allow"}},
	} {
		for _, use := range e.Systems {
			if c.asked && !slices.ContainsFunc(c.by, func(ability string) bool { return cfg.can(use.Use, ability) }) {
				all = append(all, Problem{
					Name: c.key, What: fmt.Sprintf("%s: upload.need.%s: this system has none that can be read or set", use.Name,
						c.key),
					Hint: "leave it out: --set upload.need." + c.key + "=", Blocking: true,
				})
			}
		}
	}
	if n.Allowance == "" {
		return all
	}
	if _, err := smallestUnits(n.Allowance, 0); err != nil && n.Allowance != wholeBalance {
		all = append(all, Problem{Name: "allowance", What: "upload.need.allowance: " + err.Error(),
			Hint: "allowance: 500, or allowance: all", Blocking: true})
	}
	if !slices.Contains(e.Allow, "spend") {
		all = append(all, Problem{Name: "allowance", What: "upload.need.allowance sets a budget, and the experiment does " +
			"not allow to spend money",
			Hint: "say allow: [write, spend]", Blocking: true})
	}
	return all
}

// can reports whether a kind of system has an ability.
func (c Config) can(name, ability string) bool {
	sys := findSystem(c.Systems, name)
	return sys != nil && slices.Contains(sys.Info().Can, ability)
}

// wholeBalance is the allowance that leaves nothing.
const wholeBalance = "all"
