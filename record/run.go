package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/ui"
)

// flushEvery is how long recorded data may stay in memory or in an open transaction before
// it is written.
const flushEvery = time.Second

// syncEvery is the number of flushes after which jobs and polls are flushed to the disk,
// which limits what a power cut destroys of a long run. Trials without them are short, and
// flushing would disturb their measurements.
const syncEvery = 10

// Run is a run directory open for writing. It is safe for concurrent use; only one process
// at a time can open it. Its [Reader] methods see what has been written, with a delay of at
// most a second.
type Run struct {
	*Reader
	lock *os.File
	file os.FileInfo // run.db as it was opened

	mu      sync.Mutex
	db      *sql.DB // has one connection, the only one that writes
	open    bool    // a transaction is open
	err     error
	broken  chan struct{} // closed when err is set
	closed  bool
	writers map[int64]*TrialWriter
	journal bool // jobs or polls have been written that may not be on the disk yet

	stop func() // ends the flushing
}

// Create creates the run directory with plan.json and run.db and opens it for writing. The
// directory may exist if it is empty. metrics define the results of trials; meta is stored
// unchanged. On error it removes what it created.
func Create(dir string, plan []byte, meta map[string]string, metrics []Metric) (*Run, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, explain(dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("record: create %s: %w", dir, err)
	}
	if err := checkEmpty(dir); err != nil {
		lock.Close()
		return nil, err
	}
	r, err := take(dir, lock, func(r *Run) error { return explain(dir, r.fill(plan, meta, metrics)) })
	if err != nil {
		removeFiles(dir)
	}
	return r, err
}

// Resume opens a run directory to continue writing. It fails if plan is given and differs
// from the plan of the run. Trials that were running become pending again and their records
// are removed, except those for which keep (which may be nil) returns true: [Run.Continue]
// continues them.
func Resume(dir string, plan []byte, keep func(Trial) bool) (*Run, error) {
	old, err := Open(dir)
	if err != nil {
		return nil, err
	}
	old.Close()
	if plan != nil && !bytes.Equal(plan, old.plan) {
		return nil, fmt.Errorf("record: resume %s: the plan is another one (sha256 %.12s…) than the run was made with "+
			"(%.12s…); a run has one plan: start a new run in another directory", dir, planHash(plan), planHash(old.plan))
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("record: resume %s: %w", dir, err)
	}
	return take(dir, lock, func(r *Run) error { return r.repair(keep) })
}

// take opens the database of a run, prepares it and begins to record.
func take(dir string, lock *os.File, prepare func(*Run) error) (*Run, error) {
	// Commits reach the kernel, so kill -9 does not lose them; see durably for those that must
	// survive a power cut.
	db, err := openDatabase(dir, 1, url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(NORMAL)",
		"wal_autocheckpoint(4000)", "foreign_keys(ON)"}})
	if err != nil {
		lock.Close()
		return nil, err
	}
	r := &Run{lock: lock, db: db, broken: make(chan struct{}), writers: make(map[int64]*TrialWriter),
		Reader: &Reader{dir: dir}}
	if err = prepare(r); err == nil {
		err = r.start()
	}
	if err != nil {
		db.Close()
		lock.Close()
		return nil, err
	}
	return r, nil
}

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("record: create: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == LogsDir })
	if len(entries) == 0 {
		return nil
	}
	return ui.Exit(ui.CodePreconditions, ui.WithHint(fmt.Errorf("run directory %s is not empty", dir),
		"choose another directory with --out, or continue the run in it: plimsoll resume "+dir))
}

// Discard is [Run.Close] for a run in which nothing was executed: it removes what Create
// created, so that the directory can be used for another run.
func (r *Run) Discard() error {
	err := r.Close()
	removeFiles(r.dir)
	return err
}

func removeFiles(dir string) {
	for _, name := range []string{planFile, dbFile, dbFile + "-wal", dbFile + "-shm", dbFile + "-journal"} {
		os.Remove(filepath.Join(dir, name))
	}
	os.Remove(dir) // fails if there is anything else in it
}

func readPlan(dir string) ([]byte, error) {
	plan, err := os.ReadFile(filepath.Join(dir, planFile))
	if err != nil {
		return nil, fmt.Errorf("record: %s is not a run directory: %w", dir, err)
	}
	return plan, nil
}

func planHash(plan []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(plan))
}

// fill writes schema, meta and metrics into a new database, and finally the plan: a directory
// without a plan is not a run.
func (r *Run) fill(plan []byte, meta map[string]string, metrics []Metric) error {
	err := r.durably(func() error {
		if err := r.exec(schema); err != nil {
			return err
		}
		own := map[string]string{keySchema: strconv.Itoa(schemaVersion), KeyPlan: planHash(plan),
			keyID: fmt.Sprintf("%016x", rand.Uint64())}
		for _, all := range []map[string]string{meta, own} {
			for k, v := range all {
				if err := r.setMeta(k, v); err != nil {
					return err
				}
			}
		}
		for i := range metrics {
			if err := put(r, metricTable, &metrics[i], i); err != nil {
				return fmt.Errorf("metric %q: %w", metrics[i].Key, err)
			}
		}
		return nil
	})
	if err == nil {
		err = atomicfile.Write(filepath.Join(r.dir, planFile), func(w io.Writer) error {
			_, err := w.Write(plan)
			return err
		})
	}
	if err == nil {
		err = syncFile(r.dir)
	}
	return err
}

// repair prepares the database of an interrupted run for continuing.
func (r *Run) repair(keep func(Trial) bool) error {
	running, _, err := list(r.db, trialTable, "state = ?", -1, string(Running))
	if err != nil {
		return explain(r.dir, err)
	}
	return explain(r.dir, r.durably(func() (err error) {
		for _, t := range running {
			if keep == nil || !keep(t) { // it will be executed again
				err = errors.Join(err, r.forget(t.ID, Pending, ofTrial[:]...))
			}
		}
		return err
	}))
}

// start opens the reading side and begins to flush.
func (r *Run) start() error {
	reader, err := Open(r.dir)
	if err == nil {
		r.file, err = os.Stat(filepath.Join(r.dir, dbFile))
	}
	if err != nil {
		return err
	}
	r.Reader = reader
	n := 0
	r.stop = timing.Every(flushEvery, func() {
		// An error stays in r.err, and the next call returns it.
		if n++; r.check() == nil && r.Flush() == nil && n%syncEvery == 0 {
			r.sync()
		}
	})
	return nil
}

// Broken is closed as soon as recording fails; Err then says why.
func (r *Run) Broken() <-chan struct{} { return r.broken }

// Err says why recording has failed; nil: it works.
func (r *Run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Flush writes what was recorded so far, so that readers see it. This also happens every
// second automatically.
func (r *Run) Flush() error { return r.guarded(r.flush) }

// sync flushes committed jobs and polls to the disk. Writers do not wait for it, since
// SQLite's log is an ordinary file.
func (r *Run) sync() {
	r.mu.Lock()
	needed := r.journal
	r.journal = false
	r.mu.Unlock()
	if needed {
		err := syncFile(filepath.Join(r.dir, dbFile+"-wal"))
		_ = r.guarded(func() error { return err })
	}
}

func (r *Run) flush() error {
	for _, w := range r.writers {
		if err := w.flush(); err != nil {
			return err
		}
	}
	return r.commit()
}

// Event records an event of the run. It is durable when Event returns.
func (r *Run) Event(e Event) error {
	return r.durable(func() error { return put(r, eventTable, &e) })
}

// Meta sets a value in the run's metadata. It is durable when Meta returns.
func (r *Run) Meta(key, value string) error {
	return r.durable(func() error { return r.setMeta(key, value) })
}

// Close writes what is left and unlocks the directory. Trials that have not ended stay
// running: a later [Resume] makes them pending.
func (r *Run) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	var err error
	if r.err == nil {
		err = r.fail(r.flush())
	}
	r.closed = true
	r.mu.Unlock()

	r.stop()
	err = errors.Join(err, r.Reader.Close())
	// Merge the log into run.db, which is then complete by itself. If readers are connected,
	// an empty log file remains.
	if r.err == nil {
		_, _ = r.db.ExecContext(context.Background(),
			`PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE`)
	}
	return errors.Join(err, r.db.Close(), r.lock.Close())
}

func (r *Run) usable() error {
	if r.err != nil {
		return r.err
	}
	if r.closed {
		return fmt.Errorf("record: %s: the run is closed", r.dir)
	}
	return nil
}

// fail keeps the first error: after it nothing more is written, because the content of the
// open transaction is lost.
func (r *Run) fail(err error) error {
	if err == nil {
		return nil
	}
	if r.err == nil {
		r.rollback()
		r.err = explain(r.dir, err)
		close(r.broken)
	}
	return r.err
}

// guarded runs fn if recording works. An error of fn ends recording.
func (r *Run) guarded(fn func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(); err != nil {
		return err
	}
	return r.fail(fn())
}

// durable is guarded, and flushes what fn wrote to the disk.
func (r *Run) durable(fn func() error) error {
	return r.guarded(func() error { return r.durably(fn) })
}

// durably runs fn in a transaction and commits it, with everything written before it, to the
// disk.
func (r *Run) durably(fn func() error) error {
	if err := r.commit(); err != nil {
		return err
	}
	if err := r.exec(`PRAGMA synchronous = FULL`); err != nil {
		return err
	}
	err := r.begin()
	if err == nil {
		err = fn()
	}
	if err == nil {
		err = r.commit()
	}
	if err != nil {
		r.rollback()
	}
	return errors.Join(err, r.exec(`PRAGMA synchronous = NORMAL`))
}

func (r *Run) begin() error {
	if r.open {
		return nil
	}
	if err := r.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	r.open = true
	return nil
}

func (r *Run) commit() error {
	if !r.open {
		return nil
	}
	if err := r.exec(`COMMIT`); err != nil {
		return err
	}
	r.open = false
	return nil
}

func (r *Run) rollback() {
	if r.open {
		// If SQLite has rolled back by itself, this fails, which does not matter.
		_ = r.exec(`ROLLBACK`)
		r.open = false
	}
}

// exec runs a statement, or several without arguments.
func (r *Run) exec(query string, args ...any) error {
	_, err := r.db.ExecContext(context.Background(), query, args...)
	return err
}

func (r *Run) setMeta(key, value string) error {
	return r.exec(`INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
		key, value)
}

// Continue continues a trial that was kept, with the same ID and epoch, and with the summary
// and windows of its recorded operations. Records of its pause (see [TrialWriter.End]) are
// removed. last is its latest recorded time since its epoch.
func (r *Run) Continue(t Trial) (w *TrialWriter, last time.Duration, err error) {
	w = &TrialWriter{run: r, summary: NewSummary(), windows: windower{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(); err != nil {
		return nil, 0, err
	}
	if r.writers[t.ID] != nil {
		return nil, 0, fmt.Errorf("record: continue trial %d of %s: it is being written", t.ID, r.dir)
	}
	running, _, err := list(r.db, trialTable, "id = ? AND state = ?", 1, t.ID, string(Running))
	if err == nil && len(running) == 0 {
		err = errors.New("only one that is running goes on")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("record: continue trial %d of %s: %w", t.ID, r.dir, err)
	}
	w.trial = running[0]
	if err := r.fail(r.durably(w.restore)); err != nil {
		return nil, 0, err
	}
	if last, err = r.Latest(t.ID, math.MaxInt64); err != nil {
		return nil, 0, r.fail(err)
	}
	r.writers[t.ID] = w
	return w, last, nil
}

// restore removes the records of the trial's pause, and rebuilds its summary and windows from
// all operations.
func (w *TrialWriter) restore() error {
	r, id := w.run, w.trial.ID
	// After a kill the windows may lag behind the operations, so they are rebuilt; the outcomes are
	// written with the next totals.
	if err := r.forget(id, Running, "results", "details", "histograms", "counts", "windows"); err != nil {
		return err
	}
	// None of the trial's records is in the open transaction, so readers see all of them.
	for ops, err := range r.batches(id) {
		if err == nil {
			w.count(ops)
			err = w.flushWindows() // do not keep windows of weeks in memory
		}
		if err != nil {
			return err
		}
		w.seq++
	}
	return w.flush()
}

// forget removes a trial's records in some tables, and how it ended or paused.
func (r *Run) forget(trial int64, state TrialState, tables ...string) error {
	for _, table := range tables {
		if err := r.exec(`DELETE FROM `+table+` WHERE trial = ?`, trial); err != nil {
			return err
		}
	}
	return r.exec(`UPDATE trials SET state = ?, seconds = NULL, invalid = '[]', notes = '[]', error = ''
		WHERE id = ?`, string(state), trial)
}
