package overhead

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// object is a stored object of the run with its content.
type object struct {
	ref     system.Ref
	content workload.Content
}

// runner is one prepared system.
type runner struct {
	*scenario.CreatedObjects
	site scenario.Site
	node system.Store

	sets   map[set][]object   // objects that cells read or change
	filled map[int64][]object // objects that fill added, by size
	before []record.Detail    // inventory before the first fill; nil: no fill, or not reported by the system
	held   atomic.Int64       // number of the run's objects in the system
	bytes  atomic.Int64       // their file bytes

	inVain  atomic.Bool // the last wait for durability was in vain
	pending []object    // added by fill, not known to be durable
}

// set identifies a set of objects of one size that cells read or change.
type set struct {
	purpose string // "read", "range", "mutable"
	size    experiment.Bytes
}

// wantOf returns the set that a cell needs, and how many objects of it; 0: none.
func wantOf(c experiment.Cell) (s set, n int) {
	o := c.Overhead
	// Concurrent operations use different objects, since one must not read what another makes
	// cold. As many again are for prime, see pick.
	n = max(c.Data.Objects, o.Concurrency) + o.Concurrency
	switch o.Operation {
	case "get", "stat":
		return set{"read", c.Data.Size}, n
	case "range":
		return set{"range", o.RangeOf}, n
	case "update":
		return set{"mutable", c.Data.Size}, o.Concurrency
	}
	return set{}, 0
}

// wants returns the sets that cells need, each with the largest number of objects of any cell.
func wants(cells []experiment.Cell) map[set]int {
	all := map[set]int{}
	for _, c := range cells {
		if s, n := wantOf(c); n > 0 {
			all[s] = max(all[s], n)
		}
	}
	return all
}

// Prepares implements Scenario.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	for s, n := range wants(cells) {
		objects += int64(n)
		bytes += int64(n) * int64(s.size)
	}
	return objects, bytes
}

// Prepare stores the objects that the cells read and change, in the system's quickest way, since
// this is not measured.
func (Scenario) Prepare(ctx context.Context, site scenario.Site, cells []experiment.Cell) (scenario.Runner, error) {
	node := site.Cluster.Nodes()[0].(system.Store)
	r := &runner{
		CreatedObjects: scenario.NewCreatedObjects(site.Use, node), site: site, node: node,
		sets: map[set][]object{}, filled: map[int64][]object{},
	}
	begun := time.Now()
	needed := wants(cells)
	for _, c := range cells { // in the order of cells, not of the map
		s, _ := wantOf(c)
		if err := r.prepare(ctx, s, needed[s]); err != nil {
			return r, err
		}
		delete(needed, s)
	}
	for _, set := range r.sets { // so that no upload uses the link in a trial
		if _, err := r.settle(ctx, set...); err != nil {
			return r, err
		}
	}
	if slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Overhead.Operation == "fill" }) {
		var err error
		if r.before, err = r.inventory(ctx, record.DetailHeldBefore); err != nil {
			return r, err
		}
	}
	site.Event("phase", "data ready", fmt.Sprintf("%s: %d objects", site.Use.Name, r.held.Load()), time.Since(begun))
	return r, nil
}

// store stores an object untimed, with [system.Seed] or [system.PutMutable].
func (r *runner) store(ctx context.Context, name string, c workload.Content, store func(context.Context, system.Store,
	string, int64, io.Reader) (system.Ref, error)) (system.Ref, error) {
	ref, err := store(ctx, r.node, name, c.Size, c.Reader())
	r.AddPut(name, ref)
	if err != nil {
		return ref, fmt.Errorf("%s: store object %s (%s): %w", r.site.Use.Name, name, experiment.Bytes(c.Size), err)
	}
	r.keep(1, c.Size)
	return ref, nil
}

// prepare stores one set.
func (r *runner) prepare(ctx context.Context, s set, n int) error {
	store := system.Seed
	if s.purpose == "mutable" {
		store = system.PutMutable
	}
	seed := scenario.MixSeed(r.site.Seed, s.purpose, int64(s.size)) // different content in each set
	for i := range n {
		c := workload.Content{Seed: seed, Index: uint64(i), Size: int64(s.size)}
		name := fmt.Sprintf("plimsoll-%s-%d-%d-%06d", s.purpose, r.site.Seed, c.Size, i)
		ref, err := r.store(ctx, name, c, store)
		if err != nil {
			return err
		}
		r.sets[s] = append(r.sets[s], object{ref, c})
	}
	return nil
}

// keep adds to the counts of the run's objects and bytes in the system; negative: removes.
func (r *runner) keep(objects, bytes int64) {
	r.held.Add(objects)
	r.bytes.Add(bytes)
}

// removed notes that an object was removed.
func (r *runner) removed(o system.Object) {
	r.Removed(o.Ref)
	r.keep(-1, -o.Size)
}

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

// within executes a step outside of operations, under the deadline of an operation. Its error
// names the step, and the deadline if that ended it.
func (r *runner) within(ctx context.Context, what string, do func(context.Context) error) error {
	limit := r.site.Limits.Deadline.Std()
	step, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(step)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && step.Err() != nil {
		err = fmt.Errorf("it took longer than %s: %w (%w)", limit, context.DeadlineExceeded, err)
	}
	return fmt.Errorf("%s: %s: %w", r.site.Use.Name, what, err)
}
