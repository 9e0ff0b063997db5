package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/report/studylog"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
)

func (p *program) importCommand() *cobra.Command {
	var out string
	wants := atLeast(1, "at least one file or directory")
	c := verb("import FILE|DIR…", wants, func(c *cobra.Command, args []string) error {
		out := outOr(out, "imported")
		res, err := studylog.Import(c.Context(), args, studylog.Options{Dir: out, Version: programVersion(),
			Metrics: disseminate.Scenario{}.Metrics(), Measure: disseminate.TimesOf})
		if errors.Is(err, studylog.ErrNothing) {
			return usage(err, "a log has lines with >>{…} in them, among them one of an "+
				"experiment's configuration; see docs/study-logs.md")
		}
		if err != nil {
			return err
		}
		return p.result(res, "%s\nThe run: %s; plimsoll report %[2]s", strings.Join(res.Words(), "\n"), out)
	})
	outFlag(c, &out, "imported")
	return c
}
