package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/page"
)

func (p *program) compareCommand() *cobra.Command {
	var options analysis.CompareOptions
	var judged reportOptions
	var format, out string
	c := verb("compare BASE NEW...", atLeast(2, "a base run directory and at least one other"),
		func(_ *cobra.Command, args []string) error { return p.compare(args, options, judged, format, out) })
	c.Flags().StringArrayVar(&options.Metrics, "metric", nil, "show all cells of this metric, too; all: of every metric")
	c.Flags().BoolVar(&options.Unlike, "unlike", false, "compare cells whose settings differ, too")
	judged.flags(c)
	c.Flags().StringVar(&format, "format", "text", "one of "+comparisonFormats)
	c.Flags().StringVar(&out, "out", "", "file to write (default standard output)")
	return c
}

func (p *program) compare(
	dirs []string, options analysis.CompareOptions, judged reportOptions, format, out string,
) error {
	if p.ui.JSON && format != "json" && format != "text" {
		return usage(fmt.Errorf("--json and --format %s exclude each other", format), "--json is --format json on one line")
	}
	var runs []*analysis.Result
	var names []string
	base := ""
	for i, dir := range dirs {
		r, err := openRun(dir)
		if err != nil {
			return err
		}
		defer r.Close()
		if base = cmp.Or(base, r.ID()); i > 0 && r.ID() == base { // a gate against itself would always pass
			return usage(fmt.Errorf("%s is the base run itself", dir), "name another run to compare with "+dirs[0])
		}
		result, err := report.Build(r, false, judged.sets...)
		if err != nil {
			return fmt.Errorf("compare %s: %w", dir, err)
		}
		runs, names = append(runs, result), append(names, filepath.Clean(dir))
	}
	c, err := analysis.CompareRuns(runs[0], runs[1:], names, options)
	if err != nil {
		return err
	}
	if err := c.DecideGates(judged.gates); err != nil {
		return ui.Exit(ui.CodeUsage, err)
	}
	if p.ui.JSON {
		format = "json"
	}
	err = p.writeAs(format, comparisonFormats, out, map[string]func(io.Writer) error{
		"text":     func(w io.Writer) error { return page.CompareText(ui.Plain(w), c, p.ui.Width()) },
		"markdown": func(w io.Writer) error { return page.CompareMarkdown(ui.Plain(w), c) },
		"page":     func(w io.Writer) error { return page.CompareHTML(w, c) },
		"json": func(w io.Writer) error {
			e := json.NewEncoder(w)
			if !p.ui.JSON { // otherwise on one line, like every message
				e.SetIndent("", " ")
			}
			return e.Encode(c)
		},
	})
	if err == nil && len(c.Cells) == 0 {
		err = ui.Exit(ui.CodeInvalid, ui.WithHint(errors.New("the runs have no cell in common that can be compared"),
			"cells are the same when their system and all their settings are; see `What differed`"))
	}
	return errors.Join(err, gateVerdict(c.Gates))
}

// gateVerdict returns nil if all gates pass.
func gateVerdict(all []analysis.Ruling) error {
	switch analysis.GateState(all) {
	case analysis.GateFail:
		return ui.Exit(ui.CodeGate, errors.New(analysis.SayGates(all)))
	case analysis.GateInconclusive:
		return ui.Exit(ui.CodeUndecided, ui.WithHint(errors.New("no gate fails, but "+analysis.SayGates(all)),
			"the lines above say why, cell by cell"))
	}
	return nil
}

// comparisonFormats names the output formats of a comparison.
const comparisonFormats = "text, markdown, json, page"
