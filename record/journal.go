package record

import (
	"encoding/json"
	"iter"
	"time"
)

// Job is the state of one object of a trial that may last for weeks and continue after
// interruptions. Objects that have not been touched yet have none.
type Job struct {
	Object   int64         `db:"object"` // index into the trial's data set
	State    JobState      `db:"state"`
	Attempts int           `db:"attempts"`             // puts begun
	Name     string        `db:"name"`                 // under which it was put
	Ref      string        `db:"ref"`                  // of the object in the system; empty until it is accepted
	Size     int64         `db:"size"`                 // bytes
	Began    time.Duration `db:"began_ns"`             // of the latest attempt, since the trial's epoch
	Accepted time.Duration `db:"accepted_ns" none:"0"` // 0: not accepted
	Durable  time.Duration `db:"durable_ns" none:"0"`  // 0: not known to be durable
	Adopted  bool          `db:"adopted"`              // found stored by a later session, at these times
	Error    string        `db:"error"`                // of the latest attempt that failed
}

// JobState is the stage of an object's life.
type JobState string

const (
	JobPutting    JobState = "putting"    // a put began; it is unknown whether it was accepted
	JobWaiting    JobState = "waiting"    // an attempt failed, another will follow
	JobAccepted   JobState = "accepted"   //
	JobDurable    JobState = "durable"    // at its full redundancy
	JobFailed     JobState = "failed"     // given up: it failed too often
	JobRefused    JobState = "refused"    // given up: the system would not take it
	JobUnreadable JobState = "unreadable" // its data could not be read
	JobMissing    JobState = "missing"    // it was accepted, and a later session did not find it
)

// Jobs stores the state of objects, replacing their earlier state. When it returns, the
// kernel has the data: kill -9 loses nothing, and a power cut at most the last ten seconds.
// After a crash, either all jobs of a call are there or none.
func (w *TrialWriter) Jobs(jobs ...Job) error {
	return w.guarded(func() error {
		w.run.journal = true
		if err := putAll(w.run, jobTable, jobs, w.trial.ID); err != nil {
			return err
		}
		return w.run.commit()
	})
}

var jobTable = newTable[Job]("jobs", "object", "trial, ", "").replacing()

// Jobs reads a trial's jobs in the order of their objects, in constant memory. After an error it ends.
func (r *Reader) Jobs(trial int64) iter.Seq2[Job, error] { return stream(r, jobTable, trial, -1) }

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

// Mark is the progress of one node of a swarm when it was polled. The reported state is of
// some time between the start and the end of the poll; what it reports for the first time
// happened after Before, the start of the last poll that did not report it yet.
//
// In the scenario sync there is only the fresh node. Verified is the height of its chain, in
// blocks, and Written the height that all subscribers of the chain have reached.
//
// Not every poll yields a mark: only those in which a further percent of the content was
// verified, something was completed, or trouble began.
type Mark struct {
	Node int `db:"node"` // index into the trial's nodes, see DetailSeeder
	// start of the poll of this node whose mark this follows, since the trial's epoch; the node's start
	// when there was none
	Before   time.Duration `db:"before_ns"`
	Start    time.Duration `db:"start_ns"` // of the poll that reported it
	End      time.Duration `db:"end_ns"`
	Verified int64         `db:"verified"`           // bytes of the content that the node has and has checked
	Written  int64         `db:"written" none:"-1"`  // in sync, see above; −1: not reported
	Received int64         `db:"received" none:"-1"` // payload bytes, including duplicates; −1: not reported
	Sent     int64         `db:"sent" none:"-1"`     // payload bytes sent; −1: not reported
	Peers    int           `db:"peers" none:"-1"`    // connected; −1: not reported
	Complete bool          `db:"complete"`           // the node reports that it has everything
	Trouble  string        `db:"trouble"`            // why it cannot continue, in its own words
}

// Marks records marks, as far as possible in the order in which their polls ended. They are
// written within a second.
func (w *TrialWriter) Marks(marks []Mark) error {
	return w.guarded(func() error { return putAll(w.run, markTable, marks, w.trial.ID) })
}

var markTable = newTable[Mark]("marks", "seq", "trial, ", "")

// Marks reads a trial's marks in the order in which they were recorded, in
// constant memory. After an error it ends.
func (r *Reader) Marks(trial int64) iter.Seq2[Mark, error] { return stream(r, markTable, trial, 0) }
