package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/export"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// exportFormats names the formats.
const exportFormats = "csv, parquet, json or benchfmt; of operations ops-csv or ops-parquet; " +
	"other tables: sqlite3 -csv DIR/run.db (docs/run-db.md)"

func binaryFormat(format string) bool { return strings.HasSuffix(format, "parquet") }

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// exporter finds what writes a format, of trials that are judged by sets.
func exporter(r *record.Reader, format string, sets []string) (func(io.Writer) error, error) {
	of := func(write func(*analysis.Result, io.Writer) error) (func(io.Writer) error, error) {
		rep, err := report.Build(r, sets...)
		if err != nil {
			return nil, err
		}
		return func(w io.Writer) error { return write(rep, w) }, nil
	}
	switch format {
	case "csv":
		return of(export.CSV)
	case "parquet":
		return of(export.Parquet)
	case "json":
		return of(func(r *analysis.Result, w io.Writer) error { return page.JSON(w, r) })
	case "benchfmt":
		return of(export.Benchfmt)
	case "ops-csv":
		return func(w io.Writer) error { return export.OperationsCSV(r, w) }, nil
	case "ops-parquet":
		return func(w io.Writer) error { return export.OperationsParquet(r, w) }, nil
	}
	return nil, usage(fmt.Errorf("unknown format %q", format), "formats: "+exportFormats)
}
