package overhead

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// patience is how long it is worth while to wait for objects to become durable.
type patience struct {
	mu   sync.Mutex
	lost bool // waiting was in vain last time
	told bool // that it was, once or more

	pending []system.Ref // added by fill, and not known to be durable
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
	r.patience.mu.Lock()
	if r.patience.lost {
		limit = min(limit, scenario.SettleBriefly)
	}
	r.patience.mu.Unlock()
	begun := time.Now()
	err := r.withinTime(ctx, limit, "wait until an object is durable", func(ctx context.Context) error { return s.Settle(ctx, ref) })
	if err != nil && ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	r.patience.mu.Lock()
	defer r.patience.mu.Unlock()
	r.patience.lost = err != nil
	if err != nil && !r.patience.told {
		r.patience.told = true
		r.site.Event("note", "accepted objects do not become durable", err.Error(), time.Since(begun))
	}
	return err == nil, nil
}

// settlePrepared waits until what was prepared is durable, so that none of it is
// on the link in a trial. It stops where that is in vain.
func (r *runner) settlePrepared(ctx context.Context) error {
	sets := slices.Concat(slices.Collect(maps.Values(r.sized)), [][]object{r.ranged}, slices.Collect(maps.Values(r.mutable)))
	for _, o := range slices.Concat(sets...) {
		if settled, err := r.settle(ctx, o.ref); err != nil || !settled {
			return err
		}
	}
	return nil
}

// settle is the runner's, until it was in vain once in this trial.
func (t *trial) settle(ctx context.Context, ref system.Ref) error {
	t.mu.Lock()
	unsettled := t.unsettled
	t.mu.Unlock()
	if unsettled {
		return nil
	}
	settled, err := t.runner.settle(ctx, ref)
	if !settled {
		t.mu.Lock()
		t.unsettled = true
		t.mu.Unlock()
	}
	return err
}

// settleFilled waits until all that fill has added is durable, in earlier trials
// too: the reads that follow shall have the link for themselves, and the
// inventory shall hold all of it. It stops where that is in vain.
func (t *trial) settleFilled(ctx context.Context) error {
	for len(t.patience.pending) > 0 {
		if err := t.settle(ctx, t.patience.pending[0]); err != nil || t.unsettled {
			return err
		}
		t.patience.pending = t.patience.pending[1:]
	}
	return nil
}

// noteUnsettled is what a trial says that has given up waiting.
const noteUnsettled = "accepted objects did not become durable: their upload may share the link with later operations, and neither bytes on the wire nor what the servers hold are reported"
