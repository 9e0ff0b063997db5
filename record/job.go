package record

import (
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
