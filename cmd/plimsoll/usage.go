package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
)

func usageError(c *cobra.Command, what string) error {
	return ui.Exit(ui.CodeUsage, ui.WithHint(
		fmt.Errorf("%s wants %s", c.CommandPath(), what),
		strings.TrimSuffix(c.UseLine(), " [flags]")+"; see "+c.CommandPath()+" --help"))
}
