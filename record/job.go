package record

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
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

var jobStates = [...]JobState{JobPutting, JobWaiting, JobAccepted, JobDurable, JobFailed, JobRefused, JobUnreadable, JobMissing}

// Jobs stores what became of objects, each in place of what was known of it
// before. They are the kernel's when it returns: kill -9 does not lose them, and a
// power cut takes those of the last ten seconds at most. All that is given at once is there after a crash, or nothing of it. Calls that
// come at the same time share one commit.
func (w *TrialWriter) Jobs(jobs ...Job) error {
	if len(jobs) == 0 {
		return nil
	}
	rows := make([]jobRow, len(jobs))
	for i := range jobs {
		if err := rows[i].set(&jobs[i]); err != nil {
			return w.errorf("%w", err)
		}
	}
	batch := &jobBatch{writer: w, rows: rows}
	queue := &w.run.queue
	queue.add(batch)

	// Whoever gets in first writes for all who wait.
	r := w.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if batch.done {
		return batch.err
	}
	all := queue.take()
	err := r.usable()
	if err == nil {
		err = r.fail(r.writeJobs(all))
	}
	for _, b := range all {
		b.done = true
		if b.err == nil {
			b.err = err
		}
	}
	return batch.err
}

// jobQueue holds what was given to [TrialWriter.Jobs] and is not yet written.
type jobQueue struct {
	mu      sync.Mutex
	waiting []*jobBatch
}

// jobBatch is one call's. done and err are the run's lock's.
type jobBatch struct {
	writer *TrialWriter
	rows   []jobRow
	done   bool
	err    error
}

func (q *jobQueue) add(b *jobBatch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, b)
}

func (q *jobQueue) take() []*jobBatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// writeJobs commits batches in the order in which they came. A batch of a trial
// that has ended is refused alone.
//
// A few jobs are one statement, which is a transaction of its own: after the
// milliseconds that a put takes, to begin and to commit one cost as much again.
func (r *Run) writeJobs(all []*jobBatch) error {
	var args []any
	n := 0
	for _, b := range all {
		if b.writer.ended {
			b.err = b.writer.errorf("it has ended")
			continue
		}
		for i := range b.rows {
			args = b.rows[i].append(args, b.writer.trial.ID)
		}
		n += len(b.rows)
	}
	r.journal = true
	if n > 0 && n <= fewJobs && !r.open {
		return r.insertJobs(n, args)
	}
	if err := r.begin(); err != nil {
		return err
	}
	for row := range slices.Chunk(args, jobColumns) {
		if err := r.insertJobs(1, row); err != nil {
			return err
		}
	}
	return r.commit()
}

// fewJobs are written by one statement: of each worker of a usual load test what
// was accepted and what begins.
const fewJobs = 10

// jobRow is a job as the table has it.
type jobRow struct {
	*Job
	sum               []byte // nil: none
	accepted, durable sql.NullInt64
}

func (j *jobRow) set(job *Job) error {
	j.Job = job
	why := ""
	switch {
	case !slices.Contains(jobStates[:], job.State):
		why = "unknown state"
	case job.Object < 0 || job.Size < 0 || job.Attempts < 0:
		why = "negative object, size or attempts"
	case job.Began < -time.Duration(maxNs) || max(job.Began, job.Accepted, job.Durable) > time.Duration(maxNs):
		why = "its times are more than 10 years from the epoch"
	case job.Accepted < 0 || job.Durable < 0:
		why = "it was accepted or durable before the epoch"
	}
	if job.SHA256 != "" {
		sum, err := hex.DecodeString(job.SHA256)
		if err != nil || len(sum) != 32 {
			why = "its SHA-256 is none"
		}
		j.sum = sum
	}
	if why != "" {
		return fmt.Errorf("impossible job: %s: %+v", why, *job)
	}
	j.accepted = sql.NullInt64{Int64: int64(job.Accepted), Valid: job.Accepted != 0}
	j.durable = sql.NullInt64{Int64: int64(job.Durable), Valid: job.Durable != 0}
	return nil
}

// jobColumns is the number of columns of the table.
const jobColumns = 13

// append adds the columns of a row.
func (j *jobRow) append(args []any, trial int64) []any {
	return append(args, trial, j.Object, string(j.State), j.Attempts, j.Name, j.Ref, j.Size, j.sum, int64(j.Began), j.accepted, j.durable, j.Adopted, j.Error)
}

// insertJobs writes n rows, or none of them.
func (r *Run) insertJobs(n int, args []any) error {
	const row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	return r.exec(`INSERT OR REPLACE INTO jobs (trial, object, state, attempts, name, ref, size, sha256, began_ns, accepted_ns, durable_ns, adopted, error)
		VALUES `+row+strings.Repeat(", "+row, n-1), args...)
}

// jobsPage is how many jobs are read at a time.
const jobsPage = 1000

// Jobs reads a trial's jobs in the order of their objects, in constant memory. A
// run made before schema 3 has none. After an error it ends.
func (r *Reader) Jobs(trial int64) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		there, err := hasTable(r.db, "jobs")
		after := int64(-1)
		page := make([]Job, 0, jobsPage)
		for there && err == nil {
			page = page[:0]
			err = r.each(`SELECT object, state, attempts, name, ref, size, sha256, began_ns, coalesce(accepted_ns, 0), coalesce(durable_ns, 0), adopted, error
				FROM jobs WHERE trial = ? AND object > ? ORDER BY object LIMIT ?`, []any{trial, after, jobsPage}, func(rows *sql.Rows) error {
				var j Job
				var sum sql.RawBytes
				if err := rows.Scan(&j.Object, &j.State, &j.Attempts, &j.Name, &j.Ref, &j.Size, &sum, &j.Began, &j.Accepted, &j.Durable, &j.Adopted, &j.Error); err != nil {
					return err
				}
				j.SHA256 = hex.EncodeToString(sum)
				page = append(page, j)
				return nil
			})
			for _, j := range page {
				if !yield(j, nil) {
					return
				}
			}
			if len(page) < jobsPage {
				break
			}
			after = page[len(page)-1].Object
		}
		if err != nil {
			yield(Job{}, r.errorf(fmt.Sprintf("jobs of trial %d", trial), err))
		}
	}
}

// JobCount is what the jobs of one state are together.
type JobCount struct {
	Jobs     int64
	Bytes    int64 // sum of their sizes
	Attempts int64 // sum
	Adopted  int64 // jobs that a later session found stored
}

// JobCounts counts a trial's jobs by their state; states without jobs have no
// entry. It looks at every job: a second or two for a million.
func (r *Reader) JobCounts(trial int64) (map[JobState]JobCount, error) {
	all := make(map[JobState]JobCount)
	there, err := hasTable(r.db, "jobs")
	if there && err == nil {
		err = r.each(`SELECT state, count(*), sum(size), sum(attempts), sum(adopted) FROM jobs WHERE trial = ? GROUP BY state`, []any{trial}, func(rows *sql.Rows) error {
			var state JobState
			var c JobCount
			if err := rows.Scan(&state, &c.Jobs, &c.Bytes, &c.Attempts, &c.Adopted); err != nil {
				return err
			}
			all[state] = c
			return nil
		})
	}
	if err != nil {
		return nil, r.errorf(fmt.Sprintf("jobs of trial %d", trial), err)
	}
	return all, nil
}
