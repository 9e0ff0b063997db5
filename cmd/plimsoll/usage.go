package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
)

func usageError(c *cobra.Command, what string) error {
	return ui.Exit(ui.CodeUsage, ui.WithHint(
		fmt.Errorf("%s wants %s", c.CommandPath(), what),
		fmt.Sprintf("plimsoll %s; see plimsoll %s --help", c.Use, c.Name())))
}
