package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// comparison is what the command line asks for.
type comparison struct {
	options analysis.CompareOptions
	format  string
	out     string
	judgement
}

func (p *program) compareCommand() *cobra.Command {
	var o comparison
	c := &cobra.Command{
		Use:  "compare BASE NEW...",
		Args: atLeast(2, "a base run directory and at least one other"),
		RunE: func(c *cobra.Command, args []string) error { return p.compare(args, o) },
	}
	c.Flags().StringArrayVar(&o.options.Metrics, "metric", nil,
		"show all cells of this metric, too; all: of every metric")
	c.Flags().BoolVar(&o.options.Unlike, "unlike", false, "compare cells whose settings differ, too")
	o.judgement.flags(c)
	c.Flags().StringVar(&o.format, "format", "text", "one of "+comparisonFormats)
	c.Flags().StringVar(&o.out, "out", "", "file to write (default standard output)")
	return c
}

func (p *program) compare(dirs []string, o comparison) error {
	if p.ui.JSON && o.format != "json" && o.format != "text" {
		return usage(fmt.Errorf("--json and --format %s exclude each other", o.format), "--json is --format json on one line")
	}
	if err := notItself(dirs); err != nil {
		return err
	}
	var runs []*analysis.Result
	var names []string
	for _, dir := range dirs {
		r, err := openRun(dir)
		if err != nil {
			return err
		}
		defer r.Close()
		result, err := report.Build(r, false, o.sets...)
		if err != nil {
			return fmt.Errorf("compare %s: %w", dir, err)
		}
		runs, names = append(runs, result), append(names, filepath.Clean(dir))
	}
	c, err := analysis.CompareRuns(runs[0], runs[1:], names, o.options)
	if err != nil {
		return err
	}
	if err := c.Hold(o.gates); err != nil {
		return ui.Exit(ui.CodeUsage, err)
	}
	if p.ui.JSON {
		o.format = "json"
	}
	err = p.writeAs(o.format, comparisonFormats, o.out, map[string]func(io.Writer) error{
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

// notItself returns an error if the base run is among the new ones: a gate against itself would
// always pass.
func notItself(dirs []string) error {
	base, err := os.Stat(dirs[0])
	if err != nil {
		return nil // opening it reports the error
	}
	for _, dir := range dirs[1:] {
		if is, err := os.Stat(dir); err == nil && os.SameFile(base, is) {
			return usage(fmt.Errorf("%s is the base run itself", dir), "name another run to compare with "+dirs[0])
		}
	}
	return nil
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
