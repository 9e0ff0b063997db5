package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// TrialWriter records one trial. It is safe for concurrent use.
type TrialWriter struct {
	run     *Run
	trial   Trial
	summary *Summary
	windows windower
	pending []Op // not yet in a block
	block   []byte
	seq     int64
	written int64 // operations in the last written totals
}

// Begin starts a trial of a cell. If a trial of the same cell and block was interrupted, it
// keeps its ID. When Begin returns, the trial is on the disk as running.
func (r *Run) Begin(cell string, block int, warmup bool, epoch time.Time) (*TrialWriter, error) {
	w := &TrialWriter{
		run:     r,
		summary: NewSummary(),
		windows: windower{},
		trial:   Trial{Cell: cell, Block: block, Warmup: warmup, State: Running, Epoch: epoch},
	}
	err := r.durable(func() error {
		row := r.db.QueryRowContext(context.Background(),
			`INSERT INTO trials (id, cell, block, warmup, state, epoch_ns, invalid, notes, error)
			VALUES ((SELECT id FROM trials WHERE cell = ?1 AND block = ?2 AND warmup = ?3 AND state = 'pending'
				ORDER BY id LIMIT 1),
				?1, ?2, ?3, 'running', ?4, '[]', '[]', '')
			ON CONFLICT (id) DO UPDATE SET state = excluded.state, epoch_ns = excluded.epoch_ns
			RETURNING id`,
			cell, block, warmup, epoch.UnixNano())
		err := row.Scan(&w.trial.ID)
		r.writers[w.trial.ID] = w
		return err
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// ID is the ID of the trial.
func (w *TrialWriter) ID() int64 { return w.trial.ID }

// Summary returns the live summary, which includes every recorded operation.
func (w *TrialWriter) Summary() *Summary { return w.summary }

// Ops records operations, as far as possible in the order in which they ended. It refuses
// impossible operations: they reveal an error of the generator, and numbers computed from
// them would be wrong.
func (w *TrialWriter) Ops(ops []Op) error {
	if err := Check(ops); err != nil {
		return w.errorf("%w", err)
	}
	return w.guarded(func() error {
		w.count(ops)
		w.pending = append(w.pending, ops...)
		for len(w.pending) >= BlockSize {
			if err := w.insertBlock(w.pending[:BlockSize]); err != nil {
				return err
			}
			w.pending = append(w.pending[:0], w.pending[BlockSize:]...)
		}
		return nil
	})
}

// Block records encoded operations, see [AppendBlock].
func (w *TrialWriter) Block(b []byte) error {
	ops, err := DecodeBlock(b, nil)
	if err != nil {
		return w.errorf("%w", err)
	}
	return w.Ops(ops)
}

// maxNs limits times to 10 years, a thirtieth of the range of int64. Times are compared,
// subtracted and rounded up to a second, but never summed, so nothing overflows.
const maxNs = int64(10 * 365 * 24 * time.Hour)

// Check returns an error for the first impossible operation.
func Check(ops []Op) error {
	for i := range ops {
		op := &ops[i]
		why := ""
		switch {
		case op.Outcome >= numOutcomes:
			why = "unknown outcome"
		case op.Kind >= numOpKinds:
			why = "unknown kind"
		case op.Bytes < 0 || op.Length < -1 || op.Offset < 0:
			why = "negative offset, length or bytes"
		case op.LastByte < op.Start:
			why = "it ended before it started"
		case op.FirstByte != 0 && (op.FirstByte < op.Start || op.FirstByte > op.LastByte):
			why = "its first byte came outside of its time"
		case op.Start < -maxNs || op.Intended < -maxNs || op.LastByte > maxNs || op.Intended > maxNs:
			why = "its times are more than 10 years from the epoch"
		case op.Outcome == OK && op.Length > 0 && op.Bytes != op.Length:
			why = "it is ok, but the bytes are not as many as asked for"
		default:
			continue
		}
		return fmt.Errorf("impossible operation: %s: %+v", why, *op)
	}
	return nil
}

// count adds operations to the summary and the windows.
func (w *TrialWriter) count(ops []Op) {
	_ = w.summary.Ops(ops) // never fails
	for i := range ops {
		w.windows.add(&ops[i])
	}
}

// flushWindows adds the content of the windower to the table.
func (w *TrialWriter) flushWindows() error {
	for _, second := range slices.Sorted(maps.Keys(w.windows)) {
		if err := put(w.run, windowTable, w.windows[second], w.trial.ID); err != nil {
			return err
		}
	}
	clear(w.windows)
	return nil
}

// flush writes everything to the open transaction, with the totals so far, so that a reader
// can follow the trial without reading it from the beginning.
func (w *TrialWriter) flush() error {
	if len(w.pending) > 0 {
		if err := w.insertBlock(w.pending); err != nil {
			return err
		}
		w.pending = w.pending[:0]
	}
	if err := w.flushWindows(); err != nil {
		return err
	}
	c := w.summary.Counts()
	if c.Ops == w.written {
		return nil
	}
	w.written = c.Ops
	return errors.Join(w.writeCounts("outcome", c.OutcomeMap()), put(w.run, totalsTable, &totals{w.trial.ID, c}))
}

// storedBlock is a row of operations.
type storedBlock struct {
	Seq   int64  `db:"seq"`
	N     int64  `db:"n"`
	First int64  `db:"first_ns"`
	Last  int64  `db:"last_ns"`
	Data  []byte `db:"data"`
}

var blockTable = newTable[storedBlock]("ops", "seq", "trial, ", "")

func (w *TrialWriter) insertBlock(ops []Op) error {
	w.block = AppendBlock(w.block[:0], ops)
	row := storedBlock{Seq: w.seq, N: int64(len(ops)), First: ops[0].Start, Last: ops[0].LastByte, Data: w.block}
	for i := range ops {
		row.First = min(row.First, ops[i].Start)
		row.Last = max(row.Last, ops[i].LastByte)
	}
	w.seq++
	return put(w.run, blockTable, &row, w.trial.ID)
}

// Samples records samples of processes.
func (w *TrialWriter) Samples(samples []Sample) error {
	return w.guarded(func() error { return putAll(w.run, sampleTable, samples, w.trial.ID) })
}

// Link records link checks. It sets their Trial.
func (w *TrialWriter) Link(checks ...LinkCheck) error {
	checks = slices.Clone(checks)
	for i := range checks {
		checks[i].Trial = w.trial.ID
	}
	return w.guarded(func() error { return putAll(w.run, linkTable, checks) })
}

// Event records an event of the trial. It sets its Trial.
func (w *TrialWriter) Event(e Event) error {
	e.Trial = w.trial.ID
	return w.guarded(func() error { return put(w.run, eventTable, &e) })
}

// End completes the trial with its metrics and validity; when it returns, all its records are
// durable. ID, cell, block, warm-up and epoch stay those of [Run.Begin]; an empty state means
// done. With the state running, the trial is paused and will be continued in another session
// ([Run.Continue]); its metrics, details and notes so far are stored for reports. If operations
// were recorded, outcomes and classes are counted from them and not taken from t.
func (w *TrialWriter) End(t Trial) error {
	t.State = cmp.Or(t.State, Done)
	c := w.summary.Counts()
	if c.Ops > 0 {
		t.Outcomes, t.Classes = c.OutcomeMap(), c.Classes
	}
	return w.guarded(func() error {
		if err := w.flush(); err != nil {
			return err
		}
		id := w.trial.ID
		err := w.run.durably(func() error {
			err := w.run.exec(`UPDATE trials SET state = ?, seconds = ?, invalid = ?, notes = ?, error = ?
				WHERE id = ?`,
				t.State, t.Seconds, jsonList{&t.Invalid}, jsonList{&t.Notes}, t.Error, id)
			for key, v := range t.Metrics {
				err = errors.Join(err, put(w.run, resultTable, &result{id, key, v}))
			}
			for i, d := range t.Details {
				err = errors.Join(err, put(w.run, detailTable, &detail{id, i, d}))
			}
			return errors.Join(err, w.writeCounts("outcome", t.Outcomes), w.writeCounts("class", t.Classes),
				put(w.run, totalsTable, &totals{id, c}), w.writeHistograms())
		})
		if err != nil {
			return err
		}
		delete(w.run.writers, id)
		return nil
	})
}

func (w *TrialWriter) writeCounts(kind string, counts map[string]int64) (err error) {
	for name, n := range counts {
		err = errors.Join(err, put(w.run, countTable, &count{w.trial.ID, kind, name, n}))
	}
	return err
}

func (w *TrialWriter) writeHistograms() error {
	for m := range numMeasures {
		for censored, h := range map[bool]*histogram{false: w.summary.hist[m], true: w.summary.censored[m]} {
			if h.count() == 0 {
				continue
			}
			hdr, err := h.h.EncodeV2()
			row := storedHistogram{w.trial.ID, m.String(), censored, h.over, string(hdr)}
			if err := errors.Join(err, put(w.run, histogramTable, &row)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rows of the results of a trial.
type (
	result struct {
		Trial  int64   `db:"trial"`
		Metric string  `db:"metric"`
		Value  float64 `db:"value"`
	}
	detail struct {
		Trial int64 `db:"trial"`
		Place int   `db:"place"`
		Detail
	}
	count struct {
		Trial int64  `db:"trial"`
		Kind  string `db:"kind"` // "outcome" or "class"
		Name  string `db:"name"`
		N     int64  `db:"n"`
	}
	totals struct {
		Trial int64 `db:"trial"`
		Counts
	}
	storedHistogram struct {
		Trial    int64  `db:"trial"`
		Measure  string `db:"measure"`
		Censored bool   `db:"censored"`
		Over     int64  `db:"overflow"`
		HDR      string `db:"hdr"`
	}
)

var (
	resultTable    = newTable[result]("results", "trial", "", "")
	detailTable    = newTable[detail]("details", "place", "", "")
	countTable     = newTable[count]("counts", "trial", "", "").replacing()
	totalsTable    = newTable[totals]("summaries", "trial", "", "").replacing()
	histogramTable = newTable[storedHistogram]("histograms", "trial", "", "")
)

// guarded runs fn while the trial is open for writing. An error of fn ends recording for the
// whole run, because the records are no longer complete.
func (w *TrialWriter) guarded(fn func() error) error {
	var ended error
	err := w.run.guarded(func() error {
		if w.run.writers[w.trial.ID] != w {
			ended = w.errorf("it has ended")
			return nil
		}
		return fn()
	})
	return cmp.Or(err, ended)
}

func (w *TrialWriter) errorf(format string, args ...any) error {
	return fmt.Errorf("record: trial %d (cell %s, block %d): "+format,
		slices.Concat([]any{w.trial.ID, w.trial.Cell, w.trial.Block}, args)...)
}
