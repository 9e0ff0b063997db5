package record

import (
	"errors"
	"iter"
	"time"
)

// Job is one object of a trial that may last for weeks and goes on after any
// kind of end: what became of it so far. Objects that nothing was done with have
// none.
type Job struct {
	Object   int64         // index into the trial's data set
	State    JobState      //
	Attempts int           // puts begun
	Name     string        // under which it was put
	Ref      string        // of the object in the system; empty until it is accepted
	Size     int64         // bytes
	SHA256   string        // of the bytes that were sent, lower-case hex; empty until they were
	Began    time.Duration // of the latest attempt, since the trial's epoch
	Accepted time.Duration // 0: not accepted
	Durable  time.Duration // 0: not known to be durable
	Adopted  bool          // found stored by a later session: its times are those of the finding
	Error    string        // of the latest attempt that failed
}

// JobState is where an object is in its life.
type JobState string

const (
	JobPutting    JobState = "putting"    // a put began; whether it was accepted is not known
	JobWaiting    JobState = "waiting"    // an attempt failed, another follows
	JobAccepted   JobState = "accepted"   //
	JobDurable    JobState = "durable"    // at its full redundancy
	JobFailed     JobState = "failed"     // given up: it failed too often
	JobRefused    JobState = "refused"    // given up: the system would not take it
	JobUnreadable JobState = "unreadable" // its data could not be read
	JobMissing    JobState = "missing"    // it was accepted, and a later session did not find it
)

// Jobs stores what became of objects, each in place of what was known of it
// before. They are the kernel's when it returns: kill -9 does not lose them.
func (w *TrialWriter) Jobs(jobs ...Job) error { return errors.New("record: jobs: not there yet") }

// Jobs reads a trial's jobs in the order of their objects.
func (r *Reader) Jobs(trial int64) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {}
}
