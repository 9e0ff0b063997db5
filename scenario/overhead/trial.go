package overhead

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// trial is one trial under way.
type trial struct {
	*runner
	cell experiment.Cell
	o    *experiment.Overhead
	seed uint64 // of the content
	sink scenario.Sink
	log  *scenario.OpLog

	directories []system.Ref // one for each worker, for put-dir

	mu    sync.Mutex
	tally tally
	made  []object // stored in this trial

	unsettled atomic.Bool // the trial has given up waiting until objects are durable
}

// Trial implements Runner.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64,
	sink scenario.Sink) (scenario.Load, error) {
	t := &trial{
		runner: r, cell: cell, o: cell.Overhead, sink: sink, log: scenario.NewOpLog(sink.Block),
		seed:  scenario.MixSeed(seed, "content", 0),
		tally: tally{phases: map[string][]float64{}},
	}
	if r.site.Use.Attached() {
		// An attached system outlives the run: what an earlier run of the same
		// experiment has stored there must not be found again.
		t.seed = scenario.MixSeed(seed, "content", sink.Epoch.UnixNano())
	}
	var load scenario.Load
	var err error
	if t.o.Operation == "fill" {
		load, err = t.fill(ctx)
	} else {
		load, err = t.repeat(ctx)
	}
	if e := t.log.Flush(); err == nil {
		err = e
	}
	if err == nil {
		err = ctx.Err()
	}
	load.Notes = append(load.Notes, r.notes...)
	return load, err
}

// repeat does the cell's operation again and again.
func (t *trial) repeat(ctx context.Context) (scenario.Load, error) {
	defer t.remove(ctx)
	if err := t.directory(ctx); err != nil {
		return scenario.Load{}, err
	}
	if err := t.prime(ctx); err != nil {
		return scenario.Load{}, err
	}
	var before *inventory
	if t.stores() {
		var err error
		if before, err = t.inventory(ctx); err != nil {
			return scenario.Load{}, err
		}
	}
	cpu := scenario.SelfCPU()
	if err := t.loop(ctx, t.each, t.o.Time.Std(), t.action); err != nil {
		return t.load(cpu), err
	}
	load := t.load(cpu)
	if before != nil && t.tally.failed == 0 && !t.unsettled.Load() {
		// What failed may have left something behind: then what one object takes
		// is not known.
		after, err := t.inventory(ctx)
		if err != nil {
			return load, err
		}
		load.Details = append(load.Details, storedDetails(before, after)...)
	}
	return load, nil
}

// stores reports whether the operation adds objects.
func (t *trial) stores() bool {
	switch t.o.Operation {
	case "put", "put-durable", "put-dir":
		return true
	}
	return false
}

// directory makes a fresh one for each worker: what entering an object costs may
// depend on how many are there, and two at once would be in each other's way.
func (t *trial) directory(ctx context.Context) error {
	if t.o.Operation != "put-dir" {
		return nil
	}
	d := t.node.(system.Directory)
	for i := range t.o.Concurrency {
		err := t.within(ctx, "make a directory", func(ctx context.Context) error {
			ref, err := d.MakeDirectory(ctx, fmt.Sprintf("plimsoll-%016x-%d", t.seed, i))
			t.Add(ref)
			t.directories = append(t.directories, ref)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prime does each worker's operation once, untimed, so that the connections
// that it keeps are there. How it ends does not matter: what is wrong shows in
// the operations that are timed.
func (t *trial) prime(ctx context.Context) error {
	if t.o.Connections != "keep" {
		return nil
	}
	return t.workers(ctx, func(ctx context.Context, worker int) error {
		a, err := t.action(ctx, worker, -1)
		if err != nil {
			return err
		}
		w := scenario.Watch(ctx, t.site.Limits)
		err = a.do(w)
		if w.Stop(); err != nil {
			return nil
		}
		return t.conclude(ctx, a)
	})
}

// conclude does, untimed, what follows an action that ended well.
func (t *trial) conclude(ctx context.Context, a action) error {
	if a.after != nil {
		a.after()
	}
	if a.accepted == nil {
		return nil
	}
	return t.settle(ctx, a.accepted())
}

// content of the n-th action of a worker, never the same twice; -1: to prime.
func (t *trial) content(worker, n int) workload.Content {
	return workload.Content{Seed: t.seed, Index: uint64(worker)<<32 | uint64(n+1), Size: int64(t.cell.Data.Size)}
}

func (t *trial) name(c workload.Content) string {
	return fmt.Sprintf("plimsoll-%016x-%x", c.Seed, c.Index)
}
