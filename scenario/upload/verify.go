package upload

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// toVerify reports whether an object is among those that are fetched at the end:
// the same ones in all sessions.
func (t *trial) toVerify(object int) bool {
	share := float64(t.u.Verify)
	return share > 0 && rand.New(rand.NewPCG(t.seed, uint64(object))).Float64() < share
}

// stored reports whether the system has accepted an object.
func (t *trial) stored(object int) bool {
	return isStored(t.queue.of(object))
}

// verify fetches its share of the stored objects and compares every byte. What
// earlier sessions have fetched is not fetched again.
func (t *trial) verify(ctx context.Context) error {
	if t.u.Verify == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan record.Job)
	var group sync.WaitGroup
	for worker := range t.u.Concurrency {
		group.Go(func() {
			for job := range jobs {
				if err := t.verifyOne(ctx, worker, job); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := t.eachStored(func(object int, job *record.Job) error {
		// not before it was missing
		if at, fetched := t.fetched[object]; !t.toVerify(object) || fetched && at >= job.Accepted {
			return nil
		}
		select {
		case jobs <- *job:
		case <-ctx.Done():
		}
		return context.Cause(ctx)
	})
	close(jobs)
	group.Wait()
	return cmp.Or(context.Cause(ctx), err)
}

// eachStored calls do for each object that the system has accepted.
func (t *trial) eachStored(do func(object int, job *record.Job) error) error {
	return t.eachJob(func(object int, job *record.Job) error {
		if !isStored(job.State) {
			return nil
		}
		return do(object, job)
	})
}

func (t *trial) verifyOne(ctx context.Context, worker int, job record.Job) error {
	object := int(job.Object)
	check, err := t.set.Check(object)
	if err != nil { // there is no operation of it
		t.mu.Lock()
		t.unread++
		t.mu.Unlock()
		return t.unverified(object, "its own data could not be read: "+err.Error())
	}
	op := record.Op{Kind: record.OpGet, Worker: uint32(worker), Object: uint32(object), Length: job.Size}
	_, err = scenario.Timed(ctx, t.site.Limits, t.sink.Now, &op, func(w *scenario.Operation) error {
		return t.fetch(w, object, system.Ref(job.Ref), check)
	})
	if err := t.done(op); err != nil || op.Outcome == record.OK || op.Outcome == record.Cancelled {
		return err
	}
	return t.unverified(object, fmt.Sprintf("%s: %s", op.Outcome, scenario.ShortError(err)))
}

// unverified notes an object that is not what was stored.
func (t *trial) unverified(object int, why string) error {
	t.mu.Lock()
	t.suspect++
	n := t.suspect
	t.mu.Unlock()
	if n > mostNamed {
		return nil
	}
	return t.event("violation", "object not verified", fmt.Sprintf("object %d, %s: %s", object, t.name(object), why))
}

// fetch gets an object and compares it with the set's.
func (t *trial) fetch(w *scenario.Operation, object int, ref system.Ref, check io.WriteCloser) error {
	wrong := false
	err := t.node.Get(w.Ctx, ref, w.Comparing(func(p []byte) bool {
		_, err := check.Write(p)
		wrong = wrong || err != nil
		return err == nil
	}))
	switch short := check.Close(); {
	case err == nil && short != nil && w.Bytes() < t.set.Object(object).Size:
		return scenario.ErrTooShort
	case err == nil && short != nil, wrong:
		return scenario.ErrWrongBytes
	}
	return err
}

// clear removes what the trial has stored from an attached system, where that was asked
// for. A started one goes as a whole.
func (t *trial) clear(ctx context.Context) error {
	if t.u.After != "remove" || !t.site.Use.Attached() {
		return nil
	}
	left := scenario.Removal{}
	err := t.eachStored(func(_ int, job *record.Job) error {
		left.Try(ctx, t.node, system.Object{Ref: system.Ref(job.Ref), Size: job.Size})
		return nil
	})
	if why := left.Err(); why != nil {
		t.site.Event("note", "objects not removed", fmt.Sprintf("%s: %v; their names begin with %s", t.site.Use.Name,
			why,
			t.pre), 0)
	}
	return err
}
