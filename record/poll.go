package record

import (
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"time"
)

// Poll is one round of questions to a system. Times are since the trial's epoch.
// What was read is the state at some moment between Start and End.
type Poll struct {
	Seq      int64         `db:"seq"`         // 0, 1, …; one that is left out was missed, see Missed
	Intended time.Duration `db:"intended_ns"` // on the absolute schedule
	Start    time.Duration `db:"start_ns"`
	End      time.Duration `db:"end_ns"`
	// polls of the schedule before this one that were left out, because an earlier one took
	// too long or no collector was running
	Missed   int        `db:"missed"`
	Calls    []PollCall `db:"calls"`
	Readings []Reading  `db:"readings"`
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

// Poll records one, in place of one of the same number. It is written within a second,
// whole or not at all.
func (w *TrialWriter) Poll(p Poll) error {
	return w.locked(func() error {
		w.run.journal = true
		p.Calls = shifted(p.Calls, -p.Start)
		return put(w.run, pollTable, &p, w.trial.ID)
	})
}

var pollTable = newTable[Poll]("polls", "seq", "trial, ", "").replacing()

// Polls reads a trial's polls in their order, in constant memory. After
// an error it ends.
func (r *Reader) Polls(trial int64) iter.Seq2[Poll, error] { return r.PollsAfter(trial, -1) }

// PollsAfter is Polls without those up to number seen: what came since.
func (r *Reader) PollsAfter(trial, seen int64) iter.Seq2[Poll, error] {
	return func(yield func(Poll, error) bool) {
		for p, err := range stream(r, pollTable, trial, seen) {
			p.Calls = shifted(p.Calls, p.Start)
			if !yield(p, err) {
				return
			}
		}
	}
}

// shifted are calls with other times: in the table they are relative to the poll's
// start.
func shifted(calls []PollCall, by time.Duration) []PollCall {
	all := make([]PollCall, len(calls))
	for i, c := range calls {
		c.Start += by
		c.End += by
		all[i] = c
	}
	return all
}

// MarshalJSON gives [name, start, duration, error] in nanoseconds; empty texts at
// the end are left out.
func (c PollCall) MarshalJSON() ([]byte, error) {
	return shortArray(c.Name, c.Start, c.End-c.Start, c.Error)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (c *PollCall) UnmarshalJSON(b []byte) error {
	var took time.Duration
	err := json.Unmarshal(b, &[]any{&c.Name, &c.Start, &took, &c.Error})
	c.End = c.Start + took
	return err
}

// MarshalJSON gives [name, value, exact, bad], with null for what is not a number;
// empty texts at the end are left out.
func (r Reading) MarshalJSON() ([]byte, error) {
	var value any = json.Number(strconv.FormatFloat(r.Value, 'g', -1, 64))
	switch {
	case math.IsNaN(r.Value):
		value = nil
	case math.IsInf(r.Value, 1): // JSON has none; what does not fit is read as one
		value = json.Number("9e999")
	case math.IsInf(r.Value, -1):
		value = json.Number("-9e999")
	}
	return shortArray(r.Name, value, r.Exact, r.Bad)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Reading) UnmarshalJSON(b []byte) error {
	var value json.Number
	if err := json.Unmarshal(b, &[]any{&r.Name, &value, &r.Exact, &r.Bad}); err != nil {
		return err
	}
	if r.Value = math.NaN(); value != "" {
		r.Value, _ = value.Float64() // what does not fit is infinite
	}
	return nil
}

func shortArray(values ...any) ([]byte, error) {
	for len(values) > 0 && values[len(values)-1] == "" {
		values = values[:len(values)-1]
	}
	return json.Marshal(values)
}
