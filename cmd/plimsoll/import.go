package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/report/studylog"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
)

func (p *program) importCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:  "import FILE|DIR…",
		Args: atLeast(1, "at least one file or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			return p.importLogs(c.Context(), args, outOr(out, "imported"))
		},
	}
	outFlag(c, &out, "imported")
	return c
}

func (p *program) importLogs(ctx context.Context, files []string, out string) error {
	res, err := studylog.Import(ctx, files, studylog.Options{Dir: out, Version: programVersion(),
		Metrics: disseminate.Scenario{}.Metrics(), Measure: disseminate.TimesOf})
	if errors.Is(err, studylog.ErrNothing) {
		return usage(err, "a log has lines with >>{…} in them, among them one of an "+
			"experiment's configuration; see docs/study-logs.md")
	}
	if err != nil {
		return err
	}
	return p.result(res, "%s\nThe run: %s; plimsoll report %[2]s", strings.Join(res.Words(), "\n"), out)
}
