package record

import (
	"database/sql"
	"fmt"
	"iter"
	"time"
)

// Poll is one round of questions to a system. Times are since the trial's epoch.
// What was read is the state at some moment between Start and End.
type Poll struct {
	Seq      int64         // 0, 1, …; one that is left out was missed, see Missed
	Intended time.Duration // on the absolute schedule
	Start    time.Duration
	End      time.Duration
	Missed   int // polls of the schedule before this one that were left out, because an earlier one took too long or no collector was running
	Calls    []PollCall
	Readings []Reading
}

// PollCall is one request of a poll.
type PollCall struct {
	Name       string // "/renter/contracts"
	Start, End time.Duration
	Error      string // why there is a gap; empty: it was answered
}

// Reading is one number of a poll, see system.Reading.
type Reading struct {
	Name  string
	Value float64
	Exact string // the amount in the smallest unit, decimal; empty: no amount
	Bad   string // why Value is not to be used; empty: it is
}

// Poll records one, which comes after all that the trial has. It is written
// within a second, whole or not at all.
func (w *TrialWriter) Poll(p Poll) error {
	return w.locked(func() error {
		if err := p.check(w.polled); err != nil {
			return &refusal{err}
		}
		if err := w.run.begin(); err != nil {
			return err
		}
		w.polled = p.Seq + 1
		w.run.journal = true
		return w.run.exec(`INSERT INTO polls (trial, seq, intended_ns, start_ns, end_ns, missed, calls, readings) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			w.trial.ID, p.Seq, int64(p.Intended), int64(p.Start), int64(p.End), p.Missed,
			string(appendCalls(nil, p.Start, p.Calls)), string(appendReadings(nil, p.Readings)))
	})
}

func (p *Poll) check(next int64) error {
	why := ""
	switch {
	case p.Seq < next:
		why = fmt.Sprintf("the next is number %d at least", next)
	case p.End < p.Start:
		why = "it ended before it started"
	case min(p.Intended, p.Start) < -time.Duration(maxNs) || max(p.Intended, p.End) > time.Duration(maxNs):
		why = "its times are more than 10 years from the epoch"
	}
	for _, c := range p.Calls {
		if c.End < c.Start || c.Start < -time.Duration(maxNs) || c.End > time.Duration(maxNs) {
			why = fmt.Sprintf("%s was asked from %v to %v", c.Name, c.Start, c.End)
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("impossible poll %d from %v to %v: %s", p.Seq, p.Start, p.End, why)
}

// pollsPage is how many polls are read at a time.
const pollsPage = 200

// Polls reads a trial's polls in their order, in constant memory. A run made
// before schema 3 has none. After an error it ends.
func (r *Reader) Polls(trial int64) iter.Seq2[Poll, error] { return r.PollsAfter(trial, -1) }

// PollsAfter is Polls without those up to number seen: what came since.
func (r *Reader) PollsAfter(trial, seen int64) iter.Seq2[Poll, error] {
	return func(yield func(Poll, error) bool) {
		there, err := hasTable(r.db, "polls")
		names := make(map[string]string)
		after := seen
		for there && err == nil {
			page := make([]Poll, 0, pollsPage)
			err = r.each(`SELECT seq, intended_ns, start_ns, end_ns, missed, calls, readings
				FROM polls WHERE trial = ? AND seq > ? ORDER BY seq LIMIT ?`, []any{trial, after, pollsPage}, func(rows *sql.Rows) error {
				var p Poll
				var calls, readings sql.RawBytes
				err := rows.Scan(&p.Seq, &p.Intended, &p.Start, &p.End, &p.Missed, &calls, &readings)
				if err == nil {
					p.Calls, err = parseCalls(calls, p.Start, names)
				}
				if err == nil {
					p.Readings, err = parseReadings(readings, names)
				}
				if err != nil {
					return err
				}
				after = p.Seq
				page = append(page, p)
				return nil
			})
			for _, p := range page {
				if !yield(p, nil) {
					return
				}
			}
			if len(page) < pollsPage {
				break
			}
		}
		if err != nil {
			yield(Poll{}, r.errorf(fmt.Sprintf("polls of trial %d", trial), err))
		}
	}
}
