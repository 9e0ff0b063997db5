package record

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

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

// ID identifies the run directory. It is random, set by [Create], and never changes.
func (r *Reader) ID() string { return r.Meta()[keyID] }
