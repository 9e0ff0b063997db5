package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Reader reads a run directory. It is safe for concurrent use, never writes, and follows a
// run that is still being written: each call sees what has been written so far.
type Reader struct {
	dir     string
	id      string
	db      *sql.DB
	plan    []byte
	metrics []Metric
}

// Open opens a run directory for reading, if its plan is the one with which the run began.
func Open(dir string) (*Reader, error) {
	plan, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, plan: plan}
	if r.db, err = openToRead(dir); err != nil {
		return nil, err
	}
	meta := r.Meta()
	r.id = meta[keyID]
	if now, made := planHash(plan), meta[KeyPlan]; now != made {
		err = fmt.Errorf("record: open %s: %s was changed since the run began (sha256 %.12s…, was %.12s…); restore it",
			dir, planFile, now, made)
	} else {
		r.metrics, _, err = list(r.db, metricTable, "true", -1)
	}
	if err != nil {
		r.db.Close()
		return nil, err
	}
	return r, nil
}

// openToRead opens a database. If the writer was killed while changing its journal, SQLite must
// roll back, which needs a connection that may write.
func openToRead(dir string) (db *sql.DB, err error) {
	if _, err := os.Stat(filepath.Join(dir, dbFile)); err != nil {
		return nil, fmt.Errorf("record: open %s: it has no %s: %w", dir, dbFile, err)
	}
	for _, query := range []url.Values{{"mode": {"ro"}}, {"mode": {"rw"}, "_pragma": {"query_only(1)"}}} {
		if db, err = openDatabase(dir, 4, query); err != nil {
			return nil, err
		}
		if err = checkSchema(dir, db); err == nil {
			return db, nil
		}
		db.Close()
		if !errors.Is(err, errMustWrite) {
			break
		}
	}
	return nil, err
}

var errMustWrite = errors.New("the run was not closed and the directory is read-only; copy it to a writable place " +
	"first")

// checkSchema checks that this program can read a database.
func checkSchema(dir string, db *sql.DB) error {
	var version string
	if err := db.QueryRowContext(context.Background(), `SELECT value FROM meta WHERE key = ?`,
		keySchema).Scan(&version); err != nil {
		var se *sqlite.Error
		if errors.As(err, &se) && (se.Code()&0xff == sqlite3.SQLITE_CANTOPEN ||
			se.Code()&0xff == sqlite3.SQLITE_READONLY) {
			return fmt.Errorf("record: open %s: %w: %w", dir, errMustWrite, err)
		}
		return fmt.Errorf("record: open %s: %s: %w", dir, dbFile, err)
	}
	if version != strconv.Itoa(schemaVersion) {
		return fmt.Errorf("record: open %s: schema %s, this program reads %d; use the version of plimsoll that wrote it",
			dir, version, schemaVersion)
	}
	return nil
}

// Close releases the reader.
func (r *Reader) Close() error { return r.db.Close() }

// Dir is the run directory.
func (r *Reader) Dir() string { return r.dir }

// Plan is plan.json as it was written.
func (r *Reader) Plan() []byte { return r.plan }

// Metrics are the definitions given to [Create], in their order.
func (r *Reader) Metrics() []Metric { return r.metrics }

// ID identifies the run directory. It is random, set by [Create], and never changes.
func (r *Reader) ID() string { return r.id }

func (r *Reader) errorf(what string, err error) error {
	return fmt.Errorf("record: read %s of %s: %w", what, r.dir, err)
}

// Meta returns the run's metadata, including the package's own keys ("record.…"). It is read
// each time, because a run adds to it; nil on failure.
func (r *Reader) Meta() map[string]string {
	all := make(map[string]string)
	err := eachRow(r.db, `SELECT key, value FROM meta`, nil, func(rows *sql.Rows) error {
		var k, v string
		err := rows.Scan(&k, &v)
		all[k] = v
		return err
	})
	if err != nil {
		return nil
	}
	return all
}

// Trials returns all trials in the order in which they began, with their results; a running
// trial has the outcomes and bytes written so far. A paused trial that will be continued is
// [Running] and has the metrics, details and notes as of its pause.
func (r *Reader) Trials() ([]Trial, error) {
	var all []Trial
	err := r.snapshot(func(tx *sql.Tx) (err error) {
		if all, _, err = list(tx, trialTable, "true", -1); err != nil {
			return err
		}
		byID := make(map[int64]*Trial)
		for i := range all {
			t := &all[i]
			t.Metrics, t.Outcomes, t.Classes = map[string]float64{}, map[string]int64{}, map[string]int64{}
			byID[t.ID] = t
		}
		return errors.Join(
			each(tx, resultTable, func(v result) { byID[v.Trial].Metrics[v.Metric] = v.Value }),
			each(tx, totalsTable, func(v totals) { byID[v.Trial].Bytes = v.Bytes }),
			each(tx, detailTable, func(v detail) {
				byID[v.Trial].Details = append(byID[v.Trial].Details, v.Detail)
			}),
			each(tx, countTable, func(v count) {
				if t := byID[v.Trial]; v.Kind == "class" {
					t.Classes[v.Name] = v.N
				} else {
					t.Outcomes[v.Name] = v.N
				}
			}))
	})
	if err != nil {
		return nil, r.errorf("trials", err)
	}
	return all, nil
}

// each calls do with every row of a table.
func each[T any](db queryer, t *table[T], do func(T)) error {
	rows, _, err := list(db, t, "true", -1)
	for _, v := range rows {
		do(v)
	}
	return err
}

// batches streams the decoded blocks of a trial. Each is valid until the next.
func (r *Reader) batches(trial int64) iter.Seq2[[]Op, error] {
	return func(yield func([]Op, error) bool) {
		var ops []Op
		next := int64(0)
		for b, err := range stream(r, blockTable, trial, -1) {
			if err == nil && b.Seq != next {
				err = r.errorf(fmt.Sprintf("operations of trial %d", trial),
					fmt.Errorf("%w: block %d is missing", ErrCorrupt, next))
			}
			if err == nil {
				ops, err = DecodeBlock(b.Data, ops[:0])
			}
			if next++; !yield(ops, err) || err != nil {
				return
			}
		}
	}
}

// Ops streams a trial's operations in the recorded order, in constant memory. After an error
// it ends.
func (r *Reader) Ops(trial int64) iter.Seq2[Op, error] {
	return func(yield func(Op, error) bool) {
		for ops, err := range r.batches(trial) {
			if err != nil {
				yield(Op{}, err)
				return
			}
			for i := range ops {
				if !yield(ops[i], nil) {
					return
				}
			}
		}
	}
}

// Summary returns the trial's summary: the stored one if it has ended or was paused, and
// otherwise that of the operations written so far.
func (r *Reader) Summary(trial int64) (*Summary, error) {
	s := NewSummary()
	stored := false
	err := r.snapshot(func(tx *sql.Tx) error {
		const ended = `trial = (SELECT id FROM trials
			WHERE id = ? AND (state IN ('done', 'failed', 'skipped') OR seconds IS NOT NULL))`
		sums, _, err := list(tx, totalsTable, ended, 1, trial)
		if err != nil || len(sums) == 0 {
			return err
		}
		stored, s.counts = true, sums[0].Counts
		counts, _, err := list(tx, countTable, "trial = ?", -1, trial)
		for _, v := range counts {
			outcome, unknown := ParseOutcome(v.Name)
			switch {
			case s.counts.Ops == 0: // the scenario counted them without recording operations
			case v.Kind == "class":
				s.counts.class(v.Name, v.N)
			case unknown != nil:
				err = errors.Join(err, unknown)
			default:
				s.counts.Outcomes[outcome] = v.N
			}
		}
		histograms, _, err2 := list(tx, histogramTable, "trial = ?", -1, trial)
		for _, h := range histograms {
			err = errors.Join(err, s.restore(h))
		}
		return errors.Join(err, err2)
	})
	if err == nil && !stored {
		for ops, err := range r.batches(trial) {
			if err != nil {
				return nil, err
			}
			_ = s.Ops(ops) // never fails
		}
	}
	if err != nil {
		return nil, r.errorf(fmt.Sprintf("summary of trial %d", trial), err)
	}
	return s, nil
}

func (s *Summary) restore(stored storedHistogram) error {
	for m := range numMeasures {
		h := s.hist[m]
		if stored.Censored {
			h = s.censored[m]
		}
		if m.String() == stored.Measure {
			return h.decode(stored.HDR, stored.Over)
		}
	}
	return fmt.Errorf("%w: histogram %q", ErrCorrupt, stored.Measure)
}

// Samples streams a trial's samples in the recorded order.
func (r *Reader) Samples(trial int64) iter.Seq2[Sample, error] {
	return stream(r, sampleTable, trial, 0)
}

// Links returns the link checks of all trials.
func (r *Reader) Links() ([]LinkCheck, error) { return whole(r, linkTable) }

// LinksOf streams the link checks of one trial.
func (r *Reader) LinksOf(trial int64) iter.Seq2[LinkCheck, error] {
	return stream(r, linkTable, trial, 0)
}

// Events returns the events of the run and of all trials in the recorded order.
func (r *Reader) Events() ([]Event, error) { return whole(r, eventTable) }

// whole reads a whole table.
func whole[T any](r *Reader, t *table[T]) ([]T, error) {
	all, _, err := list(r.db, t, "true", -1)
	if err != nil {
		return nil, r.errorf(t.name, err)
	}
	return all, nil
}

// EventsOf streams the events of one trial in the recorded order.
func (r *Reader) EventsOf(trial int64) iter.Seq2[Event, error] {
	return stream(r, eventTable, trial, 0)
}

// Latest returns the latest recorded time of a trial since its epoch that is not after until.
// Samples, polls and marks are recorded in order.
func (r *Reader) Latest(trial int64, until time.Duration) (last time.Duration, err error) {
	var at sql.NullInt64
	err = r.db.QueryRow(`SELECT max(at) FROM (
		SELECT max(last_ns) AS at FROM ops WHERE trial = ?1 AND last_ns <= ?2
		UNION ALL SELECT * FROM (SELECT end_ns FROM samples
			WHERE trial = ?1 AND end_ns <= ?2 ORDER BY id DESC LIMIT 1000)
		UNION ALL SELECT * FROM (SELECT end_ns FROM polls WHERE trial = ?1 AND end_ns <= ?2 ORDER BY seq DESC LIMIT 10)
		UNION ALL SELECT * FROM (SELECT end_ns FROM marks
			WHERE trial = ?1 AND end_ns <= ?2 ORDER BY seq DESC LIMIT 1000)
		UNION ALL SELECT began_ns FROM jobs WHERE trial = ?1
		UNION ALL SELECT accepted_ns FROM jobs WHERE trial = ?1
		UNION ALL SELECT durable_ns FROM jobs WHERE trial = ?1) WHERE at <= ?2`, trial, int64(until)).Scan(&at)
	if err != nil {
		return 0, r.errorf(fmt.Sprintf("latest of trial %d", trial), err)
	}
	return max(time.Duration(at.Int64), 0), nil
}

// snapshot runs several queries that see the same state.
func (r *Reader) snapshot(fn func(*sql.Tx) error) error {
	tx, err := r.db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(tx)
}

// Snapshot copies the database of a run to a new file, even while the run writes it.
func Snapshot(dir, to string) error {
	db, err := openToRead(dir)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), `VACUUM INTO ?`, to); err != nil {
		return explain(dir, err)
	}
	return nil
}
