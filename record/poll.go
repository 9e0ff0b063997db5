package record

import (
	"errors"
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
	Missed   int // polls of the schedule before this one that were left out, because an earlier one took too long or nobody was there
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

// Poll records one.
func (w *TrialWriter) Poll(p Poll) error { return errors.New("record: poll: not there yet") }

// Polls reads a trial's polls in their order.
func (r *Reader) Polls(trial int64) iter.Seq2[Poll, error] {
	return func(yield func(Poll, error) bool) {}
}
