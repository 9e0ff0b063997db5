package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/report"
)

// runsIn counts the runs below a directory that is no run itself; 0: it is one, or
// has none.
func runsIn(dir string) int {
	if report.IsRun(dir) {
		return 0
	}
	ids, _, err := report.FindRuns(dir)
	if err != nil {
		return 0 // opening it as a run says why
	}
	return len(ids)
}

// reportIndex writes index.html, an index of the runs below a directory, into it.
func (p *program) reportIndex(dir string, runs int) error {
	page := filepath.Join(dir, "index.html")
	if err := atomicfile.Write(page, func(w io.Writer) error { return report.WriteIndex(w, dir) }); err != nil {
		return err
	}
	if p.ui.JSON {
		p.ui.Emit(struct {
			Type string `json:"type"`
			Page string `json:"page"`
			Runs int    `json:"runs"`
		}{"index", page, runs})
		return nil
	}
	_, err := fmt.Fprintf(p.stdout, "The index of %d runs: %s\n", runs, page)
	return err
}
