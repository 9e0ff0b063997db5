package overhead

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// patience is how long it is worth while to wait for objects to become durable.
type patience struct {
	lost    atomic.Bool // waiting was in vain last time
	once    sync.Once   // that is noted once
	pending []object    // added by fill, and not known to be durable
}

// settle waits until an object has its full redundancy, where accepted is less
// than that, and reports whether it came to it. Else what still goes out for it
// would share the link with the next operation, and be found in its inventory.
// An error is the end of ctx: that something does not settle is noted, once.
func (r *runner) settle(ctx context.Context, ref system.Ref) (bool, error) {
	s, ok := r.node.(system.Settler)
	if !ok {
		return true, nil
	}
	limit := r.site.Limits.Deadline.Std()
	if r.patience.lost.Load() {
		limit = min(limit, scenario.SettleBriefly)
	}
	begun := time.Now()
	err := r.withinTime(ctx, limit, "wait until an object is durable",
		func(ctx context.Context) error { return s.Settle(ctx, ref) })
	if err != nil && ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	r.patience.lost.Store(err != nil)
	if err != nil {
		r.patience.once.Do(func() {
			r.site.Event("note", "accepted objects do not become durable", err.Error(), time.Since(begun))
		})
	}
	return err == nil, nil
}

// settlePrepared waits until what was prepared is durable, so that none of it is
// on the link in a trial. It stops where that is in vain.
func (r *runner) settlePrepared(ctx context.Context) error {
	for _, set := range r.sets {
		for _, o := range set {
			if settled, err := r.settle(ctx, o.ref); err != nil || !settled {
				return err
			}
		}
	}
	return nil
}

// settle is the runner's, until it was in vain once in this trial.
func (t *trial) settle(ctx context.Context, ref system.Ref) error {
	if t.unsettled.Load() {
		return nil
	}
	settled, err := t.runner.settle(ctx, ref)
	if !settled {
		t.unsettled.Store(true)
	}
	return err
}

// settleFilled waits until all that fill has added is durable, in earlier trials
// too: the reads that follow shall have the link for themselves, and the
// inventory shall hold all of it. It stops where that is in vain.
func (t *trial) settleFilled(ctx context.Context) error {
	for len(t.patience.pending) > 0 {
		if err := t.settle(ctx, t.patience.pending[0].ref); err != nil || t.unsettled.Load() {
			return err
		}
		t.patience.pending = t.patience.pending[1:]
	}
	return nil
}

// noteUnsettled is what a trial says that has given up waiting.
const noteUnsettled = "accepted objects did not become durable: their upload may share the link with later " +
	"operations, and neither bytes on the wire nor what the servers hold are reported"
