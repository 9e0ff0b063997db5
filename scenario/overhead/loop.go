package overhead

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// workers has all workers do something beside each other. The first error ends it.
func (t *trial) workers(ctx context.Context, do func(ctx context.Context, worker int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for worker := range t.o.Concurrency {
		group.Go(func() {
			if err := do(ctx, worker); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// loop has every worker do so many actions, one after the other; none begins
// later than limit (0: no limit) after the loop, except for each worker's first.
// Its error is of what surrounds the operations, which have outcomes instead.
func (t *trial) loop(ctx context.Context, times func(worker int) int, limit time.Duration,
	next func(ctx context.Context, worker, n int) (action, error)) error {
	alone := t.o.Concurrency == 1
	wire, cpu := t.traffic(), scenario.SelfCPU()
	begun := time.Now()
	err := t.workers(ctx, func(ctx context.Context, worker int) error {
		for i := range times(worker) {
			if i > 0 && limit > 0 && time.Since(begun) >= limit || ctx.Err() != nil {
				break
			}
			a, err := next(ctx, worker, i)
			if err == nil {
				err = t.redial(ctx)
			}
			if err == nil {
				err = t.do(ctx, worker, a, alone)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if !alone {
		// What lies between the operations of one worker is beside those of the others.
		t.tally.cpu += scenario.SelfCPU() - cpu
		if t.silentBetween() {
			t.tally.wire += t.traffic() - wire
		} else {
			t.tally.wire = math.NaN()
		}
	}
	return err
}

// silentBetween reports whether nothing crosses the link between the operations
// of a worker: nothing is made cold, stored to be removed, or waited for.
func (t *trial) silentBetween() bool {
	_, settles := t.node.(system.Settler)
	_, cools := t.node.(system.Cooler)
	switch t.o.Operation {
	case "put", "put-dir", "update":
		return !settles
	case "get", "range", "stat":
		return !cools
	}
	return t.o.Operation == "put-durable"
}

// each is how many operations every worker does at most.
func (t *trial) each(int) int { return t.o.Count }

// redial makes the next operation begin with fresh connections, where that is asked for.
func (t *trial) redial(ctx context.Context) error {
	if t.o.Connections != "fresh" {
		return nil
	}
	d, ok := t.node.(system.Redialer)
	if !ok { // it does anyway
		return nil
	}
	return t.within(ctx, "make it connect anew", d.Redial)
}

// onlyFresh reports whether every operation connects anew anyway.
func (r *runner) onlyFresh() bool {
	return r.site.Cluster.Identity()["connections"] == "fresh"
}

// do times one action and records it. alone: nothing else crosses the client's
// interface meanwhile, and the system's account of its latest operation is this
// one's.
func (t *trial) do(ctx context.Context, worker int, a action, alone bool) error {
	op := record.Op{Kind: a.kind, Worker: uint32(worker), Object: a.object, Offset: a.offset, Length: a.length}
	var spent spent
	if alone {
		spent.wire, spent.cpu = -t.traffic(), -scenario.SelfCPU()
	}
	w, _ := scenario.Timed(ctx, t.site.Limits, func() time.Duration { return time.Since(t.sink.Epoch) }, &op, a.do)
	if alone {
		spent.wire += t.traffic()
		spent.cpu += scenario.SelfCPU()
	}
	spent.took, spent.content = time.Duration(op.LastByte-op.Start), w.ContentTime()
	if err := t.record(op, spent); err != nil || op.Outcome != record.OK {
		return err
	}
	if alone {
		t.account(ctx)
	}
	return t.conclude(ctx, a)
}

// account asks where the system says that the time of its latest operation went.
func (t *trial) account(ctx context.Context) {
	p, ok := t.node.(system.Phaser)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, phasesTimeout)
	defer cancel()
	phases, err := p.Phases(ctx)
	if err != nil {
		t.site.Event("note", "no phases", t.site.Use.Name+": "+err.Error(), 0)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.account(phases)
}

// phasesTimeout bounds asking a system for its account of an operation.
const phasesTimeout = 10 * time.Second

// traffic is what the client's interface has carried, both ways; NaN where it is
// not ours alone.
func (t *trial) traffic() float64 {
	if t.site.Client == nil {
		return math.NaN()
	}
	rx, tx := t.site.Client.Traffic()
	return rx + tx
}
