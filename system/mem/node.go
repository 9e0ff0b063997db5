package mem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var errStopped = errors.New("the system is stopped")

// Node is a client of the store. Tests can change its calls with hooks: Before is called before
// each call and After after each successful one, with a name or a ref; their errors become the
// call's. A nil hook changes nothing.
type Node struct {
	*client
	Before, After Hook
}

// Hook is called with the name of a call and its object.
type Hook func(ctx context.Context, call, of string) error

// Hooked returns the same client with other hooks.
func (n *Node) Hooked(before, after Hook) *Node { return &Node{n.client, before, after} }

// client is the state shared by nodes with different hooks, guarded by its store's lock.
type client struct {
	store *store
	peer
	idle   int // open idle connections
	era    int // number of Redials so far
	near   map[system.Ref]bool
	phases []system.Phase
}

// Change changes timing and failures of operations, for all nodes of the cluster, from the next
// operation on: n.Change(func(m *mem.Model) { m.RTT = rtt }).
func (n *Node) Change(change func(*Model)) { n.store.now(func() { change(&n.store.model) }) }

// call makes a call, surrounded by its hooks.
func (n *Node) call(ctx context.Context, what, of string, do func() error) error {
	if n.Before != nil {
		if err := n.Before(ctx, what, of); err != nil {
			return err
		}
	}
	err := ctx.Err()
	if err == nil {
		err = do()
	}
	if err != nil {
		return fmt.Errorf("mem: %s %.100q: %w", what, of, err)
	}
	if n.After != nil {
		return n.After(ctx, what, of)
	}
	return nil
}

// locked makes a call with the store locked.
func (n *Node) locked(ctx context.Context, what, of string, do func() error) error {
	return n.call(ctx, what, of, func() error {
		n.store.mu.Lock()
		defer n.store.mu.Unlock()
		return do()
	})
}

// on performs an operation on an object.
func (n *Node) on(ctx context.Context, what string, ref system.Ref, do func(op *operation, o *object) error) error {
	return n.operate(ctx, what, string(ref), func(op *operation) error {
		o, err := n.store.find(ref, "")
		if err != nil {
			return err
		}
		return do(op, o)
	})
}

// keep stores an object; it is durable after the model's settling time.
func (n *client) keep(ref system.Ref, o *object, near bool) {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	o.durable = time.Now().Add(n.store.model.Settle)
	n.store.objects[ref] = o
	n.near[ref] = near
}

// put stores an object under ref in the time that the model gives.
func (n *Node) put(
	ctx context.Context, what string, ref system.Ref, kind, name string, size int64, r io.Reader,
) (system.Ref, error) {
	err := n.operate(ctx, what, name, func(op *operation) error {
		o, err := take(kind, name, size, r, op.reach)
		if err == nil {
			n.keep(ref, o, true)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return ref, nil
}

// Put implements system.Store.
func (n *Node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.put(ctx, "put", refOf(immutable, name), immutable, name, size, r)
}

// Named implements system.Namer.
func (n *Node) Named(name string) system.Ref { return refOf(immutable, name) }

// Seed implements system.Seeder. It takes no time and injects no failure.
func (n *Node) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	ref := refOf(immutable, name)
	return ref, n.call(ctx, "seed", name, func() error {
		o, err := take(immutable, name, size, r, func(int64) error { return ctx.Err() })
		if err == nil {
			n.keep(ref, o, false) // objects of another client are not cached at this one
		}
		return err
	})
}

// Get implements system.Getter.
func (n *Node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.on(ctx, "get", ref, func(op *operation, o *object) error {
		if err := op.give(o.data, w); err != nil {
			return err
		}
		n.store.mu.Lock()
		defer n.store.mu.Unlock()
		n.near[ref] = true
		return nil
	})
}

// GetRange implements system.Ranger.
func (n *Node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	if off < 0 || count < 0 {
		return fmt.Errorf("mem: range of %d bytes at %d", count, off)
	}
	return n.on(ctx, "range", ref, func(op *operation, o *object) error {
		part := o.part(off, count)
		if err := op.give(part, w); err != nil {
			return err
		}
		if int64(len(part)) < count {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
}

// Stat implements system.Stater.
func (n *Node) Stat(ctx context.Context, ref system.Ref) (stat system.Object, err error) {
	err = n.on(ctx, "stat", ref, func(_ *operation, o *object) error {
		stat = system.Object{Name: o.name, Ref: ref, Size: o.size()}
		return nil
	})
	return stat, err
}

// Delete implements system.Deleter.
func (n *Node) Delete(ctx context.Context, ref system.Ref) error {
	return n.on(ctx, "delete", ref, func(*operation, *object) error {
		n.store.mu.Lock()
		defer n.store.mu.Unlock()
		delete(n.store.objects, ref)
		delete(n.near, ref)
		return nil
	})
}

// PutMutable implements system.Updater.
func (n *Node) PutMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.put(ctx, "put mutable", refOf(mutable, name), mutable, name, size, r)
}

// Update implements system.Updater.
func (n *Node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	o, err := n.store.find(ref, mutable)
	if err != nil {
		return fmt.Errorf("mem: update %.100q: %w", ref, err)
	}
	_, err = n.put(ctx, "update", ref, mutable, o.name, size, r)
	return err
}

// MakeDirectory implements system.Directory.
func (n *Node) MakeDirectory(ctx context.Context, name string) (system.Ref, error) {
	ref := refOf(directory, name)
	return ref, n.operate(ctx, "make directory", name, func(*operation) error {
		n.keep(ref, &object{kind: directory, name: name}, true)
		return nil
	})
}

// PutIn implements system.Directory: it stores the object, then the entry, each in the time of an
// operation.
func (n *Node) PutIn(ctx context.Context, dir system.Ref, entry string, size int64, r io.Reader) (system.Ref, error) {
	if _, err := n.store.find(dir, directory); err != nil {
		return "", fmt.Errorf("mem: put %q in %.100q: %w", entry, dir, err)
	}
	ref := dir + "/" + system.Ref(disk.FileName(entry))
	if _, err := n.put(ctx, "put in directory", ref, immutable, entry, size, r); err != nil {
		return "", err
	}
	return ref, n.operate(ctx, "enter into directory", string(dir), func(*operation) error { return nil })
}

// Settle implements system.Settler.
func (n *Node) Settle(ctx context.Context, ref system.Ref) error {
	return n.call(ctx, "settle", string(ref), func() error {
		o, err := n.store.find(ref, "")
		if err != nil {
			return err
		}
		return wait(ctx, o.durable)
	})
}

// Cool implements system.Cooler.
func (n *Node) Cool(ctx context.Context, ref system.Ref) error {
	return n.locked(ctx, "cool", string(ref), func() error {
		switch {
		case n.store.objects[ref] == nil:
			return system.ErrNotFound
		case n.store.model.Warm:
			return system.ErrWarm
		}
		delete(n.near, ref)
		return nil
	})
}

// Redial implements system.Redialer.
func (n *Node) Redial(ctx context.Context) error {
	return n.locked(ctx, "redial", "", func() error {
		n.idle, n.era = 0, n.era+1
		return nil
	})
}

// List implements system.Lister.
func (n *Node) List(ctx context.Context, visit func(system.Object) error) error {
	n.store.mu.Lock()
	objects := maps.Clone(n.store.objects)
	n.store.mu.Unlock()
	for _, ref := range slices.Sorted(maps.Keys(objects)) {
		o := objects[ref]
		if err := visit(system.Object{Name: o.name, Ref: ref, Size: o.size()}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Stats implements system.Stats for one file per object, in blocks of 4 KiB.
func (n *Node) Stats(ctx context.Context) (h system.Holdings, err error) {
	err = n.locked(ctx, "stats", "", func() error {
		files := int64(len(n.store.objects))
		h.Objects, h.Entries, h.Inodes = files, files, files
		for _, o := range n.store.objects {
			kept := int64(float64(o.size()) * n.store.model.Expansion)
			h.Absolute += kept
			h.Disk += (kept + 4095) &^ 4095
		}
		return nil
	})
	return h, err
}

// Phases implements system.Phaser.
func (n *Node) Phases(ctx context.Context) (all []system.Phase, err error) {
	err = n.locked(ctx, "phases", "", func() error {
		all = slices.Clone(n.phases)
		return nil
	})
	return all, err
}

// Health implements system.Healther.
func (n *Node) Health(ctx context.Context) error {
	return n.member(ctx, "health", "", func() error { return nil })
}

// Processes implements system.Node. There are none.
func (n *Node) Processes() []testbed.Process { return nil }

// Stop implements group.Node.
func (n *Node) Stop(context.Context) error {
	n.store.now(func() { n.dead = true })
	return nil
}
