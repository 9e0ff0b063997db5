package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// object is one of ours in a system, with what it holds.
type object struct {
	ref     system.Ref
	content workload.Content
}

// overheadRunner is one prepared system.
type overheadRunner struct {
	site  Site
	node  system.Node
	notes []string

	sized   map[int64][]object // by size, for get and stat
	ranged  []object           // of range_of, for range
	mutable map[int64][]object // by size, for update

	filled map[int64][]object // by size, what fill has added
	before *inventory         // before the first fill; nil: nobody fills, or the system does not tell
	held   atomic.Int64       // objects of ours that are there
	bytes  atomic.Int64       // their file bytes

	slow     map[slowKey]slowest
	patience patience
}

// Prepare stores what the cells read and change, in the quickest way that the
// system has: nothing of it is measured.
func (Overhead) Prepare(ctx context.Context, site Site, cells []experiment.Cell) (Runner, error) {
	nodes := site.Cluster.Nodes()
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%s: the deployment has no node", site.Use.Name)
	}
	r := &overheadRunner{
		site: site, node: nodes[0], slow: map[slowKey]slowest{},
		sized: map[int64][]object{}, mutable: map[int64][]object{}, filled: map[int64][]object{},
	}
	if site.Cluster.Identity()["connections"] == "fresh" {
		r.notes = []string{"connections: fresh (the system has no others)"}
	}
	begun := time.Now()
	for _, c := range cells {
		if err := r.prepare(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: prepare %s of %s: %w", site.Use.Name, c.Overhead.Operation, c.Data.Size, err)
		}
	}
	if slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Overhead.Operation == "fill" }) {
		var err error
		if r.before, err = r.inventory(ctx); err != nil {
			return nil, fmt.Errorf("%s: what its servers hold: %w", site.Use.Name, err)
		}
	}
	site.Event("phase", "data ready", fmt.Sprintf("%s: %d objects", site.Use.Name, r.held.Load()), time.Since(begun))
	return r, nil
}

// prepare stores what one cell needs and no cell before it needed.
func (r *overheadRunner) prepare(ctx context.Context, c experiment.Cell) error {
	size := int64(c.Data.Size)
	// Operations under way at once have an object each: what one makes cold, the
	// other must not read. As many again are there to prime with, see pick.
	n := max(c.Data.Objects, c.Overhead.Concurrency) + c.Overhead.Concurrency
	var err error
	switch c.Overhead.Operation {
	case "get", "stat":
		r.sized[size], err = r.grow(ctx, r.sized[size], "read", n, size, r.seed)
	case "range":
		r.ranged, err = r.grow(ctx, r.ranged, "range", n, int64(c.Overhead.RangeOf), r.seed)
	case "update":
		u, ok := r.node.(system.Updater)
		if !ok {
			return errors.New("it has no mutable objects")
		}
		r.mutable[size], err = r.grow(ctx, r.mutable[size], "mutable", c.Overhead.Concurrency, size, func(ctx context.Context, name string, c workload.Content) (system.Ref, error) {
			return u.PutMutable(ctx, name, c.Size, c.Reader())
		})
	}
	return err
}

func (r *overheadRunner) seed(ctx context.Context, name string, c workload.Content) (system.Ref, error) {
	return system.Seed(ctx, r.node, name, c.Size, c.Reader())
}

// grow makes a set of objects n long.
func (r *overheadRunner) grow(ctx context.Context, set []object, purpose string, n int, size int64, store func(context.Context, string, workload.Content) (system.Ref, error)) ([]object, error) {
	for len(set) < n {
		// Mixed with purpose and size, so that two sets have no byte in common.
		c := workload.Content{Seed: mix(r.site.Seed, purpose, size), Index: uint64(len(set)), Size: size}
		ref, err := store(ctx, fmt.Sprintf("plimsoll-%s-%d-%d-%06d", purpose, r.site.Seed, size, len(set)), c)
		if err != nil {
			return nil, err
		}
		r.keep(1, size)
		set = append(set, object{ref, c})
	}
	return set, nil
}

// keep counts objects of ours that are there from now on, or, negative, no longer.
func (r *overheadRunner) keep(objects, bytes int64) {
	r.held.Add(objects)
	r.bytes.Add(bytes)
}
