package upload

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// errSettled ends the wait for objects to be durable when its time is over.
var errSettled = errors.New("the time to wait for objects to be durable is over")

// settle waits until an accepted object is durable, for upload.settle since it
// was accepted or, when that was in an earlier session, since this one began. One
// that is not durable by then is asked about again at the end.
func (t *trial) settle(ctx context.Context, worker, object int) error {
	limit := t.u.Settle.Std()
	waited := t.sink.Now() - max(t.job(object).Accepted, t.began)
	// It may be durable long since: it is asked about once, whatever was waited.
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
		pause(step, scenario.SettleBriefly, nil) // a daemon that restarts does not make it less durable
		if step.Err() != nil {
			return nil
		}
	}
	job.State, job.Durable = record.JobDurable, t.sink.Now()
	if err := t.write(job.Job); err != nil {
		return err
	}
	err := t.done(record.Op{
		Kind: record.OpPutDurable, Worker: uint32(worker), Object: uint32(object), // its bytes are the put's
		Start: scenario.Nanos(job.Began), Intended: scenario.Nanos(job.Began), LastByte: scenario.Nanos(job.Durable),
	})
	t.queue.set(object, record.JobDurable)
	t.drop(object)
	return err
}

// settlers is how many accepted objects are asked about at once where their slot
// does not wait for it: few, because the questions are load, too.
const settlers = 4

// settling looks at accepted objects, in their order, while others are put. What
// it returns waits until all have been looked at, upload.settle has passed since
// the last was accepted, or ctx ends; where all is done once every object is
// accepted, it does not wait.
func (t *trial) settling(ctx context.Context) (end func() error) {
	if t.settler() == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	for worker := range settlers {
		group.Go(func() {
			for object := range t.pending {
				if ctx.Err() != nil {
					continue
				}
				if err := t.settle(ctx, worker, object); err != nil {
					cancel(err)
				}
			}
		})
	}
	return func() error {
		close(t.pending)
		if t.u.Until == "accepted" {
			cancel(nil)
		}
		over := time.AfterFunc(t.settleLeft(), func() { cancel(errSettled) })
		group.Wait()
		over.Stop()
		err := context.Cause(ctx)
		cancel(nil)
		if errors.Is(err, errSettled) || t.u.Until == "accepted" && err == context.Canceled {
			return nil
		}
		return err
	}
}

// settleLeft is what is left of upload.settle since the last object was accepted.
func (t *trial) settleLeft() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.u.Settle.Std()-(t.sink.Now()-max(t.tally.last, t.began)), scenario.SettleBriefly)
}

// settleLate asks again about objects that were not durable when the wait for them
// ended: about each for a moment, because it may long be durable, and once more about
// those that are not. Together they have as long as one of them had; where all is done
// once every object is accepted, those that were waited for are asked about once.
func (t *trial) settleLate(ctx context.Context) error {
	if t.settler() == nil {
		return nil
	}
	once, limit := t.u.Until == "accepted", max(t.u.Settle.Std(), scenario.SettleBriefly)
	if once {
		limit = resolveTimeout
	}
	over := time.Now().Add(limit)
	for late := t.notDurable(); len(late) > 0; late = t.notDurable() {
		for _, object := range late {
			left := time.Until(over)
			if left <= 0 {
				return nil
			}
			err := t.settleWithin(ctx, min(left, scenario.SettleBriefly), 0, object)
			if err = cmp.Or(err, context.Cause(ctx)); err != nil {
				return err
			}
		}
		if once {
			return nil
		}
		pause(ctx, scenario.SettleBriefly, nil) // the wait for an object that is gone ends at once
	}
	return nil
}

// notDurable are the objects that are accepted and no more, in the set's order; where all
// is done once every object is accepted, only those that had upload.settle.
func (t *trial) notDurable() (all []int) {
	latest := time.Duration(math.MaxInt64)
	if t.u.Until == "accepted" {
		latest = t.sink.Now() - t.u.Settle.Std()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for object, j := range t.jobs {
		if j.State == record.JobAccepted && max(j.Accepted, t.began) <= latest {
			all = append(all, object)
		}
	}
	slices.Sort(all)
	return all
}
