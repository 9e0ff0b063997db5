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
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// Bounds of the search for runs: a directory of runs has them in itself or in
// directories of its own, and no more of them than a person could look through.
const (
	indexDepth   = 2
	indexEntries = 20_000
	indexRuns    = 2_000
)

// IndexRun is a run as a row of the index.
type IndexRun struct {
	ID       string           `json:"id"` // path below the directory of runs, with slashes
	Title    string           `json:"title"`
	Scenario string           `json:"scenario"`
	Run      analysis.Run     `json:"run"`
	Verdict  analysis.Verdict `json:"verdict"`
	Gates    string           `json:"gates,omitempty"` // the gravest state of its gates; empty: it has none, or goes on
	Plimsoll string           `json:"plimsoll"`
	Systems  []string         `json:"systems"`
	Error    string           `json:"error,omitempty"` // why it cannot be read
	Waits    bool             `json:"waits,omitempty"` // it is not read yet
	Changed  time.Time        `json:"-"`               // when something was last written into it
}

// Index lists the runs below a directory.
type Index struct {
	Runs  []IndexRun `json:"runs"` // latest first
	Notes []string   `json:"notes"`
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
// change. Errors are not kept: what cannot be
// read now may be read the next time.
type indexer struct {
	root    string
	reading singleflight.Group // a run that several viewers want is read once

	mu    sync.Mutex // held for a moment, never while something is read
	known map[string]*knownRun
}

// knownRun is what is known of a run; it does not change once others see it.
type knownRun struct {
	stamp stamp
	row   IndexRun
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
	return &indexer{root: root, known: map[string]*knownRun{}}
}

func (x *indexer) dir(id string) string { return filepath.Join(x.root, filepath.FromSlash(id)) }

// read gives the index as it is now. What has not changed since the last time is
// not read again. What is not read before the context ends is left for the next
// time, which the notes say.
func (x *indexer) read(ctx context.Context) (*Index, error) {
	ids, more, err := FindRuns(x.root)
	if err != nil {
		return nil, err
	}
	all := make([]*knownRun, len(ids))
	inTurn(len(ids), func(i int) { all[i] = x.renew(ctx, ids[i]) })
	there := map[string]bool{}
	for _, id := range ids {
		there[id] = true
	}
	x.mu.Lock()
	for id := range x.known {
		if !there[id] {
			delete(x.known, id)
		}
	}
	x.mu.Unlock()
	slices.SortStableFunc(all, func(a, b *knownRun) int { return b.row.Run.Started.Compare(a.row.Run.Started) })
	index := &Index{Runs: []IndexRun{}, Notes: []string{}}
	waiting := 0
	for _, k := range all {
		index.Runs = append(index.Runs, k.row)
		if k.row.Waits {
			waiting++
		}
	}
	if more {
		index.Notes = append(index.Notes, fmt.Sprintf("There are more directories than are looked at: these are the first %s.", words.Plural(int64(len(ids)), "run", "runs")))
	}
	if waiting > 0 {
		index.Notes = append(index.Notes, fmt.Sprintf("%s still being read: look again in a moment.", words.Plural(int64(waiting), "run is", "runs are")))
	}
	return index, nil
}

// renew reads a run, unless it is as it was.
func (x *indexer) renew(ctx context.Context, id string) *knownRun {
	dir := x.dir(id)
	s, err := stampOf(dir)
	if err != nil {
		return x.failed(id, s, err)
	}
	if k := x.kept(id); k != nil && k.stamp == s {
		return k
	}
	// It goes on when this viewer is gone: the next one finds it done.
	row, err := inTime(ctx, &x.reading, "row "+id, func() (IndexRun, error) {
		row, err := rowOf(dir, s)
		if err == nil {
			row.ID, row.Changed = id, s.at
			x.keep(id, &knownRun{stamp: s, row: row})
		}
		return row, err
	})
	if err != nil {
		return x.failed(id, s, err)
	}
	return &knownRun{stamp: s, row: row}
}

func (x *indexer) kept(id string) *knownRun {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.known[id]
}

func (x *indexer) keep(id string, k *knownRun) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.known[id] = k
}

// failed is the row of a run that could not be read, or not yet. The directory of
// runs itself is not named in it: others may see the page.
func (x *indexer) failed(id string, s stamp, err error) *knownRun {
	k := &knownRun{stamp: s, row: IndexRun{ID: id, Changed: s.at}}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		k.row.Waits, k.row.Error = true, "still being read"
		return k
	}
	k.row.Error = strings.ReplaceAll(err.Error(), x.dir(id), id)
	return k
}

// inTime does something, once for all who ask for the same meanwhile, and waits for
// it until the context ends. It is not begun when that has ended.
func inTime[T any](ctx context.Context, group *singleflight.Group, key string, do func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	done := group.DoChan(key, func() (any, error) { return do() })
	select {
	case r := <-done:
		return r.Val.(T), r.Err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// rowOf reads a run's row: from summary.json if that is newer than the database,
// else it computes the report. Of a run that goes on, which changes from look to
// look, it only counts the trials.
func rowOf(dir string, s stamp) (IndexRun, error) {
	if row, ok := rowOfSummary(filepath.Join(dir, "summary.json"), s); ok {
		return row, nil
	}
	run, err := record.Open(dir)
	if err != nil {
		return IndexRun{}, err
	}
	defer run.Close()
	r, err := Build(run)
	if err != nil {
		return IndexRun{}, err
	}
	return rowOfResult(r), nil
}

func rowOfResult(r *analysis.Result) IndexRun {
	row := IndexRun{Title: r.Title, Scenario: r.Scenario, Run: r.Run, Verdict: r.Verdict, Plimsoll: r.Environ("plimsoll")}
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

func rowOfSummary(file string, s stamp) (IndexRun, bool) {
	info, err := os.Stat(file)
	if err != nil || info.ModTime().Before(s.at) || info.Size() > maxSummary {
		return IndexRun{}, false
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return IndexRun{}, false
	}
	var r analysis.Result
	if json.Unmarshal(raw, &r) != nil || r.Format != analysis.Format || r.Scenario == "" || r.Run.State == "running" && !s.written {
		return IndexRun{}, false
	}
	return rowOfResult(&r), true
}

// inTurn does n things, as many at a time as there are CPUs.
func inTurn(n int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
