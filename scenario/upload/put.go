package upload

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// attempt tries once to store an object that the worker has taken, and records the result. A
// failed put is no error; errors come from recording.
func (t *trial) attempt(ctx context.Context, worker, object int) error {
	job := t.job(object)
	if job.doubt { // the previous attempt may have stored it
		switch found, err := t.look(ctx, object); {
		case err != nil:
			return err
		case found == whole:
			return t.settle(ctx, worker, object)
		case ctx.Err() != nil:
			t.queue.set(object, record.JobWaiting)
			return nil
		case givenUp(job.State): // in an earlier session
			return t.becomes(object, job, job.State)
		}
	}
	content, err := t.set.Open(object)
	if err != nil {
		return t.unreadable(object, job, err)
	}
	defer content.Close()
	if job.State != record.JobPutting { // an attempt that a killed session left open counts once
		job.Attempts++
	}
	job.State, job.Began = record.JobPutting, t.sink.Now()
	if err := t.sink.Jobs(job.Job); err != nil {
		return err
	}
	return t.store(ctx, worker, object, job, content)
}

// store puts an object that is recorded as being put, and records the result.
func (t *trial) store(ctx context.Context, worker, object int, job *job, content io.Reader) error {
	job.Began = t.sink.Now()
	t.mu.Lock()
	t.session++
	t.mu.Unlock()
	var ref system.Ref
	op := record.Op{Kind: record.OpPut, Worker: uint32(worker), Object: uint32(object), Length: job.Size}
	err := scenario.Timed(ctx, t.site.Limits, t.sink.Now, &op, func(w *scenario.Operation) (err error) {
		ref, err = t.node.Put(w.Ctx, job.Name, job.Size, w.SendingFrom(content, job.Size))
		return err
	})
	if err := t.done(op); err != nil {
		return err
	}
	switch {
	case errors.Is(err, scenario.ErrOwnData):
		return t.unreadable(object, job, err)
	case op.Outcome == record.OK:
		if err := t.accept(object, job, ref, time.Duration(op.LastByte)); err != nil {
			return err
		}
		return t.settle(ctx, worker, object)
	case ctx.Err() != nil:
		// resolve or the next session finds out whether the system has it.
		job.doubt = true
		t.queue.set(object, record.JobWaiting)
		return nil
	}
	return t.failed(object, job, op.Outcome, err)
}

// job returns the state of an unfinished object, which it creates if needed.
func (t *trial) job(object int) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.jobs[object] == nil {
		t.jobs[object] = &job{Job: record.Job{Object: int64(object), Name: t.name(object),
			Size: t.set.Object(object).Size}}
	}
	return t.jobs[object]
}

// becomes records an object's new state, and forgets the object if it is done and not in doubt.
func (t *trial) becomes(object int, job *job, state record.JobState) error {
	job.State = state
	if err := t.sink.Jobs(job.Job); err != nil {
		return err
	}
	t.queue.set(object, state)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !job.doubt && (state != record.JobAccepted || t.settler() == nil) {
		delete(t.jobs, object)
	}
	return nil
}

// accept records that the system has an object.
func (t *trial) accept(object int, job *job, ref system.Ref, at time.Duration) error {
	job.Ref, job.Accepted, job.Error = string(ref), at, ""
	t.mu.Lock()
	job.doubt = false
	t.last = max(t.last, at)
	t.full, t.quotas = "", 0 // there is room
	t.mu.Unlock()
	return t.becomes(object, job, record.JobAccepted)
}

// failed queues an object for a later attempt, or gives it up.
func (t *trial) failed(object int, job *job, outcome record.Outcome, why error) error {
	job.Error = scenario.ShortError(why)
	over := job.Attempts > t.u.Retries
	t.mu.Lock()
	job.doubt = job.doubt || outcome != record.Refused
	if errors.Is(why, system.ErrQuota) {
		t.quotas++
	}
	// The system is full only if it refuses repeatedly and accepts nothing in between: a
	// Tahoe-LAFS server reports for half an hour that it is full if an interrupted upload still
	// holds the place of the object.
	if over && t.quotas > t.u.Retries {
		t.full = job.Error
	}
	t.mu.Unlock()
	switch {
	case !over:
		job.State = record.JobWaiting
		if err := t.sink.Jobs(job.Job); err != nil {
			return err
		}
		t.queue.later(object, backoff(t.u.Backoff.Std(), job.Attempts))
		return nil
	case outcome == record.Refused:
		return t.becomes(object, job, record.JobRefused)
	}
	return t.becomes(object, job, record.JobFailed)
}

// unreadable gives up an object whose data cannot be read.
func (t *trial) unreadable(object int, job *job, why error) error {
	job.doubt, job.Error = false, scenario.ShortError(why)
	if err := t.becomes(object, job, record.JobUnreadable); err != nil {
		return err
	}
	return t.named("note", "data unreadable", object, job.Error)
}

// backoff returns the pause after a number of failed attempts: it grows by backoffFactor each
// time, up to backoffMost.
func backoff(first time.Duration, failed int) time.Duration {
	return time.Duration(min(float64(first)*math.Pow(backoffFactor, float64(failed-1)), float64(backoffMost)))
}

const (
	backoffFactor = 5
	backoffMost   = 10 * time.Minute
)

// settle waits until an accepted object is durable, at most upload.settle since its acceptance.
// settleLate asks again about objects that are not durable by then.
func (t *trial) settle(ctx context.Context, worker, object int) error {
	if t.settler() == nil {
		return nil
	}
	limit := t.u.Settle.Std()
	waited := t.sink.Now() - t.job(object).Accepted
	// It may have become durable long ago, so ask at least once.
	return t.settleWithin(ctx, max(limit-waited, min(limit, scenario.SettleBriefly)), worker, object)
}

func (t *trial) settleWithin(ctx context.Context, limit time.Duration, worker, object int) error {
	step, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	job := t.job(object)
	for {
		err := t.settler().Settle(step, system.Ref(job.Ref))
		if err == nil {
			break
		}
		if errors.Is(err, system.ErrNotFound) || step.Err() != nil {
			return nil
		}
		timing.Pause(step, scenario.SettleBriefly) // the daemon may be restarting
	}
	job.Durable = t.sink.Now()
	if err := t.becomes(object, job, record.JobDurable); err != nil {
		return err
	}
	return t.done(record.Op{
		Kind: record.OpPutDurable, Worker: uint32(worker), Object: uint32(object), // its bytes count in the put
		Start: scenario.Nanos(job.Began), Intended: scenario.Nanos(job.Began), LastByte: scenario.Nanos(job.Durable),
	})
}

// settleLate asks again about objects that were not durable when the wait for them ended, unless
// the trial is done once every object is accepted. It asks about each only briefly, since it may
// have become durable long ago, and repeats this for the others. All together get as much time as
// a single object had.
func (t *trial) settleLate(ctx context.Context) error {
	if t.settler() == nil || t.u.Until == "accepted" {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, max(t.u.Settle.Std(), scenario.SettleBriefly))
	defer cancel()
	accepted := func(j *job) bool { return j.State == record.JobAccepted }
	for late := t.unfinished(accepted); len(late) > 0 && within.Err() == nil; late = t.unfinished(accepted) {
		for _, object := range late {
			if err := t.settleWithin(within, scenario.SettleBriefly, 0, object); err != nil {
				return err
			}
		}
		timing.Pause(within, scenario.SettleBriefly) // for an object that is gone, settleWithin returns at once
	}
	return context.Cause(ctx)
}

// unfinished returns the unfinished objects for which has is true, in the set's order.
func (t *trial) unfinished(has func(*job) bool) (all []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for object, j := range t.jobs {
		if has(j) {
			all = append(all, object)
		}
	}
	slices.Sort(all)
	return all
}

func isStored(s record.JobState) bool { return s == record.JobAccepted || s == record.JobDurable }

// queue keeps the state of each object of a data set, and hands out the objects to put or to
// settle: first those that were queued again, then new ones in the order of the set. The state of
// an untouched object is empty; that of an object that a worker took to put it is [record.JobPutting].
type queue struct {
	objects workload.Set

	mu      sync.Mutex
	changed *sync.Cond // signals a change of state or due
	state   []record.JobState
	count   map[record.JobState]int64 // of objects in each state
	bytes   int64                     // of stored ones
	next    int                       // no object before it is new
	due     []int                     // queued again
}

// take returns the next object, and marks it as being put unless it is stored. It waits while
// other objects may be queued again; ok is false when none is left or ctx has ended.
func (q *queue) take(ctx context.Context) (object int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})()
	for ctx.Err() == nil {
		for q.next < len(q.state) && q.state[q.next] != "" {
			q.next++
		}
		switch {
		case len(q.due) > 0:
			object, q.due = q.due[0], q.due[1:]
		case q.next < len(q.state):
			object = q.next
		case q.count[record.JobPutting]+q.count[record.JobWaiting] > 0:
			q.changed.Wait()
			continue
		default:
			return 0, false
		}
		if !isStored(q.state[object]) {
			q.move(object, record.JobPutting)
		}
		return object, true
	}
	return 0, false
}

// move changes the state of an object and updates the counts. The caller holds q.mu.
func (q *queue) move(object int, to record.JobState) {
	from, size := q.state[object], q.objects.Object(object).Size
	if isStored(from) {
		q.bytes -= size
	}
	if isStored(to) {
		q.bytes += size
	}
	q.count[from]--
	q.count[to]++
	q.state[object] = to
	q.changed.Broadcast()
}

func (q *queue) set(object int, state record.JobState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(object, state)
}

// again queues an object before all new ones.
func (q *queue) again(object int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = append(q.due, object)
	q.changed.Broadcast()
}

// later queues an object for another put after a wait.
func (q *queue) later(object int, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(object, record.JobWaiting)
	time.AfterFunc(wait, func() { q.again(object) })
}

func (q *queue) of(object int) record.JobState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state[object]
}

// report fills in the numbers of objects.
func (q *queue) report(s *scenario.State) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.Objects, s.Bytes, s.Durable = int64(len(q.state)), q.bytes, q.count[record.JobDurable]
	s.Accepted = q.count[record.JobAccepted] + s.Durable
	s.Failed, s.Refused, s.Unreadable = q.count[record.JobFailed], q.count[record.JobRefused],
		q.count[record.JobUnreadable]
}
