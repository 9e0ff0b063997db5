package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

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
	s := t.queue.of(object)
	return s == objectAccepted || s == objectDurable
}

// verify fetches its share of the stored objects and compares every byte. What
// earlier sessions have fetched is not fetched again.
func (t *trial) verify(ctx context.Context) error {
	if t.u.Verify == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range t.u.Concurrency {
		group.Go(func() {
			for ctx.Err() == nil {
				object := int(next.Add(1)) - 1
				if object >= t.set.Len() {
					return
				}
				if _, fetched := t.fetched[object]; fetched || !t.toVerify(object) || !t.stored(object) {
					continue
				}
				if err := t.verifyOne(ctx, worker, object); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func (t *trial) verifyOne(ctx context.Context, worker, object int) error {
	size := t.set.Object(object).Size
	op := record.Op{Kind: record.OpGet, Worker: uint32(worker), Object: uint32(object), Length: size}
	ref, ok := t.refOf(object)
	if !ok {
		return t.notRead(object, "its ref is not known any more")
	}
	w := scenario.Watch(ctx, t.site.Limits)
	start, at := t.sink.Now(), time.Now()
	err := t.fetch(w, object, ref)
	end := t.sink.Now() - w.CutOff(err)
	cause := w.Stop()
	op.Start, op.LastByte, op.Bytes = scenario.Nanos(start), scenario.Nanos(end), w.Bytes()
	op.Intended = op.Start
	if first := w.FirstByte(); !first.IsZero() {
		op.FirstByte = min(op.Start+first.Sub(at).Nanoseconds(), op.LastByte)
	}
	var ours *unreadableError
	if errors.As(err, &ours) {
		return t.notRead(object, "its own data could not be read: "+ours.Error())
	}
	op.Outcome, op.Class, op.Status = scenario.OutcomeOf(err, cause)
	if errors.Is(err, scenario.ErrWrongBytes) {
		op.Outcome, op.Class = record.WrongBytes, ""
	}
	if errors.Is(err, errTooShort) {
		op.Outcome, op.Class = record.Truncated, ""
	}
	if err := t.done(op); err != nil {
		return err
	}
	switch {
	case op.Outcome == record.OK, op.Outcome == record.Cancelled:
	default:
		return t.unverified(object, fmt.Sprintf("%s: %s", op.Outcome, scenario.ShortError(err)))
	}
	return nil
}

// fetchedBefore takes a fetch of an earlier session.
func (t *trial) fetchedBefore(op record.Op) {
	if op.Outcome != record.Cancelled {
		t.fetched[int(op.Object)] = true
	}
}

// notRead notes an object that could not be asked for: there is no operation of it.
func (t *trial) notRead(object int, why string) error {
	t.mu.Lock()
	t.unread++
	t.mu.Unlock()
	return t.unverified(object, why)
}

// unverified notes an object that is not what was stored.
func (t *trial) unverified(object int, why string) error {
	t.mu.Lock()
	t.suspect++
	n := t.suspect
	t.mu.Unlock()
	if n > unreadableEvents {
		return nil
	}
	return t.event("violation", "object not verified", fmt.Sprintf("object %d, %s: %s", object, t.name(object), why))
}

// unreadableError is our own data that cannot be read.
type unreadableError struct{ error }

// errTooShort ends a read that gave no error and less than the object.
var errTooShort = errors.New("it ended before the object did")

// fetch gets an object and compares it with the set's.
func (t *trial) fetch(w *scenario.Operation, object int, ref system.Ref) error {
	check, err := t.set.Check(object)
	if err != nil {
		return &unreadableError{err}
	}
	to := &checking{w: w, to: check}
	w.Moved(0, false)
	err = t.node.Get(w.Ctx, ref, to)
	short := check.Close()
	switch {
	case to.wrong:
		return scenario.ErrWrongBytes
	case err == nil && short != nil && w.Bytes() < t.set.Object(object).Size:
		return errTooShort
	case err == nil && short != nil:
		return scenario.ErrWrongBytes
	}
	return err
}

// checking passes on what a system writes, and sees it pass.
type checking struct {
	w     *scenario.Operation
	to    io.Writer
	wrong bool
}

func (c *checking) Write(p []byte) (int, error) {
	c.w.Received(len(p))
	if _, err := c.to.Write(p); err != nil {
		c.wrong = true
		return 0, scenario.ErrWrongBytes
	}
	return len(p), nil
}
