package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// finding is the state of an object whose put may or may not have succeeded.
type finding int

const (
	unknown finding = iota // the system cannot be asked or does not answer
	absent
	broken // there, but not whole
	whole
	findings
)

// find looks for an object in the list that was read, else by its name.
func (t *trial) find(ctx context.Context, object int) (finding, system.Object) {
	t.mu.Lock()
	o, listed := t.listed[object]
	delete(t.listed, object)
	t.mu.Unlock()
	if listed {
		return t.inspect(ctx, object, o), o
	}
	n, named := t.node.(system.Namer)
	s, stats := t.node.(system.Stater)
	if !named || !stats {
		return unknown, o
	}
	ref := n.Named(t.name(object))
	step, cancel := context.WithTimeout(ctx, min(t.site.Limits.Deadline.Std(), scenario.RemoveOneTimeout))
	defer cancel()
	o, err := s.Stat(step, ref)
	switch {
	case errors.Is(err, system.ErrNotFound):
		return absent, o
	case err != nil:
		return unknown, o
	}
	o.Ref = ref
	return t.inspect(ctx, object, o), o
}

// inspect compares a stored object with the set's: first the size, then the bytes, within the
// limits of an operation. The object is broken only if that is proven; without an answer or a
// comparison it is unknown, and will be put again. A system that reports too few servers to
// rebuild the object thereby reports that it is not whole.
func (t *trial) inspect(ctx context.Context, object int, o system.Object) finding {
	if o.Size >= 0 && o.Size != t.set.Object(object).Size {
		return broken
	}
	switch _, err := t.compare(ctx, object, o.Ref); {
	case err == nil:
		return whole
	case errors.Is(err, scenario.ErrWrongBytes), errors.Is(err, scenario.ErrTooShort), errors.Is(err, system.ErrTooFew):
		return broken
	case errors.Is(err, system.ErrNotFound):
		return absent
	}
	return unknown
}

// look finds out what a seemingly failed attempt has left. It adopts an object that is whole,
// and removes one that is broken.
func (t *trial) look(ctx context.Context, object int) (finding, error) {
	found, o := t.find(ctx, object)
	switch found {
	case whole:
		return whole, t.adopt(object, o)
	case broken:
		if err := scenario.Remove(ctx, t.node, o); err != nil {
			t.site.Event("note", "object not removed", fmt.Sprintf("%s: %s is incomplete, and stays until it is "+
				"stored again: %v", t.site.Use.Name, o.Ref, err), 0)
			return unknown, nil
		}
	}
	t.job(object).doubt = found == unknown
	return found, nil
}

// adopt accepts a found object as if its put had succeeded now.
func (t *trial) adopt(object int, o system.Object) error {
	job, now := t.job(object), t.sink.Now()
	job.Attempts = max(1, job.Attempts) // a power failure may have lost the attempt's record
	job.Adopted = true
	scenario.Adopt(t.node, o)
	if job.Began == 0 {
		job.Began = now
	}
	return t.accept(object, job, o.Ref, now)
}

// resolve looks at the objects that are in doubt at the end: those that were given up, and
// those that an exit condition cut off. It adopts or removes them; if it cannot decide, the
// object stays in doubt in the journal.
func (t *trial) resolve(ctx context.Context) error {
	doubted := t.unfinished(func(j *job) bool { return j.doubt })
	if len(doubted) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	var n [findings]int
	for _, object := range doubted {
		found, err := t.look(ctx, object)
		if err != nil {
			return err
		}
		n[found]++
	}
	what := fmt.Sprintf("%d attempts failed or were cut off: %d had stored their object, %d had stored a part, which was "+
		"removed, %d had stored nothing, and the result of %d is unknown", len(doubted), n[whole], n[broken], n[absent],
		n[unknown])
	if open := n[unknown]; open > 0 {
		t.notes = append(t.notes, fmt.Sprintf("it is unknown whether the system has %d of the objects whose attempts "+
			"failed or were cut off", open))
	}
	return t.event("note", "in doubt", what)
}

// resolveTimeout limits the inspection of objects that are in doubt at the end.
const resolveTimeout = time.Minute

// verify fetches the share upload.verify of the stored objects, and compares every byte.
func (t *trial) verify(ctx context.Context) error {
	if t.u.Verify == 0 {
		return nil
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(t.u.Concurrency)
	in := t.sink.Recorded()
	for job := range in.Jobs {
		if within.Err() != nil {
			break
		}
		if t.toVerify(&job) {
			group.Go(func() error {
				if within.Err() != nil { // ended while this one waited for its turn
					return nil
				}
				return t.verifyOne(within, &job)
			})
		}
	}
	fetched := group.Wait()
	return cmp.Or(fetched, context.Cause(ctx), in.Err())
}

// toVerify reports whether an object is stored, is in the sample to fetch (the same in all
// sessions), and was not fetched by an earlier session since its acceptance.
func (t *trial) toVerify(job *record.Job) bool {
	last, fetched := t.fetched[int(job.Object)]
	share := rand.New(rand.NewPCG(t.seed, uint64(job.Object))).Float64()
	return isStored(job.State) && share < float64(t.u.Verify) && !(fetched && last.at >= job.Accepted)
}

func (t *trial) verifyOne(ctx context.Context, job *record.Job) error {
	object := int(job.Object)
	op, err := t.compare(ctx, object, system.Ref(job.Ref))
	why := fmt.Sprintf("%s: %v", op.Outcome, err)
	if errors.Is(err, scenario.ErrOwnData) { // nothing was fetched
		t.mu.Lock()
		t.unread++
		t.mu.Unlock()
		why = err.Error()
	} else if recorded := t.done(op); recorded != nil || op.Outcome == record.OK || op.Outcome == record.Cancelled {
		return recorded
	}
	return t.named("violation", "object not verified", object, why)
}

// compare fetches an object, as one operation under the limits, and compares every byte with
// the set's.
func (t *trial) compare(ctx context.Context, object int, ref system.Ref) (op record.Op, err error) {
	check, err := workload.Check(t.set, object)
	if err != nil {
		return op, fmt.Errorf("%w: %w", scenario.ErrOwnData, err)
	}
	defer check.Close()
	op = record.Op{Kind: record.OpGet, Object: uint32(object), Length: t.set.Object(object).Size}
	err = scenario.Timed(ctx, t.site.Limits, t.sink.Now, &op, func(w *scenario.Operation) error {
		return t.node.Get(w.Ctx, ref, w.Comparing(func(p []byte) bool {
			_, err := check.Write(p)
			return err == nil
		}))
	})
	return op, err
}

// named records an event for an object in trouble, for at most mostNamed objects per trouble.
func (t *trial) named(kind, what string, object int, why string) error {
	t.mu.Lock()
	t.troubled[what]++
	n := t.troubled[what]
	t.mu.Unlock()
	if n > mostNamed {
		return nil
	}
	return t.event(kind, what, fmt.Sprintf("object %d, %s: %.300s", object, t.name(object), why))
}

// mostNamed limits the events for objects in the same trouble.
const mostNamed = 20

// clear removes the trial's objects from an attached system, if the experiment asks for it. A
// started system is removed as a whole.
func (t *trial) clear(ctx context.Context) error {
	if t.u.After != "remove" || !t.site.Use.Attached() {
		return nil
	}
	in := t.sink.Recorded()
	stored := func(yield func(system.Object) bool) {
		for job := range in.Jobs {
			if isStored(job.State) && !yield(system.Object{Ref: system.Ref(job.Ref), Size: job.Size}) {
				return
			}
		}
	}
	if why := scenario.RemoveEach(ctx, t.node, stored, func(system.Object) {}); why != nil {
		t.site.Event("note", "objects not removed",
			fmt.Sprintf("%s: %v; their names begin with %s", t.site.Use.Name, why, t.pre), 0)
	}
	return in.Err()
}
