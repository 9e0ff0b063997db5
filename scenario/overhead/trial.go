package overhead

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// trial is one running trial.
type trial struct {
	*runner
	cell experiment.Cell
	o    *experiment.Overhead
	seed uint64 // of the content
	sink scenario.Sink

	directories []system.Ref // one for each worker, for put-dir
	tally       *scenario.Tally
	begun       float64         // CPU seconds of this process at the start of the trial, then of its operations
	facts       []record.Detail // in addition to those of every trial

	cpu    float64              // CPU seconds of this process in all operations
	wire   float64              // bytes through the client's interface in them, without concurrency; NaN: not counted
	phases map[string][]float64 // seconds, by phase
	order  []string             // of the phases

	mu   sync.Mutex
	made []object // stored in this trial

	unsettled atomic.Bool // the trial gave up waiting until objects are durable
}

// Trial implements Runner.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64,
	sink scenario.Sink) (scenario.Load, error) {
	t := &trial{
		runner: r, cell: cell, o: cell.Overhead, sink: sink, seed: scenario.MixSeed(seed, "content", 0),
		tally: scenario.NewTally(sink), phases: map[string][]float64{}, begun: timing.SelfCPU(),
	}
	if r.site.Use.Attached() {
		// An attached system outlives the run: it must not find the content that an earlier run of
		// the same experiment stored.
		t.seed = scenario.MixSeed(seed, "content", sink.Epoch.UnixNano())
	}
	defer t.remove(ctx)
	do := t.repeat
	if t.o.Operation == "fill" {
		do = t.fill
	}
	before, err := do(ctx)
	load := t.load()
	// After failures or without durability, the bytes per object are unknown.
	if err == nil && before != nil && t.tally.Failed == 0 && !t.unsettled.Load() {
		var after []record.Detail
		after, err = t.inventory(ctx, record.DetailHeldAfter)
		load.Details = slices.Concat(load.Details, before, after)
	}
	return load, cmp.Or(err, t.tally.Flush(), ctx.Err())
}

func (t *trial) now() time.Duration { return time.Since(t.sink.Epoch) }

// repeat executes the cell's operation repeatedly. If the operation adds objects, before is what
// the servers held before.
func (t *trial) repeat(ctx context.Context) (before []record.Detail, err error) {
	if err = t.directory(ctx); err == nil {
		err = t.prime(ctx)
	}
	if err == nil && slices.Contains([]string{"put", "put-durable", "put-dir"}, t.o.Operation) {
		before, err = t.inventory(ctx, record.DetailHeldBefore)
	}
	if err != nil {
		return nil, err
	}
	t.begun = timing.SelfCPU()
	return before, t.loop(ctx, t.o.Count*t.o.Concurrency, t.o.Time.Std(), t.action)
}

// directory creates a fresh directory for each worker: the cost of adding an object may depend
// on the number of entries, and concurrent workers would block each other.
func (t *trial) directory(ctx context.Context) error {
	if t.o.Operation != "put-dir" {
		return nil
	}
	d := t.node.(system.Directory)
	for i := range t.o.Concurrency {
		err := t.within(ctx, "make a directory", func(ctx context.Context) error {
			name := fmt.Sprintf("plimsoll-%016x-%d", t.seed, i)
			ref, err := d.MakeDirectory(ctx, name)
			t.Add(name, ref)
			t.directories = append(t.directories, ref)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prime executes each worker's operation once, untimed, so that the connections to keep exist.
// Failures do not matter here: they will show in the timed operations.
func (t *trial) prime(ctx context.Context) error {
	if t.o.Connections != "keep" {
		return nil
	}
	return scenario.Workers(ctx, t.o.Concurrency, func(ctx context.Context, worker int) error {
		a, err := t.action(ctx, worker, -1)
		if err != nil {
			return err
		}
		op := record.Op{Length: a.length}
		if scenario.Timed(ctx, t.site.Limits, t.now, &op, a.do) != nil || a.after == nil {
			return nil
		}
		return a.after(ctx)
	})
}

// content returns the unique content of a worker's n-th action; n = -1 is for prime. Its index is
// recorded in 32 bits.
func (t *trial) content(worker, n int) workload.Content {
	return workload.Content{Seed: t.seed, Index: uint64((n+1)*t.o.Concurrency + worker), Size: int64(t.cell.Data.Size)}
}

func (t *trial) name(c workload.Content) string {
	return fmt.Sprintf("plimsoll-%016x-%x", c.Seed, c.Index)
}

// loop divides a number of actions among the workers, each of which does its share one after the
// other. None begins later than limit (0: no limit) after the start of the loop, except for each
// worker's first. A failed operation is no error but has an outcome; errors come from the steps
// around operations.
func (t *trial) loop(ctx context.Context, actions int, limit time.Duration,
	next func(ctx context.Context, worker, n int) (action, error)) error {
	alone := t.o.Concurrency == 1
	cpu, begun := timing.SelfCPU(), time.Now()
	err := scenario.Workers(ctx, t.o.Concurrency, func(ctx context.Context, worker int) error {
		for i := range (actions - worker + t.o.Concurrency - 1) / t.o.Concurrency {
			if i > 0 && limit > 0 && time.Since(begun) >= limit || ctx.Err() != nil {
				break
			}
			a, err := next(ctx, worker, i)
			// Systems that cannot redial open new connections for each operation.
			if d, ok := t.node.(system.Redialer); ok && t.o.Connections == "fresh" && err == nil {
				err = t.within(ctx, "make it connect anew", d.Redial)
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
		// While one worker is between operations, others are within theirs: count the whole loop.
		t.cpu += timing.SelfCPU() - cpu
	}
	return err
}

// do times one action and records it. alone means that nothing else crosses the client's
// interface meanwhile, and that the system's report on its latest operation is about this one.
func (t *trial) do(ctx context.Context, worker int, a action, alone bool) error {
	op := record.Op{Kind: a.kind, Worker: uint32(worker), Object: a.object, Offset: a.offset, Length: a.length}
	if alone {
		t.wire -= t.traffic()
		t.cpu -= timing.SelfCPU()
	}
	_ = scenario.Timed(ctx, t.site.Limits, t.now, &op, a.do)
	if alone {
		t.wire += t.traffic()
		t.cpu += timing.SelfCPU()
	}
	if err := t.tally.Add(op); err != nil || op.Outcome != record.OK {
		return err
	}
	if alone {
		t.account(ctx)
	}
	if a.after == nil {
		return nil
	}
	return a.after(ctx)
}

// account adds the times of the phases that the system reports for its latest operation.
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
	for _, phase := range phases {
		if t.phases[phase.Name] == nil {
			t.order = append(t.order, phase.Name)
		}
		t.phases[phase.Name] = append(t.phases[phase.Name], phase.Took.Seconds())
	}
}

// phasesTimeout limits asking a system for the phases of an operation.
const phasesTimeout = 10 * time.Second

// traffic returns the bytes through the client's interface in both directions, or NaN if the run
// has no interface of its own.
func (t *trial) traffic() float64 {
	if t.site.Client == nil {
		return math.NaN()
	}
	rx, tx := t.site.Client.Traffic()
	return rx + tx
}

// settle calls the runner's settle, unless that was in vain before in this trial.
func (t *trial) settle(ctx context.Context, o object) error {
	if t.unsettled.Load() {
		return nil
	}
	left, err := t.runner.settle(ctx, o)
	if len(left) > 0 {
		t.unsettled.Store(true)
	}
	return err
}

// noteUnsettled is the note of a trial that gave up waiting.
const noteUnsettled = "accepted objects did not become durable: their upload may share the link with later " +
	"operations, and neither bytes on the wire nor what the servers hold are reported"

// stored notes an object that the trial stored.
func (t *trial) stored(o object) {
	t.keep(1, o.content.Size)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, o)
}

// remove deletes the objects of the trial.
func (t *trial) remove(ctx context.Context) {
	made := make([]system.Object, len(t.made))
	for i, o := range t.made {
		made[i] = system.Object{Ref: o.ref, Size: o.content.Size}
	}
	t.site.RemoveMade(ctx, t.node, made, t.removed)
}

// load returns the facts about the load generator.
func (t *trial) load() scenario.Load {
	load := t.tally.Load(timing.SelfCPU()-t.begun, t.cpu, t.o.Concurrency)
	load.Details = t.facts
	if t.o.Concurrency == 1 && !math.IsNaN(t.wire) {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadWire, t.wire))
	}
	for _, name := range t.order {
		load.Details = append(load.Details, record.Detail{Kind: record.DetailPhase, Name: name,
			Value: stats.Median(t.phases[name])})
	}
	if t.unsettled.Load() {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadGaveUp, 1))
		load.Notes = append(load.Notes, noteUnsettled)
	}
	return load
}
