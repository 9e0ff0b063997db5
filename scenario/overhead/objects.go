package overhead

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// object is one of ours in a system, with what it holds.
type object struct {
	ref     system.Ref
	content workload.Content
}

// runner is one prepared system.
type runner struct {
	*scenario.CreatedObjects
	site  scenario.Site
	node  system.Store
	notes []string

	sized   map[int64][]object // by size, for get and stat
	ranged  []object           // of range_of, for range
	mutable map[int64][]object // by size, for update

	filled map[int64][]object // by size, what fill has added
	before *inventory         // before the first fill; nil: there is no fill, or the system does not report it
	held   atomic.Int64       // objects of ours that are there
	bytes  atomic.Int64       // their file bytes

	slow     map[slowKey]slowest
	patience patience
}

// want is a set of objects of one size that cells read or change.
type want struct {
	purpose string // "read", "range", "mutable", "fill"
	size    experiment.Bytes
	n       int
}

// wants are the sets that cells need, each once.
func wants(cells []experiment.Cell) []want {
	var all []want
	need := func(purpose string, size experiment.Bytes, n int) {
		for i, w := range all {
			if w.purpose == purpose && w.size == size {
				all[i].n = max(w.n, n)
				return
			}
		}
		all = append(all, want{purpose, size, n})
	}
	for _, c := range cells {
		o := c.Overhead
		// Operations under way at once have an object each: what one makes cold, the
		// other must not read. As many again are there to prime with, see pick.
		n := max(c.Data.Objects, o.Concurrency) + o.Concurrency
		switch o.Operation {
		case "get", "stat":
			need("read", c.Data.Size, n)
		case "range":
			need("range", o.RangeOf, n)
		case "update":
			need("mutable", c.Data.Size, o.Concurrency)
		case "fill":
			need("fill", c.Data.Size, 1)
		}
	}
	return all
}

// Prepares implements Scenario.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	for _, w := range wants(cells) {
		objects += int64(w.n)
		bytes += int64(w.n) * int64(w.size)
	}
	return objects, bytes
}

// Prepare stores what the cells read and change, in the quickest way that the
// system has: nothing of it is measured.
func (Scenario) Prepare(ctx context.Context, site scenario.Site, cells []experiment.Cell) (_ scenario.Runner, err error) {
	nodes := site.Cluster.Nodes()
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%s: the deployment has no node", site.Use.Name)
	}
	node, _ := nodes[0].(system.Store) // else unfit
	r := &runner{
		CreatedObjects: scenario.NewCreatedObjects(site.Use),
		site:           site, node: node, slow: map[slowKey]slowest{},
		sized: map[int64][]object{}, mutable: map[int64][]object{}, filled: map[int64][]object{},
	}
	// What its options leave of what the kind of system can do.
	can := system.Abilities(nodes[0])
	alwaysFresh := r.onlyFresh()
	if alwaysFresh {
		can = append(can, "fresh")
		r.notes = []string{"connections: fresh (the system has no others)"}
	}
	if problems := unfit(site.Use, can, alwaysFresh, cells); len(problems) > 0 {
		return nil, &scenario.UnfitError{System: site.Use.Name, Problems: problems}
	}
	defer func() {
		if err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scenario.RemoveTimeout)
			defer cancel()
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	begun := time.Now()
	for _, w := range wants(cells) {
		if err := r.prepare(ctx, w); err != nil {
			return nil, err
		}
	}
	if err := r.settlePrepared(ctx); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Overhead.Operation == "fill" }) {
		if r.before, err = r.inventory(ctx); err != nil {
			return nil, err
		}
	}
	site.Event("phase", "data ready", fmt.Sprintf("%s: %d objects", site.Use.Name, r.held.Load()), time.Since(begun))
	return r, nil
}

// prepare stores one set.
func (r *runner) prepare(ctx context.Context, w want) (err error) {
	size := int64(w.size)
	switch w.purpose {
	case "read":
		r.sized[size], err = r.grow(ctx, r.sized[size], w, r.seed)
	case "range":
		r.ranged, err = r.grow(ctx, r.ranged, w, r.seed)
	case "mutable":
		u, ok := r.node.(system.Updater)
		if !ok {
			return fmt.Errorf("%s: it has no mutable objects", r.site.Use.Name)
		}
		r.mutable[size], err = r.grow(ctx, r.mutable[size], w, func(ctx context.Context, name string, c workload.Content) (system.Ref, error) {
			ref, err := u.PutMutable(ctx, name, c.Size, c.Reader())
			r.Add(ref)
			return ref, err
		})
	case "fill":
		return r.tryFill(ctx, w)
	}
	return err
}

// tryFill puts one object and makes it cold. What fill adds it reads again, and
// some systems keep what was put through the client where the client is. What
// else goes wrong shows in the trials.
func (r *runner) tryFill(ctx context.Context, w want) error {
	cooler, ok := r.node.(system.Cooler)
	if !ok {
		return nil
	}
	c := workload.Content{Seed: scenario.MixSeed(r.site.Seed, w.purpose, int64(w.size)), Size: int64(w.size)}
	var ref system.Ref
	err := r.within(ctx, "put an object", func(ctx context.Context) (err error) {
		ref, err = r.node.Put(ctx, r.objectName(w, 0), c.Size, c.Reader())
		return err
	})
	r.Add(ref)
	if err != nil {
		return nil
	}
	r.keep(1, c.Size)
	err = r.within(ctx, "make it cold", func(ctx context.Context) error { return cooler.Cool(ctx, ref) })
	if errors.Is(err, system.ErrWarm) {
		return &scenario.UnfitError{System: r.site.Use.Name, Problems: []system.Problem{{
			What: fmt.Sprintf("it cannot do the operation fill with objects of %s: what is put stays near the client, where reading it measures nothing (%v)", w.size, err),
			Hint: fmt.Sprintf("leave these cells out: where: [\"system != %s || overhead.operation != fill\"]", r.site.Use.Name),
		}}}
	}
	d, ok := r.node.(system.Deleter)
	if ok && r.within(ctx, "remove it", func(ctx context.Context) error { return d.Delete(ctx, ref) }) == nil {
		r.Removed(ref)
		r.keep(-1, -c.Size)
	}
	return nil
}

func (r *runner) seed(ctx context.Context, name string, c workload.Content) (system.Ref, error) {
	ref, err := system.Seed(ctx, r.node, name, c.Size, c.Reader())
	r.Add(ref)
	return ref, err
}

func (r *runner) objectName(w want, i int) string {
	return fmt.Sprintf("plimsoll-%s-%d-%d-%06d", w.purpose, r.site.Seed, int64(w.size), i)
}

// grow makes a set of objects as long as it is wanted.
func (r *runner) grow(ctx context.Context, set []object, w want, store func(context.Context, string, workload.Content) (system.Ref, error)) ([]object, error) {
	for i := len(set); i < w.n; i++ {
		// Mixed with purpose and size, so that two sets have no byte in common.
		c := workload.Content{Seed: scenario.MixSeed(r.site.Seed, w.purpose, int64(w.size)), Index: uint64(i), Size: int64(w.size)}
		name := r.objectName(w, i)
		ref, err := store(ctx, name, c)
		if err != nil {
			return nil, fmt.Errorf("%s: store object %s (%s): %w", r.site.Use.Name, name, w.size, err)
		}
		r.keep(1, c.Size)
		set = append(set, object{ref, c})
	}
	return set, nil
}

// Close implements Runner.
func (r *runner) Close(ctx context.Context) error { return r.RemoveAll(ctx, r.node) }

// keep counts objects of ours that are there from now on, or, negative, no longer.
func (r *runner) keep(objects, bytes int64) {
	r.held.Add(objects)
	r.bytes.Add(bytes)
}
