package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Reader reads a run directory. It is safe for concurrent use, never writes,
// and sees the progress of a run that is still being written: each call what
// is there at its time.
type Reader struct {
	dir     string
	db      *sql.DB
	plan    []byte
	metrics []Metric
	schema  int

	mu   sync.Mutex
	meta map[string]string // as last read
}

// Open opens a run directory for reading.
func Open(dir string) (*Reader, error) {
	plan, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, plan: plan}
	if r.db, r.schema, err = openToRead(dir); err != nil {
		return nil, err
	}
	r.metrics, _, err = list(r.db, metricTable, "true", -1)
	if err == nil {
		r.meta, err = r.readMeta()
	}
	if err != nil {
		r.db.Close()
		return nil, err
	}
	return r, nil
}

// openToRead also gives the schema. Where the writer was killed in a change of its journal,
// SQLite must undo that, which takes a connection that may write.
func openToRead(dir string) (db *sql.DB, schema int, err error) {
	for _, query := range []url.Values{{"mode": {"ro"}}, {"mode": {"rw"}, "_pragma": {"query_only(1)"}}} {
		if db, err = openWith(dir, query); err != nil {
			return nil, 0, err
		}
		if schema, err = checkSchema(dir, db); err == nil {
			return db, schema, nil
		}
		db.Close()
		if !errors.Is(err, errMustWrite) {
			break
		}
	}
	return nil, 0, err
}

func openWith(dir string, query url.Values) (*sql.DB, error) {
	path := filepath.Join(dir, dbFile)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("record: open %s: it has no %s: %w", dir, dbFile, err)
	}
	query.Add("_pragma", "busy_timeout(10000)")
	dsn, err := dataSource(path, query)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, explain(dir, err)
	}
	db.SetMaxOpenConns(4)
	return db, nil
}

var errMustWrite = errors.New("the run was not closed and the directory is read-only; copy it to a writable place " +
	"first")

// checkSchema gives the version of a database that this program can read.
func checkSchema(dir string, db queryer) (int, error) {
	var text string
	if err := db.QueryRowContext(context.Background(), `SELECT value FROM meta WHERE key = ?`,
		keySchema).Scan(&text); err != nil {
		var se *sqlite.Error
		if errors.As(err, &se) && (se.Code()&0xff == sqlite3.SQLITE_CANTOPEN ||
			se.Code()&0xff == sqlite3.SQLITE_READONLY) {
			return 0, fmt.Errorf("record: open %s: %w: %w", dir, errMustWrite, err)
		}
		return 0, fmt.Errorf("record: open %s: %s: %w", dir, dbFile, err)
	}
	version, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("record: open %s: %s: %w: schema %q", dir, dbFile, ErrCorrupt, text)
	}
	if version < oldestSchema || version > schemaVersion {
		return 0, fmt.Errorf("record: open %s: schema %d, this program reads %d to %d; use the version of plimsoll "+
			"that wrote it, or a newer one", dir, version, oldestSchema, schemaVersion)
	}
	return version, nil
}

// Close releases the reader.
func (r *Reader) Close() error {
	if r.db == nil {
		return nil
	}
	return r.db.Close()
}

// Dir is the run directory.
func (r *Reader) Dir() string { return r.dir }

// Plan is plan.json as it was written.
func (r *Reader) Plan() []byte { return r.plan }

// Metrics are the definitions given to [Create], in their order.
func (r *Reader) Metrics() []Metric { return r.metrics }

func (r *Reader) errorf(what string, err error) error {
	return fmt.Errorf("record: read %s of %s: %w", what, r.dir, err)
}

// Meta is the run's metadata, the package's own keys ("record.…") included. It
// is read anew each time, since a run adds to it; when that fails it is what
// was last read.
func (r *Reader) Meta() map[string]string {
	all, err := r.readMeta()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.meta = all
	}
	return maps.Clone(r.meta)
}

func (r *Reader) readMeta() (map[string]string, error) {
	all := make(map[string]string)
	err := eachRow(r.db, `SELECT key, value FROM meta`, nil, func(rows *sql.Rows) error {
		var k, v string
		if err := rows.Scan(&k, &v); err != nil {
			return err
		}
		all[k] = v
		return nil
	})
	if err != nil {
		return nil, r.errorf("meta", err)
	}
	return all, nil
}

// Trials are all trials in the order in which they began, with what they
// yielded; one that runs, with the outcomes and bytes that were written so far.
// One that was paused and is to go on is [Running] and has the metrics, details
// and notes of what there was when it was paused.
func (r *Reader) Trials() ([]Trial, error) {
	yields := `SELECT trial, 'metric', '', metric, value, 0 AS place FROM results
		UNION ALL SELECT trial, 'bytes', '', '', bytes, 0 FROM summaries
		UNION ALL SELECT trial, 'count', kind, name, n, 0 FROM counts
		UNION ALL SELECT trial, 'detail', kind, name, value, place FROM details ORDER BY place`
	var all []Trial
	err := r.snapshot(func(tx *sql.Tx) (err error) {
		if all, _, err = list(tx, trialTable, "true", -1); err != nil {
			return err
		}
		byID := make(map[int64]*Trial)
		for i := range all {
			byID[all[i].ID] = &all[i]
		}
		return eachRow(tx, yields, nil, func(rows *sql.Rows) error {
			var id, place int64
			var what string
			var d Detail
			if err := rows.Scan(&id, &what, &d.Kind, &d.Name, number{&d.Value}, &place); err != nil {
				return err
			}
			t := byID[id]
			switch {
			case what == "metric":
				setKey(&t.Metrics, d.Name, d.Value)
			case what == "bytes":
				t.Bytes = int64(d.Value)
			case what == "detail":
				t.Details = append(t.Details, d)
			case d.Kind == "class":
				setKey(&t.Classes, d.Name, int64(d.Value))
			default:
				setKey(&t.Outcomes, d.Name, int64(d.Value))
			}
			return nil
		})
	})
	if err != nil {
		return nil, r.errorf("trials", err)
	}
	return all, nil
}

func setKey[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}

// Blocks streams a trial's operations as they were stored, see [DecodeBlock].
func (r *Reader) Blocks(trial int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		next := int64(0)
		for b, err := range stream(r, blockTable, trial, -1) {
			if err == nil && b.Seq != next {
				err = r.errorf(fmt.Sprintf("operations of trial %d", trial),
					fmt.Errorf("%w: block %d is missing", ErrCorrupt,
						next))
			}
			if next++; !yield(b.Data, err) || err != nil {
				return
			}
		}
	}
}

// Ops streams a trial's operations in the order in which they were recorded,
// in constant memory. After an error it ends.
func (r *Reader) Ops(trial int64) iter.Seq2[Op, error] {
	return func(yield func(Op, error) bool) {
		var ops []Op
		for b, err := range r.Blocks(trial) {
			if err == nil {
				ops, err = DecodeBlock(b, ops[:0])
			}
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

// Summary is the trial's summary: as stored when it has ended or was paused,
// else from the operations written so far.
func (r *Reader) Summary(trial int64) (*Summary, error) {
	s := NewSummary()
	var stored bool
	err := r.snapshot(func(tx *sql.Tx) error {
		c := &s.counts
		err := tx.QueryRow(`SELECT ops, bytes, ok_bytes, in_flight_bytes, first_ns, last_ns
			FROM summaries WHERE trial = (SELECT id FROM trials
			WHERE id = ? AND (state IN ('done', 'failed', 'skipped') OR seconds IS NOT NULL))`, trial).
			Scan(&c.Ops, &c.Bytes, &c.OKBytes, &c.InFlightBytes, &c.First, &c.Last)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		stored = true
		err = eachRow(tx, `SELECT kind, name, n FROM counts WHERE trial = ?`, []any{trial}, func(rows *sql.Rows) error {
			var kind, name string
			var n int64
			if err := rows.Scan(&kind, &name, &n); err != nil {
				return err
			}
			if c.Ops == 0 {
				return nil // counted by the scenario, not from operations
			}
			if kind == "class" {
				c.class(name, n)
				return nil
			}
			o, err := ParseOutcome(name)
			if err != nil {
				return err
			}
			c.Outcomes[o] = n
			return nil
		})
		if err != nil {
			return err
		}
		return eachRow(tx, `SELECT measure, censored, overflow, hdr FROM histograms WHERE trial = ?`, []any{trial},
			func(rows *sql.Rows) error {
				var name, hdr string
				var censored bool
				var over int64
				if err := rows.Scan(&name, &censored, &over, &hdr); err != nil {
					return err
				}
				return s.restore(name, censored, hdr, over)
			})
	})
	if err == nil && !stored {
		var ops []Op
		for b, berr := range r.Blocks(trial) {
			if berr == nil {
				ops, berr = DecodeBlock(b, ops[:0])
			}
			if berr != nil {
				return nil, berr
			}
			_ = s.Ops(ops) // never fails
		}
	}
	if err != nil {
		return nil, r.errorf(fmt.Sprintf("summary of trial %d", trial), err)
	}
	return s, nil
}

func (s *Summary) restore(name string, censored bool, hdr string, over int64) error {
	for m := range numMeasures {
		h := s.hist[m]
		if censored {
			h = s.censored[m]
		}
		if m.String() == name && h != nil {
			return h.decode(hdr, over)
		}
	}
	return fmt.Errorf("%w: histogram %q", ErrCorrupt, name)
}

// Samples streams a trial's samples in the order in which they were recorded.
func (r *Reader) Samples(trial int64) iter.Seq2[Sample, error] {
	return stream(r, sampleTable, trial, 0)
}

// Links are the link checks of all trials.
func (r *Reader) Links() ([]LinkCheck, error) {
	all, _, err := list(r.db, linkTable, "true", -1)
	if err != nil {
		return nil, r.errorf("links", err)
	}
	return all, nil
}

// LinksOf are the link checks of one trial.
func (r *Reader) LinksOf(trial int64) ([]LinkCheck, error) {
	all, err := r.Links()
	return slices.DeleteFunc(all, func(l LinkCheck) bool { return l.Trial != trial }), err
}

// Events are the events of the run and all trials in the order in which they
// were recorded.
func (r *Reader) Events() ([]Event, error) {
	all, _, err := list(r.db, eventTable, "true", -1)
	if err != nil {
		return nil, r.errorf("events", err)
	}
	return all, nil
}

// EventsOf streams the events of one trial in the order in which they were recorded.
func (r *Reader) EventsOf(trial int64) iter.Seq2[Event, error] {
	return stream(r, eventTable, trial, 0)
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

// Snapshot copies the database of a run to a new file, also while the run writes it.
func Snapshot(dir, to string) error {
	db, _, err := openToRead(dir)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), `VACUUM INTO ?`, to); err != nil {
		return explain(dir, err)
	}
	return nil
}
