package scenario

import (
	"context"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// settle waits until an accepted object is durable, for upload.settle. One that
// is not durable by then is looked at again at the end.
func (t *uploadTrial) settle(ctx context.Context, worker, object int, job *record.Job) error {
	done, err := t.settleWithin(ctx, t.u.Settle.Std(), worker, object, job)
	if !done && err == nil && ctx.Err() == nil {
		t.mu.Lock()
		t.late = append(t.late, object)
		t.mu.Unlock()
	}
	return err
}

func (t *uploadTrial) settleWithin(ctx context.Context, limit time.Duration, worker, object int, job *record.Job) (bool, error) {
	step, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := t.settler().Settle(step, system.Ref(job.Ref)); err != nil {
		return false, nil
	}
	job.State, job.Durable = record.JobDurable, t.sink.Now()
	if err := t.write(*job); err != nil {
		return true, err
	}
	err := t.done(record.Op{
		Kind: record.OpPutDurable, Worker: uint32(worker), Object: uint32(object), // its bytes are the put's
		Start: nanos(job.Began), Intended: nanos(job.Began), LastByte: nanos(job.Durable),
	})
	t.countDurable(job)
	t.queue.set(object, objectDurable)
	t.forget(object)
	return true, err
}

// settlers is how many accepted objects are asked about at once where their slot
// does not wait for it: few, because the questions are load, too.
const settlers = 4

// pend has an accepted object looked at when its turn comes.
func (t *uploadTrial) pend(object int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, object)
	t.wakeSettlers()
}

// wakeSettlers is called with t.mu held.
func (t *uploadTrial) wakeSettlers() {
	close(t.pended)
	t.pended = make(chan struct{})
}

// settling looks at accepted objects, in their order, while others are put. What
// it returns waits until all have been looked at, or ctx ends; where all is done
// once every object is accepted, it does not wait.
func (t *uploadTrial) settling(ctx context.Context) (end func() error) {
	if t.settler() == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	for worker := range settlers {
		group.Go(func() {
			for {
				object, job, ok := t.nextPending(ctx)
				if !ok {
					return
				}
				if err := t.settle(ctx, worker, object, job); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	return func() error {
		t.mu.Lock()
		t.noMore = true
		t.wakeSettlers()
		t.mu.Unlock()
		if t.u.Until == "accepted" {
			cancel(nil)
		}
		group.Wait()
		err := context.Cause(ctx)
		cancel(nil)
		if t.u.Until == "accepted" && err == context.Canceled {
			return nil
		}
		return err
	}
}

// nextPending waits for an object to look at.
func (t *uploadTrial) nextPending(ctx context.Context) (object int, job *record.Job, ok bool) {
	for ctx.Err() == nil {
		t.mu.Lock()
		if len(t.pending) > 0 {
			object, t.pending = t.pending[0], t.pending[1:]
			job = t.jobs[object]
			t.mu.Unlock()
			return object, job, true
		}
		over, again := t.noMore, t.pended
		t.mu.Unlock()
		if over {
			return 0, nil, false
		}
		pause(ctx, -1, again)
	}
	return 0, nil, false
}

// settleLate looks once more at the objects that were not durable when the wait
// for them ended. Together they have as long as one of them had.
func (t *uploadTrial) settleLate(ctx context.Context) error {
	t.mu.Lock()
	late := t.late
	t.late = nil
	t.mu.Unlock()
	limit := t.u.Settle.Std()
	if t.u.Until == "accepted" {
		limit = settleBriefly
	}
	begun := time.Now()
	for _, object := range late {
		t.mu.Lock()
		job := t.jobs[object]
		t.mu.Unlock()
		// Even when the time is over each is asked about: it may long be durable.
		left := max(settleBriefly, limit-time.Since(begun))
		if t.u.Until == "accepted" {
			left = min(left, settleBriefly)
		}
		if _, err := t.settleWithin(ctx, left, 0, object, job); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
