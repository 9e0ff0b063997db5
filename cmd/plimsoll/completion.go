package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system/all"
)

// complete tells shells what may follow: `plimsoll completion bash|zsh|fish` writes
// the scripts, which ask the program itself.
func complete(root *cobra.Command) {
	experiments := func(dirToo cobra.ShellCompDirective) cobra.CompletionFunc {
		return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return presetCompletions(), dirToo
		}
	}
	words := func(w ...cobra.Completion) cobra.CompletionFunc {
		return cobra.FixedCompletions(w, cobra.ShellCompDirectiveNoFileComp)
	}
	directories := func(_ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	systems := func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return systemCompletions(args), cobra.ShellCompDirectiveNoFileComp
	}
	arguments := map[string]cobra.CompletionFunc{
		"run": experiments(cobra.ShellCompDirectiveDefault), "plan": experiments(cobra.ShellCompDirectiveDefault), "doctor": experiments(cobra.ShellCompDirectiveDefault),
		"presets": experiments(cobra.ShellCompDirectiveNoFileComp),
		"resume":  directories, "report": directories, "export": directories, "serve": directories, "compare": directories,
		"systems": systems, "collect": systems, "install": systems,
	}
	flags := map[string]cobra.CompletionFunc{
		"compare --metric": completeMetrics, "compare --gate": completeGates, "report --gate": completeGates,
		"set": completeSet, "system": systems,
		"export --format": words("csv", "parquet", "json", "benchfmt", "ops-csv", "jobs-csv", "polls-csv", "calls-csv", "readings-csv", "marks-csv",
			"ops-parquet", "jobs-parquet", "polls-parquet", "calls-parquet", "readings-parquet", "marks-parquet"),
		"compare --format": words(comparisonFormats...),
	}
	eachCommand(root, func(c *cobra.Command) {
		if f := arguments[c.Name()]; f != nil && c.ValidArgsFunction == nil {
			c.ValidArgsFunction = f
		}
		for name, f := range flags {
			of, flag, own := strings.Cut(name, " --")
			if !own {
				of, flag = c.Name(), name
			}
			if !own && flags[c.Name()+" --"+flag] != nil {
				continue
			}
			if c.Name() == of && c.Flags().Lookup(flag) != nil {
				_ = c.RegisterFlagCompletionFunc(flag, f) // fails only for a flag that there is not
			}
		}
	})
}

// eachCommand visits a command and all below it.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, visit)
	}
}

func presetCompletions() []cobra.Completion {
	var names []cobra.Completion
	for _, p := range presets.List() {
		names = append(names, cobra.CompletionWithDesc(p.Name, p.Summary))
	}
	return names
}

func systemCompletions(without []string) []cobra.Completion {
	var names []cobra.Completion
	for _, s := range all.All() {
		if info := s.Info(); !slices.Contains(without, info.Name) {
			names = append(names, cobra.CompletionWithDesc(info.Name, info.Summary))
		}
	}
	return names
}

// metricsOf are the metrics of the run directory that the command line names first,
// or of all scenarios where it names none yet.
func metricsOf(args []string) []record.Metric {
	if len(args) > 0 {
		run, err := record.Open(args[0])
		if err != nil {
			return nil
		}
		defer run.Close()
		return run.Metrics()
	}
	var all []record.Metric
	seen := map[string]bool{}
	for _, s := range scenario.All() {
		for _, m := range s.Metrics() {
			if !seen[m.Key] {
				seen[m.Key] = true
				all = append(all, m)
			}
		}
	}
	return all
}

func completeMetrics(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	keys := []cobra.Completion{cobra.CompletionWithDesc("all", "of every metric")}
	for _, m := range metricsOf(args) {
		keys = append(keys, cobra.CompletionWithDesc(m.Key, m.Name))
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// planOf is the plan of the run directory that the command line names first; nil: it
// names none.
func planOf(args []string) *experiment.Plan {
	if len(args) == 0 {
		return nil
	}
	run, err := record.Open(args[0])
	if err != nil {
		return nil
	}
	defer run.Close()
	var plan experiment.Plan
	if json.Unmarshal(run.Plan(), &plan) != nil {
		return nil
	}
	return &plan
}

// systemsOf are the systems of a run, in the order of its cells.
func systemsOf(plan *experiment.Plan) []cobra.Completion {
	var names []cobra.Completion
	for _, c := range plan.Cells {
		if !slices.Contains(names, c.System) {
			names = append(names, c.System)
		}
	}
	return names
}

// completeSystemsOf completes a system of the run, or any where none is named.
func completeSystemsOf(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if plan := planOf(args); plan != nil {
		return systemsOf(plan), cobra.ShellCompDirectiveNoFileComp
	}
	return systemCompletions(nil), cobra.ShellCompDirectiveNoFileComp
}

// completeGates completes the metric that a rule begins with, and tells how it goes on;
// after "of" it completes the system.
func completeGates(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var rules []cobra.Completion
	if at := strings.LastIndex(begun, " of "); at >= 0 && strings.Contains(begun[:at], " within ") {
		systems, how := completeSystemsOf(c, args, "")
		for _, s := range systems {
			rules = append(rules, begun[:at+len(" of ")]+s)
		}
		return rules, how | cobra.ShellCompDirectiveNoSpace
	}
	if c.Name() == "compare" {
		rules = append(rules, cobra.CompletionWithDesc("no worse than BASE by 5%", "the headline metric against the base run"))
	}
	for _, m := range metricsOf(args) {
		form := "<"
		switch m.Better {
		case record.Higher:
			form = ">"
		case record.Neither:
			form = "< or >"
		}
		rules = append(rules, cobra.CompletionWithDesc(m.Key, strings.TrimSpace(m.Name+": "+form+" a value"+gateUnit(m.Unit))))
	}
	return rules, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// gateUnit says what unit a value of a rule has.
func gateUnit(unit string) string {
	switch unit {
	case "", "1":
		return ""
	case "ratio":
		return " in %"
	}
	return " in " + unit
}

// completeSet completes the key of --set KEY=VALUE.
func completeSet(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var keys []cobra.Completion
	for _, k := range experiment.Keys() {
		keys = append(keys, k+"=")
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
