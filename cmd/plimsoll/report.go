package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/export"
	"github.com/plimsoll-project/plimsoll/report/page"
)

func (p *program) reportCommand() *cobra.Command {
	var o reportOptions
	c := verb("report DIR", exactly(1, "one run directory"), func(c *cobra.Command, args []string) error {
		if n := runsIn(args[0]); n > 0 && len(o.gates) == 0 && len(o.sets) == 0 && !o.again {
			return p.reportIndex(args[0], n)
		}
		rulings, err := p.writeReport(args[0], o)
		return errors.Join(err, gateVerdict(rulings))
	})
	o.flags(c)
	c.Flags().BoolVar(&o.again, "recompute", false, "compute the metrics again from what was recorded, by this "+
		"version's definitions")
	c.Flags().BoolVar(&o.verbose, "verbose", false, "print all findings and all columns, however long")
	return c
}

// reportOptions are how a finished run is judged and shown.
type reportOptions struct {
	gates, sets []string
	again       bool // recompute metrics
	verbose     bool
}

func (o *reportOptions) flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.gates, "gate", nil, "rule that the run must satisfy: 'p90(ttfb) < 200ms', 'throughput "+
		"within 20% of nginx'; in compare 'no worse than BASE by 5%'")
	setLimitsFlag(c, &o.sets)
}

func setLimitsFlag(c *cobra.Command, sets *[]string) {
	c.Flags().StringArrayVar(sets, "set", nil,
		"judge again which trials are valid: limits.others=none, limits.machine=95%")
}

// openRun opens a run directory, with a hint about what one is if that fails.
func openRun(dir string) (*record.Reader, error) {
	r, err := record.Open(dir)
	if err != nil {
		err = ui.WithHint(err, "a run directory is what plimsoll run prints as `recorded in`")
	}
	return r, ui.Exit(ui.CodeUsage, err)
}

// writeReport writes summary.json and report.html into the run directory and the table to
// standard output. It checks the gates of the options besides those of the plan; the files have only
// the latter. Trials are judged by the limits of the plan, changed by sets.
func (p *program) writeReport(dir string, o reportOptions) ([]analysis.Ruling, error) {
	r, err := openRun(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rep, err := report.Build(r, o.again, o.sets...)
	if err != nil {
		return nil, fmt.Errorf("report on %s: %w", dir, err)
	}
	rulings, err := rep.DecideGates(o.gates)
	if err != nil {
		return nil, ui.Exit(ui.CodeUsage, err)
	}
	file := filepath.Join(dir, "report.html")
	if err := errors.Join(
		atomicfile.Write(filepath.Join(dir, "summary.json"), func(w io.Writer) error { return page.JSON(w, rep) }),
		atomicfile.Write(file, func(w io.Writer) error { return page.HTML(w, rep, false) }),
	); err != nil {
		return nil, err
	}
	all := slices.Concat(rep.Gates, rulings)
	if p.ui.JSON {
		for _, g := range all {
			p.ui.Emit(struct {
				Type string `json:"type"`
				analysis.Ruling
			}{"gate", g})
		}
		var b bytes.Buffer
		if err := page.JSON(&b, rep); err != nil {
			return nil, err
		}
		p.ui.Emit(json.RawMessage(b.Bytes())) // on one line, like every message
		return all, nil
	}
	if err := page.Text(p.stdout, rep, p.ui.Width(), o.verbose); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(ui.Plain(p.stdout), "\nThe page: %s\n%s", file, page.GatesText(rulings, p.ui.Width()))
	return all, err
}

func (p *program) exportCommand() *cobra.Command {
	var format, out string
	var sets []string
	c := verb("export DIR", exactly(1, "one run directory"), func(c *cobra.Command, args []string) error {
		r, err := openRun(args[0])
		if err != nil {
			return err
		}
		defer r.Close()
		result := func(to func(*analysis.Result, io.Writer) error) func(io.Writer) error {
			return func(w io.Writer) error {
				rep, err := report.Build(r, false, sets...)
				if err != nil {
					return err
				}
				return to(rep, w)
			}
		}
		return p.writeAs(format, exportFormats, out, map[string]func(io.Writer) error{
			"csv": result(export.CSV), "parquet": result(export.Parquet), "benchfmt": result(export.Benchfmt),
			"json":        result(func(r *analysis.Result, w io.Writer) error { return page.JSON(w, r) }),
			"ops-csv":     func(w io.Writer) error { return export.OperationsCSV(r, w) },
			"ops-parquet": func(w io.Writer) error { return export.OperationsParquet(r, w) },
		})
	})
	c.Flags().StringVar(&format, "format", "csv", exportFormats)
	c.Flags().StringVar(&out, "out", "", "file to write (default standard output)")
	setLimitsFlag(c, &sets)
	return c
}

// writeAs writes one of several formats to a file or, without a name, to standard output.
func (p *program) writeAs(format, known, file string, formats map[string]func(io.Writer) error) error {
	switch write := formats[format]; {
	case write == nil:
		return usage(fmt.Errorf("unknown format %q", format), "formats: "+known)
	case file != "":
		return atomicfile.Write(file, write)
	default:
		return write(p.stdout)
	}
}

// exportFormats names the formats.
const exportFormats = "csv, parquet, json or benchfmt; of operations ops-csv or ops-parquet; " +
	"other tables: sqlite3 -csv DIR/run.db (docs/run-db.md)"

// runsIn counts the runs below a directory; 0 if it is a run itself.
func runsIn(dir string) int {
	if report.IsRun(dir) {
		return 0
	}
	ids, _ := report.FindRuns(dir) // opening it as a run reports errors
	return len(ids)
}

// reportIndex writes an index of the runs below a directory into it.
func (p *program) reportIndex(dir string, runs int) error {
	page := filepath.Join(dir, "plimsoll-runs.html") // unlikely to be a file of the user
	if err := atomicfile.Write(page, func(w io.Writer) error { return report.WriteIndex(w, dir) }); err != nil {
		return err
	}
	return p.result(map[string]any{"type": "index", "page": page, "runs": runs},
		"The index of %s: %s", words.Plural(int64(runs), "run", "runs"), page)
}
