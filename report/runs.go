package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/page"
	"github.com/plimsoll-project/plimsoll/scenario"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
)

// Build evaluates a run directory with the limits of its plan, changed by --set arguments such
// as limits.others=none. The same directory gives the same result. With recompute, this version's
// definitions compute the metrics of trials from their records, as far as they contain what is
// needed; that reads operations and jobs, which takes some 2 s per million.
func Build(run *record.Reader, recompute bool, sets ...string) (*analysis.Result, error) {
	plan, err := analysis.ReadPlan(run)
	if err != nil {
		return nil, err
	}
	s := scenarios.ByName(plan.Experiment.Scenario)
	if s == nil {
		return nil, fmt.Errorf("%s: unknown scenario %q; use the version of plimsoll that wrote it", run.Dir(),
			plan.Experiment.Scenario)
	}
	var again func(*record.Trial, experiment.Cell) error
	if recompute {
		again = func(t *record.Trial, cell experiment.Cell) error {
			m, err := scenario.Recompute(s, run, *t, cell, nil)
			if errors.Is(err, scenario.ErrNoFacts) {
				return nil
			}
			t.Metrics = m
			return err
		}
	}
	f, err := analysis.Load(run, plan, s.View(), again, sets...)
	if err != nil {
		return nil, err
	}
	return analysis.Analyse(f)
}

// IsRun reports whether a directory is a run directory.
func IsRun(dir string) bool {
	for _, name := range []string{"plan.json", "run.db"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// FindRuns finds the run directories below a directory, at most two levels deep, and returns
// their relative paths with slashes, sorted. It follows no symbolic links.
func FindRuns(root string) (ids []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(id string, e fs.DirEntry, err error) error {
		switch {
		case id == "." || err == nil && !e.IsDir():
			return err
		case err != nil || strings.HasPrefix(e.Name(), "."): // unreadable, or gone meanwhile
			return fs.SkipDir
		case IsRun(filepath.Join(root, filepath.FromSlash(id))):
			ids = append(ids, id)
			return fs.SkipDir
		case strings.Contains(id, "/"):
			return fs.SkipDir
		}
		return nil
	})
	return ids, err
}

// changed returns when a run's database last changed. An empty log was created by a reader.
func changed(dir string) (at time.Time) {
	for _, name := range []string{"run.db", "run.db-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Size() > 0 && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// readIndex returns an index of the runs below a directory, latest first, with links to the runs'
// report.html. It contains only the last element of the directory's path, because readers of the
// page may not be meant to know the rest.
func readIndex(root string) (index page.Index, err error) {
	ids, err := FindRuns(root)
	if err != nil {
		return index, err
	}
	if dir, err := filepath.Abs(root); err == nil {
		index.Dir = filepath.Base(dir)
	}
	for _, id := range ids {
		dir := filepath.Join(root, filepath.FromSlash(id))
		row, err := rowOf(dir)
		if err != nil {
			row = page.IndexRow{Error: strings.ReplaceAll(err.Error(), dir, id)}
		}
		row.ID, row.Link = id, "./"+(&url.URL{Path: id}).EscapedPath()+"/report.html"
		index.Rows, index.Held = append(index.Rows, row), index.Held || row.Gates != ""
	}
	slices.SortStableFunc(index.Rows, func(a, b page.IndexRow) int { return b.Run.Started.Compare(a.Run.Started) })
	return index, nil
}

// WriteIndex writes an index of the runs below a directory as one self-contained page.
func WriteIndex(w io.Writer, root string) error {
	index, err := readIndex(root)
	if err != nil {
		return err
	}
	return page.WriteIndex(w, index)
}

// resultOf reads summary.json if it is newer than the database, and otherwise computes the report.
func resultOf(dir string) (*analysis.Result, error) {
	file := filepath.Join(dir, "summary.json")
	if info, err := os.Stat(file); err == nil && !info.ModTime().Before(changed(dir)) {
		r := &analysis.Result{}
		raw, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(raw, r) == nil && r.Format == analysis.Format && r.Scenario != "" &&
			(r.Run.State != "running" || record.Written(dir)) {
			return r, nil
		}
	}
	return judge(dir)
}

func judge(dir string) (*analysis.Result, error) {
	run, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	return Build(run, false)
}

// rowOf returns the row of a run. The number of trials replaces the verdict of a running run, which
// keeps changing.
func rowOf(dir string) (row page.IndexRow, err error) {
	r, err := resultOf(dir)
	if err != nil {
		return row, err
	}
	row = page.IndexRow{Title: r.Title, Scenario: r.Scenario, Run: r.Run, Verdict: r.Verdict,
		Plimsoll: r.Environ("plimsoll")}
	if r.Run.State == "running" {
		row.Verdict = analysis.Verdict{Text: fmt.Sprintf("%d of %d trials done so far.", r.Run.Done, r.Run.Planned),
			Tone: analysis.Neutral}
	} else {
		row.Gates = analysis.GateState(r.Gates)
	}
	for _, s := range r.Systems {
		row.Systems = append(row.Systems, s.Name)
	}
	return row, nil
}

// Runs serves an index of the runs below a directory and the page of each run as it is at the time
// of the request. Like [Live] it answers only requests for a loopback name. It serves only runs
// that it found itself.
func Runs(root string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		serve(w, func(to io.Writer) error { return WriteIndex(to, root) })
	})
	mux.HandleFunc("GET /{page...}", func(w http.ResponseWriter, req *http.Request) {
		id, is := strings.CutSuffix(req.PathValue("page"), "/report.html")
		// The requested run must be one that was found: the request is never used as a path.
		if ids, err := FindRuns(root); err != nil || !is || !slices.Contains(ids, id) {
			http.NotFound(w, req)
			return
		}
		serve(w, func(to io.Writer) error {
			r, err := judge(filepath.Join(root, filepath.FromSlash(id)))
			if err != nil {
				return err
			}
			return page.HTML(to, r, false)
		})
	})
	return loopbackNames(mux)
}
