package upload

import (
	"context"
	"errors"
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
// that is not durable by then is looked at again at the end.
func (t *trial) settle(ctx context.Context, worker, object int) error {
	job, limit := t.job(object), t.u.Settle.Std()
	waited := t.sink.Now() - max(job.Accepted, t.began)
	// It may be durable long since: it is asked about once, whatever was waited.
	done, err := t.settleWithin(ctx, max(limit-waited, min(limit, scenario.SettleBriefly)), worker, object, job)
	if !done && err == nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), errSettled)) {
		t.isLate(object)
	}
	return err
}

// isLate has an object looked at again at the end.
func (t *trial) isLate(object int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late = append(t.late, object)
}

func (t *trial) settleWithin(ctx context.Context, limit time.Duration, worker, object int, job *job) (bool, error) {
	step, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := t.settler().Settle(step, system.Ref(job.Ref))
		if err == nil {
			break
		}
		if errors.Is(err, system.ErrNotFound) || step.Err() != nil {
			return false, nil
		}
		pause(step, scenario.SettleBriefly, nil) // a daemon that restarts does not make it less durable
		if step.Err() != nil {
			return false, nil
		}
	}
	job.State, job.Durable = record.JobDurable, t.sink.Now()
	if err := t.write(job.Job); err != nil {
		return true, err
	}
	err := t.done(record.Op{
		Kind: record.OpPutDurable, Worker: uint32(worker), Object: uint32(object), // its bytes are the put's
		Start: scenario.Nanos(job.Began), Intended: scenario.Nanos(job.Began), LastByte: scenario.Nanos(job.Durable),
	})
	t.queue.set(object, objectDurable)
	t.drop(object)
	return true, err
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
				switch err := context.Cause(ctx); {
				case errors.Is(err, errSettled):
					t.isLate(object)
				case err == nil:
					if err := t.settle(ctx, worker, object); err != nil {
						cancel(err)
					}
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

// settleLate looks again at the objects that were not durable when the wait for
// them ended: at each for a moment, because it may long be durable, and again at
// those that are not. Together they have as long as one of them had; where all is
// done once every object is accepted they are looked at once.
func (t *trial) settleLate(ctx context.Context) error {
	t.mu.Lock()
	late := t.late
	t.late = nil
	t.mu.Unlock()
	limit, again := max(t.u.Settle.Std(), scenario.SettleBriefly), true
	if t.u.Until == "accepted" {
		limit, again = resolveTimeout, false
	}
	begun := time.Now()
	for round := 0; len(late) > 0 && (round == 0 || again); round++ {
		var still []int
		for _, object := range late {
			left := limit - time.Since(begun)
			if left <= 0 {
				return nil
			}
			done, err := t.settleWithin(ctx, min(left, scenario.SettleBriefly), 0, object, t.job(object))
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !done {
				still = append(still, object)
			}
		}
		if late = still; len(late) > 0 && again { // the wait for an object that is gone ends at once
			pause(ctx, min(scenario.SettleBriefly, max(0, limit-time.Since(begun))), nil)
		}
	}
	return nil
}
