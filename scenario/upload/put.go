package upload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// readied is an object that is recorded as being put, and its content open.
type readied struct {
	object int
	job    *record.Job
	from   *source
	first  bool // no earlier session made this attempt
}

// attempt does one attempt to store an object, which is under way, and says what
// becomes of it then. Its error is of what surrounds the operation.
func (t *trial) attempt(ctx context.Context, worker, object int) error {
	if t.inDoubt(object) {
		// The attempt before this one seemed to fail, and may have left the object.
		if err := t.write(); err != nil {
			return err
		}
		done, err := t.look(ctx, worker, object)
		if done || err != nil {
			return err
		}
	}
	r, err := t.ready(object)
	if r == nil || err != nil {
		return err
	}
	return t.store(ctx, worker, r)
}

// ready brings an object, which is under way, to where it can be put; nil when
// its content cannot be read, and it was given up.
func (t *trial) ready(object int) (*readied, error) {
	job := t.job(object)
	// An attempt that a killed session left open is made again, and counts once.
	first := job.State != record.JobPutting
	from, err := openSource(t.set, object)
	if err != nil {
		return nil, t.unreadable(object, job, err)
	}
	if first {
		job.Attempts++
	}
	job.State, job.Began = record.JobPutting, t.sink.Now()
	if err := t.write(*job); err != nil {
		from.close()
		return nil, err
	}
	return &readied{object, job, from, first}, nil
}

// store puts an object that is ready, and says what becomes of it.
func (t *trial) store(ctx context.Context, worker int, r *readied) error {
	object, job, from := r.object, r.job, r.from
	defer from.close()
	w := scenario.Watch(ctx, t.site.Limits)
	job.Began = t.sink.Now()
	t.begun(job)
	ref, err := t.node.Put(w.Ctx, job.Name, job.Size, w.SendingFrom(from, job.Size))
	end := t.sink.Now() - w.CutOff(err)
	cause := w.Stop()
	op := record.Op{
		Kind: record.OpPut, Worker: uint32(worker), Object: uint32(object), Length: job.Size, Bytes: w.Bytes(),
		Start: scenario.Nanos(job.Began), Intended: scenario.Nanos(job.Began), LastByte: scenario.Nanos(end),
	}
	op.Outcome, op.Class, op.Status = scenario.OutcomeOf(err, cause)
	if op.Outcome == record.OK && op.Bytes != op.Length {
		op.Outcome, op.Class = record.Error, "accepted without reading all of it"
		err = errors.New(op.Class)
	}
	if from.err != nil {
		op.Outcome, op.Class = record.Cancelled, "its own data could not be read"
	}
	if err := t.done(op); err != nil {
		return err
	}
	switch {
	case from.err != nil:
		t.discard(ctx, job.Name, ref)
		return t.unreadable(object, job, from.err)
	case op.Outcome == record.OK:
		job.SHA256 = from.sum()
		return t.accepted(ctx, worker, object, job, ref, end)
	case ctx.Err() != nil:
		// Whether the system has it is found out by resolve, or by the next session.
		t.doubts(object, true)
		t.queue.back(object, objectUnder)
		return nil
	}
	return t.failed(object, job, op.Outcome, err)
}

// job is what is known of an object that is not done.
func (t *trial) job(object int) *record.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs[object]
	if j == nil {
		j = &record.Job{Object: int64(object), Name: t.name(object), Size: t.set.Object(object).Size}
		t.jobs[object] = j
	}
	return j
}

func (t *trial) forget(object int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, object)
	delete(t.doubt, object)
}

func (t *trial) inDoubt(object int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.doubt[object]
}

func (t *trial) doubts(object int, doubt bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if doubt {
		t.doubt[object] = true
	} else {
		delete(t.doubt, object)
	}
}

// accepted goes on with an object that the system has taken: its slot is free
// now, or once it is durable.
func (t *trial) accepted(ctx context.Context, worker, object int, job *record.Job, ref system.Ref, at time.Duration) error {
	job.State, job.Ref, job.Accepted, job.Error = record.JobAccepted, string(ref), at, ""
	t.doubts(object, false)
	if t.settler() == nil {
		t.hold(*job)
	} else if err := t.write(*job); err != nil { // it is written again soon, by others
		return err
	}
	t.keepRef(object, job)
	t.countAccepted(job)
	switch {
	case t.settler() == nil:
		t.forget(object)
	case t.slotDurable(t.u):
		if err := t.settle(ctx, worker, object, job); err != nil {
			return err
		}
	default:
		t.pend(object)
	}
	if t.queue.of(object) != objectDurable {
		t.queue.back(object, objectAccepted)
	} else {
		t.queue.back(object, objectDurable)
	}
	return nil
}

// failed has an object tried again later, or gives it up.
func (t *trial) failed(object int, job *record.Job, outcome record.Outcome, why error) error {
	job.Error = scenario.ShortError(why)
	if outcome != record.Refused {
		t.doubts(object, true)
	}
	quotas := t.countQuota(errors.Is(why, system.ErrQuota))
	if job.Attempts <= t.u.Retries {
		job.State = record.JobWaiting
		if err := t.write(*job); err != nil {
			return err
		}
		t.queue.later(object, t.sink.Now()+backoff(t.u.Backoff.Std(), job.Attempts))
		return nil
	}
	// Not at the first refusal, and not while others are taken: a Tahoe-LAFS
	// server calls itself full to an object of which an upload that was cut off
	// still holds the place, for half an hour.
	if quotas > t.u.Retries {
		t.mu.Lock()
		t.full = job.Error
		t.mu.Unlock()
	}
	job.State = record.JobFailed
	state := objectFailed
	if outcome == record.Refused {
		job.State, state = record.JobRefused, objectRefused
	}
	if err := t.write(*job); err != nil {
		return err
	}
	t.countGivenUp(job)
	t.dropJob(object)
	t.queue.back(object, state)
	return nil
}

// dropJob forgets all of an object but that it is in doubt: what was given up may
// be there, too.
func (t *trial) dropJob(object int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.doubt[object] {
		delete(t.jobs, object)
	}
}

// unreadable gives an object up whose data is not to be had.
func (t *trial) unreadable(object int, job *record.Job, why error) error {
	job.State, job.Error = record.JobUnreadable, scenario.ShortError(why)
	if err := t.write(*job); err != nil {
		return err
	}
	t.countGivenUp(job)
	t.forget(object)
	t.queue.back(object, objectUnreadable)
	if t.countUnreadable() <= unreadableEvents {
		return t.event("note", "data unreadable", fmt.Sprintf("object %d, %s: %s", object, job.Name, job.Error))
	}
	return nil
}

// unreadableEvents is how many unreadable objects are named one by one.
const unreadableEvents = 20

// backoff is the pause after so many failed attempts: five times as long each
// time, up to backoffMost.
func backoff(first time.Duration, failed int) time.Duration {
	return time.Duration(min(float64(first)*math.Pow(backoffFactor, float64(failed-1)), float64(backoffMost)))
}

const (
	backoffFactor = 5
	backoffMost   = 10 * time.Minute
)
