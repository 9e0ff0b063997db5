package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

func binaryFormat(format string) bool { return strings.HasSuffix(format, "parquet") }

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// exporter finds what writes a format.
func exporter(r *record.Reader, format string) (func(io.Writer) error, error) {
	switch format {
	default:
		return nil, ui.Exit(ui.CodeUsage, ui.WithHint(fmt.Errorf("unknown format %q", format),
			"formats: csv, ops-csv, parquet, ops-parquet, json, benchfmt"))
	}
}
