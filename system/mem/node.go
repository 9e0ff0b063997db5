package mem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var errStopped = errors.New("the system is stopped")

// Node is a client of the store.
type Node struct {
	store   *store
	address string
	peer    *peer

	mu      sync.Mutex
	stopped bool
	idle    int // open connections without an operation
	era     int // Redials so far
	near    map[system.Ref]bool
	phases  []system.Phase
}

// Change changes what operations take and how they fail, for all nodes of the
// cluster and from the next operation on: n.Change(func(m *mem.Model) { m.RTT = rtt }).
func (n *Node) Change(change func(*Model)) {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	change(&n.store.model)
}

// put stores an object under ref in the model's time.
func (n *Node) put(
	ctx context.Context, what string, ref system.Ref, name string, size int64, r io.Reader,
) (system.Ref, error) {
	op, err := n.begin(ctx, what, ref, size)
	if err != nil {
		return "", err
	}
	defer op.end()
	o, err := take(name, size, r, op.reach)
	if err != nil {
		return "", op.failed(err)
	}
	n.store.keep(ref, o)
	n.warm(ref)
	return ref, nil
}

// warm keeps an object near.
func (n *Node) warm(ref system.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.near[ref] = true
}

// Put implements system.Node.
func (n *Node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.put(ctx, "put", refOf(immutable, name), name, size, r)
}

// Named implements system.Namer.
func (n *Node) Named(name string) system.Ref { return refOf(immutable, name) }

// Seed implements system.Seeder: it takes no time and does not fail.
func (n *Node) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	o, err := take(name, size, r, func(int64) error { return ctx.Err() })
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("mem: seed %q: %w", name, err)
	}
	ref := refOf(immutable, name)
	n.store.keep(ref, o)
	n.forget(ref) // what another client stores is not near to this one
	return ref, nil
}

func (n *Node) forget(ref system.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.near, ref)
}

// on does an operation on an object, which moves count bytes at off of it, as far as there are any.
func (n *Node) on(ctx context.Context, what string, ref system.Ref, off, count int64, do func(op *operation, o *object,
	have int64) error) error {
	o, unknown := n.store.find(ref)
	have := max(0, min(count, o.length()-off))
	op, err := n.begin(ctx, what, ref, have)
	if err != nil {
		return err
	}
	defer op.end()
	if unknown != nil {
		return op.failed(unknown)
	}
	return do(op, o, have)
}

// Get implements system.Node.
func (n *Node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.on(ctx, "get", ref, 0, math.MaxInt64, func(op *operation, o *object, have int64) error {
		if err := op.give(o, 0, have, w); err != nil {
			return err
		}
		n.warm(ref)
		return nil
	})
}

// GetRange implements system.Ranger.
func (n *Node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	if off < 0 || count < 0 {
		return fmt.Errorf("mem: range of %d bytes at %d", count, off)
	}
	return n.on(ctx, "range", ref, off, count, func(op *operation, o *object, have int64) error {
		if err := op.give(o, off, have, w); err != nil {
			return err
		}
		if have < count {
			return op.failed(io.ErrUnexpectedEOF)
		}
		return nil
	})
}

// Stat implements system.Stater.
func (n *Node) Stat(ctx context.Context, ref system.Ref) (stat system.Object, err error) {
	return stat, n.on(ctx, "stat", ref, 0, 0, func(_ *operation, o *object, _ int64) error {
		stat = system.Object{Name: o.name, Ref: ref, Size: o.size}
		return nil
	})
}

// Delete implements system.Deleter.
func (n *Node) Delete(ctx context.Context, ref system.Ref) error {
	return n.on(ctx, "delete", ref, 0, 0, func(*operation, *object, int64) error {
		n.store.mu.Lock()
		delete(n.store.objects, ref)
		n.store.mu.Unlock()
		n.forget(ref)
		return nil
	})
}

// PutMutable implements system.Updater.
func (n *Node) PutMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.put(ctx, "put", refOf(mutable, name), name, size, r)
}

// Update implements system.Updater.
func (n *Node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	o, err := n.store.find(ref)
	if err == nil && !strings.HasPrefix(string(ref), mutable+"/") {
		err = fmt.Errorf("it is not mutable: %w", system.ErrBadRef)
	}
	if err != nil {
		return fmt.Errorf("mem: update %.100q: %w", ref, err)
	}
	_, err = n.put(ctx, "update", ref, o.name, size, r)
	return err
}

// MakeDirectory implements system.Directory.
func (n *Node) MakeDirectory(ctx context.Context, name string) (system.Ref, error) {
	ref := refOf(directory, name)
	op, err := n.begin(ctx, "make directory", ref, 0)
	if err != nil {
		return "", err
	}
	defer op.end()
	n.store.keep(ref, &object{name: name})
	return ref, nil
}

// PutIn implements system.Directory: the object, then the entry, each in the
// time of an operation.
func (n *Node) PutIn(ctx context.Context, dir system.Ref, entry string, size int64, r io.Reader) (system.Ref, error) {
	_, err := n.store.find(dir)
	if err == nil && (!strings.HasPrefix(string(dir), directory+"/") || strings.Count(string(dir), "/") > 1) {
		err = fmt.Errorf("it is no directory: %w", system.ErrBadRef)
	}
	if err != nil {
		return "", fmt.Errorf("mem: put %q in %.100q: %w", entry, dir, err)
	}
	ref := dir + "/" + system.Ref(disk.FileName(entry))
	if _, err := n.put(ctx, "put in directory", ref, entry, size, r); err != nil {
		return "", err
	}
	op, err := n.begin(ctx, "enter into directory", dir, 0)
	if err != nil {
		return "", err
	}
	op.end()
	return ref, nil
}

// Settle implements system.Settler.
func (n *Node) Settle(ctx context.Context, ref system.Ref) error {
	o, err := n.store.find(ref)
	if err == nil {
		err = wait(ctx, o.durable)
	}
	if err != nil {
		return fmt.Errorf("mem: settle %.100q: %w", ref, err)
	}
	return nil
}

// Cool implements system.Cooler.
func (n *Node) Cool(ctx context.Context, ref system.Ref) error {
	_, err := n.store.find(ref)
	if err == nil {
		err = ctx.Err()
	}
	if m, _ := n.store.draw(); err == nil && m.Warm {
		err = system.ErrWarm
	}
	if err != nil {
		return fmt.Errorf("mem: cool %.100q: %w", ref, err)
	}
	n.forget(ref)
	return nil
}

// Redial implements system.Redialer.
func (n *Node) Redial(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.idle, n.era = 0, n.era+1
	return ctx.Err()
}

// List implements system.Lister.
func (n *Node) List(ctx context.Context, visit func(system.Object) error) error {
	n.store.mu.Lock()
	all := slices.Sorted(maps.Keys(n.store.objects))
	n.store.mu.Unlock()
	for _, ref := range all {
		o, err := n.store.find(ref)
		if err != nil {
			continue // removed meanwhile
		}
		if err := visit(system.Object{Name: o.name, Ref: ref, Size: o.size}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Stats implements system.Stats: one file for each object, in blocks of 4 KiB.
func (n *Node) Stats(ctx context.Context) (system.Holdings, error) {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	var h system.Holdings
	for _, o := range n.store.objects {
		kept := int64(float64(o.size) * n.store.model.Expansion)
		h.Objects++
		h.Entries++
		h.Inodes++
		h.Absolute += kept
		h.Disk += (kept + 4095) &^ 4095
	}
	return h, ctx.Err()
}

// Phases implements system.Phaser.
func (n *Node) Phases(ctx context.Context) ([]system.Phase, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.phases), ctx.Err()
}

// Costs implements system.Coster: one unit for each byte put.
func (n *Node) Costs(ctx context.Context) (system.Costs, error) {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	return system.Costs{
		Currency: "MEM", Decimals: 9,
		Spent: []system.Spending{{Purpose: "upload", Amount: big.NewInt(n.store.paid)}},
	}, ctx.Err()
}

// Address implements system.Member.
func (n *Node) Address(ctx context.Context) (string, error) { return n.address, ctx.Err() }

// Health implements system.Healther.
func (n *Node) Health(ctx context.Context) error {
	_, out, err := n.in(ctx, "health")
	if err != nil {
		return err
	}
	out()
	return nil
}

// Processes implements system.Node: there are none.
func (n *Node) Processes() []testbed.Process { return nil }

// Stop implements group.Node.
func (n *Node) Stop(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	return nil
}
