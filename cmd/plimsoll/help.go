package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/internal/ui"
)

// helpCommand is `plimsoll help VERB`. An unknown one is a usage error, as it is
// without `help`.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "help about a command, or about what an exit status means",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if c, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, sub := range told(c) {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 && c.HasSubCommands() {
				c, rest, _ = root.Traverse(args)
				var names []string
				for _, sub := range told(c) {
					names = append(names, sub.Name())
				}
				return ui.Exit(ui.CodeUsage, ui.WithHint(fmt.Errorf("there is no help on %q", strings.Join(args, " ")), suggest.OrAll(rest[0], names)))
			}
			c.InitDefaultHelpFlag() // as --help would show it
			return c.Help()
		},
	}
}

// told are the commands below one, and its topics, that help speaks of.
func told(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() && !sub.Hidden {
			all = append(all, sub)
		}
	}
	return all
}
