package record

import (
	"encoding/json"
	"iter"
	"time"
)

// Poll is one poll of a system. Times are since the trial's epoch. The readings are of some
// time between Start and End.
type Poll struct {
	Seq      int64         `db:"seq"`         // 0, 1, …; gaps are missed polls, see Missed
	Intended time.Duration `db:"intended_ns"` // on the absolute schedule
	Start    time.Duration `db:"start_ns"`
	End      time.Duration `db:"end_ns"`
	// scheduled polls before this one that were skipped, because an earlier one took too long
	// or no collector was running
	Missed   int        `db:"missed"`
	Calls    []PollCall `db:"calls"`
	Readings []Reading  `db:"readings"`
}

// PollCall is one request of a poll.
type PollCall struct {
	Name       string // "/renter/contracts"
	Start, End time.Duration
	Error      string // why it failed; empty: it succeeded
}

// Reading is one number of a poll, see system.Reading.
type Reading struct {
	Name  string
	Value float64
	Exact string // amount of money in the smallest unit, decimal; empty: not an amount
	Bad   string // why Value must not be used; empty: it may be
}

// Poll records a poll, replacing one with the same number. It is written within a second,
// completely or not at all.
func (w *TrialWriter) Poll(p Poll) error {
	return w.guarded(func() error {
		w.run.journal = true
		return put(w.run, pollTable, &p, w.trial.ID)
	})
}

var pollTable = newTable[Poll]("polls", "seq", "trial, ", "").replacing()

// Polls reads a trial's polls in order, in constant memory. After an error it ends.
func (r *Reader) Polls(trial int64) iter.Seq2[Poll, error] { return r.PollsAfter(trial, -1) }

// PollsAfter is Polls without those up to number seen.
func (r *Reader) PollsAfter(trial, seen int64) iter.Seq2[Poll, error] {
	return stream(r, pollTable, trial, seen)
}

// MarshalJSON returns [name, start, end, error] in nanoseconds, without trailing empty texts.
func (c PollCall) MarshalJSON() ([]byte, error) { return shortArray(c.Name, c.Start, c.End, c.Error) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (c *PollCall) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&c.Name, &c.Start, &c.End, &c.Error})
}

// MarshalJSON returns [name, value, exact, bad] without trailing empty texts. Value is finite.
func (r Reading) MarshalJSON() ([]byte, error) { return shortArray(r.Name, r.Value, r.Exact, r.Bad) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Reading) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&r.Name, &r.Value, &r.Exact, &r.Bad})
}

func shortArray(values ...any) ([]byte, error) {
	for len(values) > 0 && values[len(values)-1] == "" {
		values = values[:len(values)-1]
	}
	return json.Marshal(values)
}
