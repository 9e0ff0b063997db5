package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

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

	mu   sync.Mutex
	meta map[string]string // as last read
}

// Open opens a run directory for reading.
func Open(dir string) (*Reader, error) {
	plan, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	db, err := openReadOnly(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, db: db, plan: plan}
	if r.metrics, err = r.readMetrics(); err != nil {
		db.Close()
		return nil, err
	}
	if r.meta, err = r.readMeta(); err != nil {
		db.Close()
		return nil, err
	}
	return r, nil
}

func openReadOnly(dir string) (*sql.DB, error) {
	path := filepath.Join(dir, dbFile)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("record: open %s: it has no %s: %w", dir, dbFile, err)
	}
	db, err := tryOpen(dir, path, url.Values{"mode": {"ro"}})
	if err == nil {
		return db, nil
	}
	var se *sqlite.Error
	if !errors.As(err, &se) || se.Code()&0xff != sqlite3.SQLITE_CANTOPEN && se.Code()&0xff != sqlite3.SQLITE_READONLY {
		return nil, err
	}
	// SQLite wants to make files beside the database, and cannot: read-only
	// media. Without a log the database alone is everything.
	if info, serr := os.Stat(path + "-wal"); serr == nil && info.Size() > 0 {
		return nil, fmt.Errorf("record: open %s: the run was not closed (%s-wal is not empty) and the directory is read-only; copy it to a writable place first: %w", dir, dbFile, err)
	} else if serr != nil && !errors.Is(serr, fs.ErrNotExist) {
		return nil, fmt.Errorf("record: open %s: %w", dir, serr)
	}
	return tryOpen(dir, path, url.Values{"mode": {"ro"}, "immutable": {"1"}})
}

func tryOpen(dir, path string, query url.Values) (*sql.DB, error) {
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
	if _, err := checkSchema(dir, db); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkSchema gives the version of a database that this program can read.
func checkSchema(dir string, db queryer) (int, error) {
	var text string
	if err := db.QueryRowContext(context.Background(), `SELECT value FROM meta WHERE key = ?`, keySchema).Scan(&text); err != nil {
		return 0, fmt.Errorf("record: open %s: %s: %w", dir, dbFile, err)
	}
	version, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("record: open %s: %s: %w: schema %q", dir, dbFile, ErrCorrupt, text)
	}
	if version < oldestSchema || version > schemaVersion {
		return 0, fmt.Errorf("record: open %s: schema %d, this program reads %d to %d; use the version of plimsoll that wrote it, or a newer one", dir, version, oldestSchema, schemaVersion)
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

func (r *Reader) readMetrics() ([]Metric, error) {
	var all []Metric
	err := r.each(`SELECT key, name, unit, better, help FROM metrics ORDER BY place`, nil, func(rows *sql.Rows) error {
		var m Metric
		if err := rows.Scan(&m.Key, &m.Name, &m.Unit, &m.Better, &m.Help); err != nil {
			return err
		}
		all = append(all, m)
		return nil
	})
	if err != nil {
		return nil, r.errorf("metrics", err)
	}
	return all, nil
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
	err := r.each(`SELECT key, value FROM meta`, nil, func(rows *sql.Rows) error {
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
	var all []Trial
	err := r.snapshot(func(tx *sql.Tx) error {
		at := make(map[int64]int)
		err := eachRow(tx, `SELECT t.id, cell, block, warmup, state, epoch_ns, coalesce(seconds, 0), invalid, notes, error, coalesce(bytes, 0)
			FROM trials t LEFT JOIN summaries s ON s.trial = t.id ORDER BY t.id`, nil, func(rows *sql.Rows) error {
			var t Trial
			var epoch int64
			var invalid, notes string
			if err := rows.Scan(&t.ID, &t.Cell, &t.Block, &t.Warmup, &t.State, &epoch, &t.Seconds, &invalid, &notes, &t.Error, &t.Bytes); err != nil {
				return err
			}
			t.Epoch = time.Unix(0, epoch).UTC()
			if err := json.Unmarshal([]byte(invalid), &t.Invalid); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(notes), &t.Notes); err != nil {
				return err
			}
			at[t.ID] = len(all)
			all = append(all, t)
			return nil
		})
		if err != nil {
			return err
		}
		err = eachRow(tx, `SELECT trial, metric, value FROM results`, nil, func(rows *sql.Rows) error {
			var id int64
			var key string
			var value sql.NullFloat64
			if err := rows.Scan(&id, &key, &value); err != nil {
				return err
			}
			t := &all[at[id]]
			if t.Metrics == nil {
				t.Metrics = make(map[string]float64)
			}
			t.Metrics[key] = orNaN(value)
			return nil
		})
		if err != nil {
			return err
		}
		if err := readDetails(tx, all, at); err != nil {
			return err
		}
		return eachRow(tx, `SELECT trial, kind, name, n FROM counts`, nil, func(rows *sql.Rows) error {
			var id, n int64
			var kind, name string
			if err := rows.Scan(&id, &kind, &name, &n); err != nil {
				return err
			}
			t := &all[at[id]]
			counts := &t.Outcomes
			if kind == "class" {
				counts = &t.Classes
			}
			if *counts == nil {
				*counts = make(map[string]int64)
			}
			(*counts)[name] = n
			return nil
		})
	})
	if err != nil {
		return nil, r.errorf("trials", err)
	}
	return all, nil
}

// readDetails fills in the details of trials; a run of schema 1 has none.
func readDetails(tx *sql.Tx, all []Trial, at map[int64]int) error {
	if there, err := hasTable(tx, "details"); err != nil || !there {
		return err
	}
	return eachRow(tx, `SELECT trial, kind, name, value FROM details ORDER BY trial, place`, nil, func(rows *sql.Rows) error {
		var id int64
		var d Detail
		var value sql.NullFloat64
		if err := rows.Scan(&id, &d.Kind, &d.Name, &value); err != nil {
			return err
		}
		d.Value = orNaN(value)
		t := &all[at[id]]
		t.Details = append(t.Details, d)
		return nil
	})
}

// hasTable is false for tables that came with a later schema than the run's.
func hasTable(db queryer, name string) (bool, error) {
	var n int
	err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`, name).Scan(&n)
	return n > 0, err
}

// opsPage is how many blocks are read at a time: no transaction stays open
// while the caller works, which would keep a writer's log from shrinking.
const opsPage = 16

// Blocks streams a trial's operations as they were stored, see [DecodeBlock].
// A block is valid until the next.
func (r *Reader) Blocks(trial int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		next := int64(0)
		for {
			var blocks [][]byte
			err := r.each(`SELECT seq, data FROM ops WHERE trial = ? AND seq >= ? ORDER BY seq LIMIT ?`, []any{trial, next, opsPage}, func(rows *sql.Rows) error {
				var seq int64
				var b []byte
				if err := rows.Scan(&seq, &b); err != nil {
					return err
				}
				if seq != next {
					return fmt.Errorf("%w: block %d is missing", ErrCorrupt, next)
				}
				next = seq + 1
				blocks = append(blocks, b)
				return nil
			})
			for _, b := range blocks {
				if !yield(b, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, r.errorf(fmt.Sprintf("operations of trial %d", trial), err))
				return
			}
			if len(blocks) < opsPage {
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
			FROM summaries WHERE trial = (SELECT id FROM trials WHERE id = ? AND (state IN ('done', 'failed', 'skipped') OR seconds IS NOT NULL))`, trial).
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
		return eachRow(tx, `SELECT measure, censored, overflow, hdr FROM histograms WHERE trial = ?`, []any{trial}, func(rows *sql.Rows) error {
			var name string
			var censored bool
			var h storedHistogram
			if err := rows.Scan(&name, &censored, &h.over, &h.hdr); err != nil {
				return err
			}
			return s.restore(name, censored, h)
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

func (s *Summary) restore(name string, censored bool, stored storedHistogram) error {
	for m := range numMeasures {
		if m.String() != name {
			continue
		}
		to := s.hist[m]
		if censored {
			to = s.censored[m]
		}
		h, err := stored.decode()
		if err != nil {
			return err
		}
		if to == nil || h == nil {
			break
		}
		if dropped := h.p.MergeInto(to.h); dropped != 0 {
			return fmt.Errorf("%w: histogram %s: %d values out of range", ErrCorrupt, name, dropped)
		}
		to.over += h.over
		return nil
	}
	return fmt.Errorf("%w: histogram %q", ErrCorrupt, name)
}

// windowsPage is how many windows are read at a time.
const windowsPage = 1000

// Windows streams the seconds of a trial in which something happened, ascending,
// in constant memory. After an error it ends. While the trial runs, a window of
// the past can still gain: bytes of a long transfer, operations that are late.
func (r *Reader) Windows(trial int64) iter.Seq2[Window, error] {
	return func(yield func(Window, error) bool) {
		starved := "starved"
		if version, err := strconv.Atoi(r.Meta()[keySchema]); err == nil && version < starvedSince {
			starved = "0"
		}
		after := int64(math.MinInt64)
		for {
			page := make([]Window, 0, windowsPage)
			err := r.each(`SELECT second, ok, refused, error, truncated, wrong_bytes, stalled, deadline, in_flight, cancelled, `+starved+`, bytes
				FROM windows WHERE trial = ? AND second > ? ORDER BY second LIMIT ?`, []any{trial, after, windowsPage}, func(rows *sql.Rows) error {
				var w Window
				n := &w.Outcomes
				err := rows.Scan(&w.Second, &n[OK], &n[Refused], &n[Error], &n[Truncated], &n[WrongBytes], &n[Stalled], &n[Deadline], &n[InFlight], &n[Cancelled],
					&n[Starved], &w.Bytes)
				after = w.Second
				page = append(page, w)
				return err
			})
			if err != nil {
				yield(Window{}, r.errorf(fmt.Sprintf("windows of trial %d", trial), err))
				return
			}
			for _, w := range page {
				if !yield(w, nil) {
					return
				}
			}
			if len(page) < windowsPage {
				return
			}
		}
	}
}

// WindowHistogram is the distribution of a measure (TTFB or Duration) over the
// operations that ended in one second of a trial; nil when there were none.
func (r *Reader) WindowHistogram(trial, second int64, m Measure) (*Histogram, error) {
	if m != TTFB && m != Duration {
		return nil, fmt.Errorf("record: windows have no histogram of %v", m)
	}
	var stored storedHistogram
	err := r.db.QueryRow(fmt.Sprintf(`SELECT %[1]v_overflow, %[1]v_hdr FROM windows WHERE trial = ? AND second = ?`, m), trial, second).Scan(&stored.over, &stored.hdr)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	var h *Histogram
	if err == nil {
		h, err = stored.decode()
	}
	if err != nil {
		return nil, r.errorf(fmt.Sprintf("second %d of trial %d", second, trial), err)
	}
	return h, nil
}

const samplesPage = 1000

// Samples streams a trial's samples in the order in which they were recorded.
func (r *Reader) Samples(trial int64) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		after := int64(0)
		for {
			var page []Sample
			err := r.each(`SELECT id, start_ns, end_ns, process, role, pid, cpu, rss, pss, read_bytes, write_bytes, fds, net_rx, net_tx, threads
				FROM samples WHERE trial = ? AND id > ? ORDER BY id LIMIT ?`, []any{trial, after, samplesPage}, func(rows *sql.Rows) error {
				var s Sample
				var start, end int64
				var v [9]sql.NullFloat64
				if err := rows.Scan(&after, &start, &end, &s.Process, &s.Role, &s.PID,
					&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8]); err != nil {
					return err
				}
				s.Start, s.End = time.Duration(start), time.Duration(end)
				for i, to := range []*float64{&s.CPU, &s.RSS, &s.PSS, &s.ReadBytes, &s.WriteBytes, &s.FDs, &s.NetRx, &s.NetTx, &s.Threads} {
					*to = orNaN(v[i])
				}
				page = append(page, s)
				return nil
			})
			for _, s := range page {
				if !yield(s, nil) {
					return
				}
			}
			if err != nil {
				yield(Sample{}, r.errorf(fmt.Sprintf("samples of trial %d", trial), err))
				return
			}
			if len(page) < samplesPage {
				return
			}
		}
	}
}

// Links are the link checks of all trials.
func (r *Reader) Links() ([]LinkCheck, error) { return r.linksWhere("") }

// LinksOf are the link checks of one trial.
func (r *Reader) LinksOf(trial int64) ([]LinkCheck, error) {
	return r.linksWhere("WHERE trial = ?", trial)
}

func (r *Reader) linksWhere(where string, args ...any) ([]LinkCheck, error) {
	var all []LinkCheck
	err := r.each(`SELECT trial, from_host, to_host, emulator, congestion,
			want_rtt, rtt, rtt_p99, want_rate, rate, want_loss, loss, lateness, tolerance, ok, why
		FROM links `+where+` ORDER BY id`, args, func(rows *sql.Rows) error {
		var l LinkCheck
		var v [9]sql.NullFloat64
		if err := rows.Scan(&l.Trial, &l.From, &l.To, &l.Emulator, &l.Congestion,
			&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &l.OK, &l.Why); err != nil {
			return err
		}
		for i, to := range []*float64{&l.WantRTT, &l.RTT, &l.RTTP99, &l.WantRate, &l.Rate, &l.WantLoss, &l.Loss, &l.Lateness, &l.Tolerance} {
			*to = orNaN(v[i])
		}
		all = append(all, l)
		return nil
	})
	if err != nil {
		return nil, r.errorf("links", err)
	}
	return all, nil
}

// Events are the events of the run and all trials in the order in which they
// were recorded.
func (r *Reader) Events() ([]Event, error) {
	var all []Event
	err := r.each(`SELECT trial, at_ns, kind, what, detail, took_ns FROM events ORDER BY id`, nil, func(rows *sql.Rows) error {
		var e Event
		var at, took int64
		if err := rows.Scan(&e.Trial, &at, &e.Kind, &e.What, &e.Detail, &took); err != nil {
			return err
		}
		e.At, e.Took = time.Unix(0, at).UTC(), time.Duration(took)
		all = append(all, e)
		return nil
	})
	if err != nil {
		return nil, r.errorf("events", err)
	}
	return all, nil
}

// EventsOf streams the events of one trial in the order in which they were recorded.
func (r *Reader) EventsOf(trial int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		all, err := r.Events()
		if err != nil {
			yield(Event{}, err)
			return
		}
		for _, e := range all {
			if e.Trial == trial && !yield(e, nil) {
				return
			}
		}
	}
}

func orNaN(v sql.NullFloat64) float64 {
	if !v.Valid {
		return math.NaN()
	}
	return v.Float64
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

func (r *Reader) each(query string, args []any, fn func(*sql.Rows) error) error {
	return eachRow(r.db, query, args, fn)
}

func eachRow(db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string, args []any, fn func(*sql.Rows) error) error {
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
