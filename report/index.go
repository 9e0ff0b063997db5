package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// Bounds of the search for runs: a directory of runs has them in itself or in
// directories of its own, and no more of them than a person could look through.
const (
	indexDepth   = 2
	indexEntries = 20_000
	indexRuns    = 2_000
)

// Index lists the runs below a directory.
type Index struct {
	Runs  []page.IndexRow // latest first
	Notes []string
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

// FindRuns finds the run directories below a directory, at most two levels deep,
// as paths with slashes below it, in order. Symbolic links are not followed. More
// is true when there are more of them, or more directories than are looked at.
func FindRuns(root string) (ids []string, more bool, err error) {
	looked := 0
	var look func(id string, depth int) error
	look = func(id string, depth int) error {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(id)))
		if err != nil {
			if id != "" && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)) {
				return nil // not ours to read, or gone since
			}
			return err
		}
		for _, e := range entries {
			if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			if looked++; looked > indexEntries || len(ids) >= indexRuns {
				more = true
				return nil
			}
			below := path.Join(id, e.Name())
			if IsRun(filepath.Join(root, filepath.FromSlash(below))) {
				ids = append(ids, below)
			} else if depth > 1 {
				if err := look(below, depth-1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := look("", indexDepth); err != nil {
		return nil, false, fmt.Errorf("report: look for runs: %w", err)
	}
	return ids, more, nil
}

// indexer keeps the rows of the runs below a directory for as long as these do not
// change. Errors are not kept: what cannot be read now may be read the next time.
type indexer struct {
	root string

	mu    sync.Mutex
	known map[string]knownRun
}

type knownRun struct {
	stamp stamp
	row   page.IndexRow
}

// stamp changes when a run's database does, or when its writer ends.
type stamp struct {
	at      time.Time
	size    int64
	written bool // a process has it open for writing
}

func stampOf(dir string) (stamp, error) {
	s := stamp{written: record.Written(dir)}
	for _, name := range []string{"run.db", "run.db-wal"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name != "run.db" {
			continue
		}
		if err != nil {
			return stamp{}, err
		}
		if name != "run.db" && info.Size() == 0 {
			continue // a reader made it
		}
		s.size += info.Size()
		if info.ModTime().After(s.at) {
			s.at = info.ModTime()
		}
	}
	return s, nil
}

func newIndexer(root string) *indexer {
	return &indexer{root: root, known: map[string]knownRun{}}
}

func (x *indexer) dir(id string) string { return filepath.Join(x.root, filepath.FromSlash(id)) }

// read gives the index as it is now. What has not changed since the last time is
// not read again; what is left when ctx ends is read by the next look.
func (x *indexer) read(ctx context.Context) (*Index, error) {
	ids, more, err := FindRuns(x.root)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	before := x.known
	x.mu.Unlock()
	index, known := &Index{}, map[string]knownRun{}
	for _, id := range ids {
		dir := x.dir(id)
		s, err := stampOf(dir)
		k, ok := before[id]
		if err == nil && (!ok || k.stamp != s) {
			k.stamp = s
			if err = ctx.Err(); err != nil {
				err = errors.New("not read yet: load this page again")
			} else {
				k.row, err = rowOf(dir, s)
			}
		}
		if k.row.ID = id; err != nil {
			// The directory of runs itself is not named: others may see the page.
			k.row = page.IndexRow{ID: id, Error: strings.ReplaceAll(err.Error(), dir, id)}
		} else {
			known[id] = k
		}
		index.Runs = append(index.Runs, k.row)
	}
	x.mu.Lock()
	x.known = known
	x.mu.Unlock()
	slices.SortStableFunc(index.Runs, func(a, b page.IndexRow) int { return b.Run.Started.Compare(a.Run.Started) })
	if more {
		index.Notes = append(index.Notes, fmt.Sprintf("There are more directories than are looked at: these are the first %s.",
			words.Plural(int64(len(ids)), "run", "runs")))
	}
	return index, nil
}

// rowOf reads a run's row: from summary.json if that is newer than the database,
// else it computes the report. Of a run that goes on, which changes from look to
// look, it only counts the trials.
func rowOf(dir string, s stamp) (page.IndexRow, error) {
	if row, ok := rowOfSummary(filepath.Join(dir, "summary.json"), s); ok {
		return row, nil
	}
	run, err := record.Open(dir)
	if err != nil {
		return page.IndexRow{}, err
	}
	defer run.Close()
	r, err := Build(run)
	if err != nil {
		return page.IndexRow{}, err
	}
	return rowOfResult(r), nil
}

func rowOfResult(r *analysis.Result) page.IndexRow {
	row := page.IndexRow{Title: r.Title, Scenario: r.Scenario, Run: r.Run, Verdict: r.Verdict, Plimsoll: r.Environ("plimsoll")}
	switch gates := slices.DeleteFunc(slices.Clone(r.Gates), func(g analysis.Ruling) bool { return g.Goal }); {
	case r.Run.State == "running":
		row.Verdict = analysis.Verdict{Text: fmt.Sprintf("%d of %d trials done so far.", r.Run.Done, r.Run.Planned), Tone: analysis.Neutral}
	case len(gates) == 0:
	case !slices.ContainsFunc(gates, func(g analysis.Ruling) bool { return g.State != analysis.GateBase }):
		row.Gates = analysis.GateBase
	default:
		row.Gates = analysis.GateState(gates)
	}
	for _, s := range r.Systems {
		row.Systems = append(row.Systems, s.Name)
	}
	return row
}

// maxSummary is the largest summary.json that is read; that of 500 cells has a
// few MB.
const maxSummary = 64 << 20

func rowOfSummary(file string, s stamp) (page.IndexRow, bool) {
	info, err := os.Stat(file)
	if err != nil || info.ModTime().Before(s.at) || info.Size() > maxSummary {
		return page.IndexRow{}, false
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return page.IndexRow{}, false
	}
	var r analysis.Result
	if json.Unmarshal(raw, &r) != nil || r.Format != analysis.Format || r.Scenario == "" || r.Run.State == "running" && !s.written {
		return page.IndexRow{}, false
	}
	return rowOfResult(&r), true
}
