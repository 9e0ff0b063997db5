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

// attempt does one attempt to store an object, which is under way, and says what
// becomes of it then. Its error is of what surrounds the operation.
func (t *trial) attempt(ctx context.Context, worker, object int) error {
	if t.inDoubt(object) {
		// The attempt before this one seemed to fail, and may have left the object.
		if err := t.write(); err != nil {
			return err
		}
		switch found, err := t.look(ctx, object); {
		case err != nil:
			return err
		case found == whole:
			return t.afterAccept(ctx, worker, object)
		case ctx.Err() != nil:
			t.queue.set(object, record.JobWaiting)
			return nil
		}
		if state := t.job(object).State; givenUp(state) { // in an earlier session
			t.drop(object)
			t.queue.set(object, state)
			return nil
		}
	}
	job := t.job(object)
	from, err := openSource(t.set, object)
	if err != nil {
		return t.unreadable(object, job, err)
	}
	defer from.close()
	if job.State != record.JobPutting { // an attempt that a killed session left open is made again, and counts once
		job.Attempts++
	}
	job.State, job.Began = record.JobPutting, t.sink.Now()
	if err := t.write(job.Job); err != nil {
		return err
	}
	return t.store(ctx, worker, object, job, from)
}

// store puts an object that is recorded as being put, and says what becomes of it.
func (t *trial) store(ctx context.Context, worker, object int, job *job, from *source) error {
	job.Began = t.sink.Now()
	t.mu.Lock()
	t.tally.session++
	t.tally.begun(job.Began)
	t.mu.Unlock()
	var ref system.Ref
	op := record.Op{Kind: record.OpPut, Worker: uint32(worker), Object: uint32(object), Length: job.Size}
	_, err := scenario.Timed(ctx, t.site.Limits, t.sink.Now, &op, func(w *scenario.Operation) (err error) {
		ref, err = t.node.Put(w.Ctx, job.Name, job.Size, w.SendingFrom(from, job.Size))
		return err
	})
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
		if err := t.accept(object, job, ref, time.Duration(op.LastByte)); err != nil {
			return err
		}
		return t.afterAccept(ctx, worker, object)
	case ctx.Err() != nil:
		// Whether the system has it is found out by resolve, or by the next session.
		t.doubts(object, true)
		t.queue.set(object, record.JobWaiting)
		return nil
	}
	return t.failed(object, job, op.Outcome, err)
}

// job is what is known of an object that is not done.
func (t *trial) job(object int) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.jobs[object] == nil {
		t.jobs[object] = &job{Job: record.Job{Object: int64(object), Name: t.name(object),
			Size: t.set.Object(object).Size}}
	}
	return t.jobs[object]
}

func (t *trial) inDoubt(object int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.jobs[object] != nil && t.jobs[object].doubt
}

func (t *trial) doubts(object int, doubt bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs[object].doubt = doubt
}

// drop forgets an object of which all is recorded, unless it is in doubt.
func (t *trial) drop(object int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.jobs[object]; j != nil && !j.doubt {
		delete(t.jobs, object)
	}
}

// accept notes that the system has an object.
//
// Where nothing more is asked about it, that is recorded together with what is written
// next, which is mostly that another is put: a commit less for each. Whoever is to wait
// first, for anything, writes. A session that is killed before leaves the object
// in doubt, as it does one that is killed within its put.
func (t *trial) accept(object int, job *job, ref system.Ref, at time.Duration) error {
	job.State, job.Ref, job.Accepted, job.Error = record.JobAccepted, string(ref), at, ""
	t.mu.Lock()
	job.doubt = false
	t.tally.last = max(t.tally.last, at)
	t.full, t.quotas = "", 0 // there is room
	t.held = append(t.held, job.Job)
	t.mu.Unlock()
	t.queue.set(object, record.JobAccepted)
	if t.settler() == nil {
		t.drop(object)
		return nil
	}
	return t.write()
}

// afterAccept is what keeps the slot of an object that was accepted.
func (t *trial) afterAccept(ctx context.Context, worker, object int) error {
	switch {
	case t.settler() == nil:
		return nil
	case t.slotDurable(t.u):
		return t.settle(ctx, worker, object)
	}
	t.pending <- object
	return nil
}

// failed has an object tried again later, or gives it up.
func (t *trial) failed(object int, job *job, outcome record.Outcome, why error) error {
	job.Error = scenario.ShortError(why)
	givenUp := job.Attempts > t.u.Retries
	t.mu.Lock()
	job.doubt = job.doubt || outcome != record.Refused
	if errors.Is(why, system.ErrQuota) {
		t.quotas++
	}
	// Not at the first refusal, and not while others are taken: a Tahoe-LAFS
	// server calls itself full to an object of which an upload that was cut off
	// still holds the place, for half an hour.
	if givenUp && t.quotas > t.u.Retries {
		t.full = job.Error
	}
	t.mu.Unlock()
	switch {
	case !givenUp:
		job.State = record.JobWaiting
		if err := t.write(job.Job); err != nil {
			return err
		}
		t.queue.later(object, t.sink.Now()+backoff(t.u.Backoff.Std(), job.Attempts))
		return nil
	case outcome == record.Refused:
		return t.giveUp(object, job, record.JobRefused)
	}
	return t.giveUp(object, job, record.JobFailed)
}

// giveUp ends the attempts at an object.
func (t *trial) giveUp(object int, job *job, state record.JobState) error {
	job.State = state
	if err := t.write(job.Job); err != nil {
		return err
	}
	t.drop(object)
	t.queue.set(object, state)
	return nil
}

// unreadable gives an object up whose data is not to be had.
func (t *trial) unreadable(object int, job *job, why error) error {
	job.Error = scenario.ShortError(why)
	t.doubts(object, false)
	if err := t.giveUp(object, job, record.JobUnreadable); err != nil {
		return err
	}
	if t.queue.counts().in[record.JobUnreadable] > mostNamed {
		return nil
	}
	return t.event("note", "data unreadable", fmt.Sprintf("object %d, %s: %s", object, job.Name, job.Error))
}

// mostNamed is how many objects in the same trouble are named one by one.
const mostNamed = 20

// backoff is the pause after so many failed attempts: five times as long each
// time, up to backoffMost.
func backoff(first time.Duration, failed int) time.Duration {
	return time.Duration(min(float64(first)*math.Pow(backoffFactor, float64(failed-1)), float64(backoffMost)))
}

const (
	backoffFactor = 5
	backoffMost   = 10 * time.Minute
)
