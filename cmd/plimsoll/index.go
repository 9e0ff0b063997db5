package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/report"
)

// runsIn counts the runs below a directory that is no run itself; 0: it is one, or
// has none.
func runsIn(dir string) int {
	if report.IsRun(dir) {
		return 0
	}
	ids, err := report.FindRuns(dir)
	if err != nil {
		return 0 // opening it as a run says why
	}
	return len(ids)
}

// reportIndex writes index.html, an index of the runs below a directory, into it.
func (p *program) reportIndex(dir string, runs int) error {
	page := filepath.Join(dir, "index.html")
	if err := replaceable(page); err != nil {
		return err
	}
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
	_, err := fmt.Fprintf(p.stdout, "The index of %s: %s\n", words.Plural(int64(runs), "run", "runs"), page)
	return err
}

// indexTitle is what the page of an index is known by, within its first bytes.
const (
	indexTitle = "<title>Runs · Plimsoll</title>"
	indexHead  = 4 << 10
)

// replaceable is nil where there is no page yet, or an index that was written
// before; no other file is overwritten.
func replaceable(page string) error {
	f, err := os.Open(page)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, indexHead))
	if err != nil {
		return fmt.Errorf("read %s: %w", page, err)
	}
	if bytes.Contains(head, []byte(indexTitle)) {
		return nil
	}
	return usage(fmt.Errorf("%s is no index that plimsoll wrote, and is left as it is",
		page), "move it away, or plimsoll serve "+filepath.Dir(page)+" to see the index without writing it")
}
