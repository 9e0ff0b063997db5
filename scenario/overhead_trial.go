package scenario

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/workload"
)

// overheadTrial is one trial under way.
type overheadTrial struct {
	*overheadRunner
	cell experiment.Cell
	o    *experiment.ResolvedOverhead
	seed uint64 // of the content
	sink Sink

	directories []system.Ref // one for each worker, for put-dir

	mu     sync.Mutex
	ops    []record.Op                 // not yet with the sink
	sent   time.Time                   // when the sink last had some
	count  int64                       // operations timed
	moved  int64                       // their bytes
	first  time.Time                   // start of the first
	last   time.Time                   // end of the last
	busy   time.Duration               // sum of their times
	took   map[record.OpKind][]float64 // seconds of those that were ok
	wire   float64                     // bytes through the client's interface; NaN: not counted
	phases map[string][]float64        // seconds, by phase
	order  []string                    // of the phases
	made   []object                    // stored in this trial
	failed int64                       // operations that were not ok
}

// mix makes a seed of its own for each purpose.
func mix(seed uint64, purpose string, n int64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/overhead/%s/%d", seed, purpose, n)
	return h.Sum64()
}

// Trial implements Runner.
func (r *overheadRunner) Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink Sink) (Load, error) {
	t := &overheadTrial{
		overheadRunner: r, cell: cell, o: cell.Overhead, sink: sink, sent: time.Now(),
		seed: mix(seed, "content", 0), took: map[record.OpKind][]float64{}, phases: map[string][]float64{},
	}
	if r.site.Use.Mode == string(system.Attach) {
		// An attached system outlives the run: what an earlier run of the same
		// experiment has stored there must not be found again.
		t.seed = mix(seed, "content", sink.Epoch.UnixNano())
	}
	if err := r.tooSlow(cell); err != nil {
		return Load{}, err
	}
	var load Load
	var err error
	if t.o.Operation == "fill" {
		load, err = t.fill(ctx)
	} else {
		load, err = t.repeat(ctx)
	}
	if e := t.flush(); err == nil {
		err = e
	}
	if err == nil {
		err = ctx.Err()
	}
	load.Notes = append(load.Notes, r.notes...)
	return load, err
}

// repeat does the cell's operation again and again.
func (t *overheadTrial) repeat(ctx context.Context) (Load, error) {
	defer t.remove(ctx)
	if err := t.directory(ctx); err != nil {
		return Load{}, err
	}
	if err := t.prime(ctx); err != nil {
		return Load{}, err
	}
	before, err := t.stored(ctx)
	if err != nil {
		return Load{}, err
	}
	cpu := selfCPU()
	if err := t.loop(ctx, t.each, t.o.Time.Std(), t.action); err != nil {
		return t.load(cpu), err
	}
	load := t.load(cpu)
	t.remember()
	if before != nil && t.failed == 0 {
		// What failed may have left something behind: then what one object takes
		// cannot be told.
		if err := t.settle(ctx); err != nil {
			load.Notes = append(load.Notes, "what the servers hold was not measured: "+err.Error())
			return load, nil
		}
		after, err := t.stored(ctx)
		if err != nil {
			return load, err
		}
		maps.Copy(load.Metrics, storedMetrics(before, after))
	}
	return load, nil
}

// stores reports whether the operation adds objects.
func (t *overheadTrial) stores() bool {
	switch t.o.Operation {
	case "put", "put-durable", "put-dir":
		return true
	}
	return false
}

// stored is the inventory before and after operations that add objects.
func (t *overheadTrial) stored(ctx context.Context) (*inventory, error) {
	if !t.stores() {
		return nil, nil
	}
	return t.inventory(ctx)
}

// settle waits until everything stored has its full redundancy, where accepted
// is less than that.
func (t *overheadTrial) settle(ctx context.Context) error {
	s, ok := t.node.(system.Settler)
	if !ok || t.o.Operation == "put-durable" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.site.Limits.Deadline.Std())
	defer cancel()
	for _, o := range t.made {
		if err := s.Settle(ctx, o.ref); err != nil {
			return err
		}
	}
	return nil
}

// directory makes a fresh one for each worker: what entering an object costs may
// depend on how many are there, and two at once would be in each other's way.
func (t *overheadTrial) directory(ctx context.Context) error {
	if t.o.Operation != "put-dir" {
		return nil
	}
	d, ok := t.node.(system.Directory)
	if !ok {
		return fmt.Errorf("%s: it has no directories", t.site.Use.Name)
	}
	for i := range t.o.Concurrency {
		ref, err := d.MakeDirectory(ctx, fmt.Sprintf("plimsoll-%016x-%d", t.seed, i))
		if err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
		t.own(ref)
		t.directories = append(t.directories, ref)
	}
	return nil
}

// prime does each worker's operation once, untimed, so that the connections
// that it keeps are there. How it ends does not matter: what is wrong shows in
// the operations that are timed.
func (t *overheadTrial) prime(ctx context.Context) error {
	if t.o.Connections != "keep" {
		return nil
	}
	var group sync.WaitGroup
	errs := make([]error, t.o.Concurrency)
	for worker := range t.o.Concurrency {
		group.Go(func() {
			a, err := t.action(ctx, worker, -1)
			if err != nil {
				errs[worker] = err
				return
			}
			w := watch(ctx, t.site.Limits)
			err = a.do(w)
			w.stop()
			if err == nil && a.after != nil {
				a.after()
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// loop has every worker do so many actions, one after the other; none begins
// later than limit (0: no limit) after the loop, except for each worker's first.
// Its error is of what surrounds the operations, which have outcomes instead.
func (t *overheadTrial) loop(ctx context.Context, times func(worker int) int, limit time.Duration, next func(ctx context.Context, worker, n int) (action, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alone := t.o.Concurrency == 1
	before := t.traffic()
	begun := time.Now()
	var group sync.WaitGroup
	for worker := range t.o.Concurrency {
		group.Go(func() {
			for i := range times(worker) {
				if i > 0 && limit > 0 && time.Since(begun) >= limit || ctx.Err() != nil {
					return
				}
				a, err := next(ctx, worker, i)
				if err == nil {
					err = t.redial(ctx)
				}
				if err == nil {
					err = t.do(ctx, worker, a, alone)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	if !alone {
		t.wire += t.traffic() - before
	}
	return context.Cause(ctx)
}

// each is how many operations every worker does at most.
func (t *overheadTrial) each(int) int { return t.o.Count }

// redial makes the next operation begin with fresh connections, where that is asked for.
func (t *overheadTrial) redial(ctx context.Context) error {
	if t.o.Connections != "fresh" {
		return nil
	}
	d, ok := t.node.(system.Redialer)
	if !ok {
		if len(t.notes) > 0 {
			return nil // it has no other connections
		}
		return fmt.Errorf("%s: it cannot be made to connect anew", t.site.Use.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, t.site.Limits.Deadline.Std())
	defer cancel()
	if err := d.Redial(ctx); err != nil {
		return fmt.Errorf("%s: make it connect anew: %w", t.site.Use.Name, err)
	}
	return nil
}

// do times one action and records it. alone: nothing else crosses the client's
// interface meanwhile, and the system's account of its latest operation is this
// one's.
func (t *overheadTrial) do(ctx context.Context, worker int, a action, alone bool) error {
	w := watch(ctx, t.site.Limits)
	wire := math.NaN()
	if alone {
		wire = t.traffic()
	}
	start := time.Now()
	err := a.do(w)
	end := time.Now()
	cause := w.stop()
	if alone {
		wire = t.traffic() - wire
	}
	op := record.Op{
		Kind: a.kind, Worker: uint32(worker), Object: a.object, Offset: a.offset, Length: a.length, Bytes: w.bytes(),
		Start: t.ns(start), LastByte: t.ns(end),
	}
	op.Intended = op.Start
	if first := w.firstByte(); !first.IsZero() {
		op.FirstByte = min(t.ns(first), op.LastByte)
	}
	op.Outcome, op.Class, op.Status = outcomeOf(err, cause)
	switch {
	case a.wrong != nil && a.wrong():
		op.Outcome, op.Class = record.WrongBytes, ""
	case op.Outcome == record.OK && op.Bytes < op.Length && !a.sends:
		op.Outcome = record.Truncated
	case op.Outcome == record.OK && op.Bytes != op.Length:
		op.Outcome, op.Class = record.Error, "accepted without reading all of it"
	}
	if op.Outcome == record.OK && a.after != nil {
		a.after()
	}
	if ctx.Err() != nil && op.Outcome == record.Cancelled {
		// Another worker's trouble or the user has ended the trial.
		return t.record(op, end.Sub(start), wire)
	}
	if alone && op.Outcome == record.OK {
		t.account(ctx)
	}
	return t.record(op, end.Sub(start), wire)
}

// ns is a time on the trial's clock; 0 means none there.
func (t *overheadTrial) ns(at time.Time) int64 { return max(1, at.Sub(t.sink.Epoch).Nanoseconds()) }

// account asks where the system says that the time of its latest operation went.
func (t *overheadTrial) account(ctx context.Context) {
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
	for _, phase := range phases {
		if t.phases[phase.Name] == nil {
			t.order = append(t.order, phase.Name)
		}
		t.phases[phase.Name] = append(t.phases[phase.Name], phase.Took.Seconds())
	}
}

// phasesTimeout bounds asking a system for its account of an operation.
const phasesTimeout = 10 * time.Second

// record takes one operation.
func (t *overheadTrial) record(op record.Op, took time.Duration, wire float64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ops = append(t.ops, op)
	t.count++
	t.moved += op.Bytes
	t.busy += took
	if t.o.Concurrency == 1 {
		t.wire += wire
	}
	if op.Outcome == record.OK {
		t.took[op.Kind] = append(t.took[op.Kind], took.Seconds())
	} else {
		t.failed++
	}
	start, end := t.sink.Epoch.Add(time.Duration(op.Start)), t.sink.Epoch.Add(time.Duration(op.LastByte))
	if t.first.IsZero() || start.Before(t.first) {
		t.first = start
	}
	if end.After(t.last) {
		t.last = end
	}
	if t.sink.Progress != nil {
		t.sink.Progress(t.count, t.moved)
	}
	if len(t.ops) >= record.BlockSize || time.Since(t.sent) > flushOpsEvery {
		return t.send()
	}
	return nil
}

// flushOpsEvery is how long operations may wait before they are recorded.
const flushOpsEvery = time.Second

func (t *overheadTrial) flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.send()
}

func (t *overheadTrial) send() error {
	if len(t.ops) == 0 {
		return nil
	}
	err := t.sink.Block(record.AppendBlock(nil, t.ops))
	t.ops, t.sent = t.ops[:0], time.Now()
	return err
}

// load is what the trial says of itself. cpu is this process's at its beginning.
func (t *overheadTrial) load(cpu float64) Load {
	load := Load{Seconds: t.last.Sub(t.first).Seconds(), CPU: selfCPU() - cpu, Metrics: map[string]float64{}}
	if load.Seconds > 0 {
		load.AchievedRate = float64(t.count) / load.Seconds
	}
	if t.count > 0 && !math.IsNaN(t.wire) {
		load.Metrics["wire_bytes"] = t.wire / float64(t.count)
	}
	if t.busy > 0 {
		load.Metrics["ops_rate"] = float64(t.count-t.failed) / t.busy.Seconds() * float64(t.o.Concurrency)
	}
	for _, name := range t.order {
		load.Details = append(load.Details, record.Detail{Kind: record.DetailPhase, Name: name, Value: median(t.phases[name])})
	}
	return load
}

// traffic is what the client's interface has carried, both ways; NaN where it is
// not ours alone.
func (t *overheadTrial) traffic() float64 {
	c, ok := t.site.Client.(testbed.Counted)
	if !ok {
		return math.NaN()
	}
	rx, tx := c.Traffic()
	return rx + tx
}

// made are objects that the trial has stored.
func (t *overheadTrial) store(o object) {
	t.keep(1, o.content.Size)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, o)
}

// remove deletes what the trial has stored, where the system can, so that disks
// do not fill. It is bounded, and what it cannot remove is said.
func (t *overheadTrial) remove(ctx context.Context) {
	d, ok := t.node.(system.Deleter)
	if !ok || len(t.made) == 0 {
		return
	}
	if ctx.Err() != nil && t.site.Use.Mode != string(system.Attach) {
		return // the whole deployment goes
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	for i, o := range t.made {
		if err := d.Delete(ctx, o.ref); err != nil {
			t.site.Event("note", "objects not removed", fmt.Sprintf("%s: %d of %d: %v", t.site.Use.Name, len(t.made)-i, len(t.made), err), 0)
			return
		}
		t.gone(o.ref)
		t.keep(-1, -o.content.Size)
	}
	t.made = nil
}

// removeTimeout bounds the removal of one trial's objects.
const removeTimeout = time.Minute

// content of the n-th action of a worker, never the same twice; -1: to prime.
func (t *overheadTrial) content(worker, n int) workload.Content {
	return workload.Content{Seed: t.seed, Index: uint64(worker)<<32 | uint64(n+1), Size: int64(t.cell.Data.Size)}
}

func (t *overheadTrial) name(c workload.Content) string {
	return fmt.Sprintf("plimsoll-%016x-%x", c.Seed, c.Index)
}

// selfCPU is the CPU seconds of this process.
func selfCPU() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// median of values, which is not empty.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
