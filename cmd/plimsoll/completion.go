package main

import (
	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/system/all"
)

// complete says what may follow each verb: `plimsoll completion bash|zsh|fish` writes
// scripts that ask the program itself.
func complete(root *cobra.Command) {
	experiments := cobra.FixedCompletions(presetCompletions(), cobra.ShellCompDirectiveDefault)
	systems := cobra.FixedCompletions(systemCompletions(), cobra.ShellCompDirectiveNoFileComp)
	directories := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	arguments := map[string]cobra.CompletionFunc{
		"run": experiments, "plan": experiments, "doctor": experiments, "presets": experiments,
		"resume": directories, "report": directories, "export": directories, "serve": directories,
		"compare": directories,
		"bench":   cobra.NoFileCompletions, "systems": systems, "collect": systems,
	}
	for _, c := range root.Commands() {
		c.ValidArgsFunction = arguments[c.Name()]
		if c.Flags().Lookup("set") != nil && c.GroupID == "measure" {
			_ = c.RegisterFlagCompletionFunc("set", completeSet) // fails only without such a flag
		}
	}
}

func presetCompletions() []cobra.Completion {
	var names []cobra.Completion
	for _, p := range presets.List() {
		names = append(names, cobra.CompletionWithDesc(p.Name, p.Summary))
	}
	return names
}

func systemCompletions() []cobra.Completion {
	var names []cobra.Completion
	for _, s := range all.All() {
		names = append(names, cobra.CompletionWithDesc(s.Info().Name, s.Info().Summary))
	}
	return names
}

// completeSet completes the key of --set KEY=VALUE.
func completeSet(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var keys []cobra.Completion
	for _, k := range experiment.Keys() {
		keys = append(keys, k.Path+"=")
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
