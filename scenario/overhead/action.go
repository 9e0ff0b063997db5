package overhead

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// action is one operation, ready to be timed.
type action struct {
	kind   record.OpKind
	object uint32
	offset int64
	length int64                           // bytes that must move
	sends  bool                            // to the system, not to us
	do     func(*scenario.Operation) error // what is timed
	wrong  func() bool                     // whether other bytes than the object's came; nil: none come
	// Untimed, when it ended well:
	after    func()            // what changes for us
	accepted func() system.Ref // what must become durable before the next; nil: nothing
}

// action prepares, untimed, the n-th operation of a worker; n = -1 primes.
func (t *trial) action(ctx context.Context, worker, n int) (action, error) {
	switch t.o.Operation {
	case "put":
		return t.put(t.content(worker, n)), nil
	case "put-durable":
		return t.putDurable(t.content(worker, n))
	case "put-dir":
		return t.putIn(t.directories[worker], t.content(worker, n))
	case "get":
		set := t.sized[int64(t.cell.Data.Size)]
		i := pick(len(set), t.o.Concurrency, worker, n)
		return t.get(ctx, set[i], i)
	case "range":
		i := pick(len(t.ranged), t.o.Concurrency, worker, n)
		return t.getRange(ctx, t.ranged[i], i, worker, n)
	case "stat":
		set := t.sized[int64(t.cell.Data.Size)]
		i := pick(len(set), t.o.Concurrency, worker, n)
		return t.stat(ctx, set[i], i)
	case "update":
		set := t.mutable[int64(t.cell.Data.Size)]
		return t.update(set[worker], worker, t.content(worker, n))
	case "delete":
		return t.remover(ctx, t.content(worker, n))
	}
	return action{}, fmt.Errorf("overhead: there is no operation %q", t.o.Operation)
}

// pick has each of the workers go around its own share of the objects. The last
// ones, one for each worker, are there to prime with (n = -1) and are never
// timed: what a system remembers of the object that it read last must not
// help it with the next.
func pick(objects, workers, worker, n int) int {
	timed := objects - workers
	if n < 0 {
		return timed + worker
	}
	share := (timed - worker + workers - 1) / workers
	return worker + n%share*workers
}

func (t *trial) put(c workload.Content) action {
	var ref system.Ref
	return action{
		kind: record.OpPut, object: uint32(c.Index), length: c.Size, sends: true,
		do: func(w *scenario.Operation) (err error) {
			ref, err = t.node.Put(w.Ctx, t.name(c), c.Size, w.Sending(c))
			t.Add(ref)
			return err
		},
		after:    func() { t.store(object{ref, c}) },
		accepted: func() system.Ref { return ref },
	}
}

func (t *trial) putDurable(c workload.Content) (action, error) {
	s, ok := t.node.(system.Settler)
	if !ok {
		return action{}, t.cannot("say when an object is durable")
	}
	a := t.put(c)
	var ref system.Ref
	a.kind = record.OpPutDurable
	a.do = func(w *scenario.Operation) (err error) {
		ref, err = t.node.Put(w.Ctx, t.name(c), c.Size, w.Sending(c))
		t.Add(ref)
		if err != nil {
			return err
		}
		return s.Settle(w.Ctx, ref)
	}
	a.after, a.accepted = func() { t.store(object{ref, c}) }, nil
	return a, nil
}

func (t *trial) putIn(dir system.Ref, c workload.Content) (action, error) {
	d, ok := t.node.(system.Directory)
	if !ok {
		return action{}, t.cannot("enter objects into directories")
	}
	var ref system.Ref
	a := t.put(c)
	a.kind = record.OpPutDir
	a.do = func(w *scenario.Operation) (err error) {
		ref, err = d.PutIn(w.Ctx, dir, t.name(c), c.Size, w.Sending(c))
		t.Add(ref)
		return err
	}
	a.after = func() { t.store(object{ref, c}) }
	a.accepted = func() system.Ref { return ref }
	return a, nil
}

// get prepares a read of the whole object.
func (t *trial) get(ctx context.Context, o object, index int) (action, error) {
	return t.read(ctx, record.OpGet, o, index, 0, o.content.Size, func(w *scenario.Operation, to *scenario.Receiver) error {
		return t.node.Get(w.Ctx, o.ref, to)
	})
}

func (t *trial) getRange(ctx context.Context, o object, index, worker, n int) (action, error) {
	r, ok := t.node.(system.Ranger)
	if !ok {
		return action{}, t.cannot("read ranges")
	}
	length := int64(t.cell.Data.Size)
	// Anywhere in the object, and the same for all systems.
	where := rand.New(rand.NewPCG(t.seed, uint64(worker)<<32|uint64(n+1)))
	off := where.Int64N(o.content.Size - length + 1)
	return t.read(ctx, record.OpRange, o, index, off, length, func(w *scenario.Operation, to *scenario.Receiver) error {
		return r.GetRange(w.Ctx, o.ref, off, length, to)
	})
}

// cool makes whatever is near the client forget an object, and prove that.
func (t *trial) cool(ctx context.Context, ref system.Ref) error {
	c, ok := t.node.(system.Cooler)
	if !ok {
		return nil
	}
	return t.within(ctx, fmt.Sprintf("make %s cold", ref), func(ctx context.Context) error { return c.Cool(ctx, ref) })
}

func (t *trial) read(ctx context.Context, kind record.OpKind, o object, index int, off, length int64, do func(*scenario.Operation, *scenario.Receiver) error) (action, error) {
	if err := t.cool(ctx, o.ref); err != nil {
		return action{}, err
	}
	var to *scenario.Receiver
	return action{
		kind: kind, object: uint32(index), offset: off, length: length,
		do: func(w *scenario.Operation) (err error) {
			if to, err = w.Receiving(o.content, off); err != nil {
				return err
			}
			return do(w, to)
		},
		wrong: func() bool { return to != nil && to.Wrong },
	}, nil
}

func (t *trial) stat(ctx context.Context, o object, index int) (action, error) {
	s, ok := t.node.(system.Stater)
	if !ok {
		return action{}, t.cannot("tell of an object without its bytes")
	}
	if err := t.cool(ctx, o.ref); err != nil {
		return action{}, err
	}
	return action{kind: record.OpStat, object: uint32(index), do: func(w *scenario.Operation) error {
		got, err := s.Stat(w.Ctx, o.ref)
		if err == nil && got.Size >= 0 && got.Size != o.content.Size {
			err = fmt.Errorf("stat: the size is not that of the object")
		}
		return err
	}}, nil
}

func (t *trial) update(o object, index int, c workload.Content) (action, error) {
	u, ok := t.node.(system.Updater)
	if !ok {
		return action{}, t.cannot("replace the content of an object")
	}
	return action{
		kind: record.OpUpdate, object: uint32(index), length: c.Size, sends: true,
		do:       func(w *scenario.Operation) error { return u.Update(w.Ctx, o.ref, c.Size, w.Sending(c)) },
		accepted: func() system.Ref { return o.ref },
	}, nil
}

// remover prepares the removal of an object that it stores for it.
func (t *trial) remover(ctx context.Context, c workload.Content) (action, error) {
	d, ok := t.node.(system.Deleter)
	if !ok {
		return action{}, t.cannot("remove objects")
	}
	var ref system.Ref
	err := t.within(ctx, "store an object to remove", func(ctx context.Context) (err error) {
		ref, err = t.runner.seed(ctx, t.name(c), c)
		return err
	})
	if err != nil {
		return action{}, err
	}
	t.keep(1, c.Size)
	if err := t.settle(ctx, ref); err != nil {
		return action{}, err
	}
	return action{kind: record.OpDelete, object: uint32(c.Index),
		do:    func(w *scenario.Operation) error { return d.Delete(w.Ctx, ref) },
		after: func() { t.Removed(ref); t.keep(-1, -c.Size) },
	}, nil
}
