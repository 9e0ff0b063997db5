package overhead

import (
	"context"
	"errors"
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
	do     func(*scenario.Operation) error // timed
	after  func(context.Context) error     // untimed, after success; nil: nothing
}

// action prepares, untimed, the n-th operation of a worker; n = -1 is for prime. The function
// scenario.Prepare has checked that the node has the required abilities.
func (t *trial) action(ctx context.Context, worker, n int) (action, error) {
	c := t.content(worker, n)
	needed, _ := wantOf(t.cell)
	set := t.sets[needed]
	i := 0
	if len(set) > t.o.Concurrency { // else each worker has its own object, or there is none
		i = pick(len(set), t.o.Concurrency, worker, n)
	}
	switch t.o.Operation {
	case "put":
		return t.put(record.OpPut, c, worker), nil
	case "put-durable":
		return t.put(record.OpPutDurable, c, worker), nil
	case "put-dir":
		return t.put(record.OpPutDir, c, worker), nil
	case "get":
		return t.get(ctx, set[i], i)
	case "range":
		where := rand.New(rand.NewPCG(t.seed, uint64(worker)<<32|uint64(n+1))) // the same for all systems
		return t.read(ctx, record.OpRange, set[i], i, where.Int64N(set[i].content.Size-c.Size+1), c.Size)
	case "stat":
		return t.stat(ctx, set[i], i)
	case "update":
		u, o := t.node.(system.Updater), set[worker]
		return action{
			kind: record.OpUpdate, object: uint32(worker), length: c.Size,
			do:    func(w *scenario.Operation) error { return u.Update(w.Ctx, o.ref, c.Size, w.Sending(c)) },
			after: func(ctx context.Context) error { return t.settle(ctx, o) },
		}, nil
	case "delete":
		return t.remover(ctx, c)
	}
	return action{}, fmt.Errorf("overhead: there is no operation %q", t.o.Operation)
}

// pick returns the index of the object for a worker's n-th operation: each worker cycles through
// its own share. The last objects, one per worker, are only for prime (n = -1) and never timed,
// so that a system's memory of the object that it read last does not help it with the next.
func pick(objects, workers, worker, n int) int {
	timed := objects - workers
	if n < 0 {
		return timed + worker
	}
	share := (timed - worker + workers - 1) / workers
	return worker + n%share*workers
}

// put prepares storing an object: for OpPutDir in the worker's directory, for OpPutDurable until it
// is durable.
func (t *trial) put(kind record.OpKind, c workload.Content, worker int) action {
	var ref system.Ref
	return action{
		kind: kind, object: uint32(c.Index), length: c.Size,
		do: func(w *scenario.Operation) (err error) {
			if kind == record.OpPutDir {
				ref, err = t.node.(system.Directory).PutIn(w.Ctx, t.directories[worker], t.name(c), c.Size, w.Sending(c))
			} else {
				ref, err = t.node.Put(w.Ctx, t.name(c), c.Size, w.Sending(c))
			}
			t.Add(t.name(c), ref)
			if err == nil && kind == record.OpPutDurable {
				err = t.node.(system.Settler).Settle(w.Ctx, ref)
			}
			return err
		},
		after: func(ctx context.Context) error {
			t.stored(object{ref, c})
			if kind == record.OpPutDurable || t.o.Operation == "fill" { // durable already, or fill waits for all together
				return nil
			}
			return t.settle(ctx, object{ref, c})
		},
	}
}

// get prepares reading a whole object.
func (t *trial) get(ctx context.Context, o object, index int) (action, error) {
	return t.read(ctx, record.OpGet, o, index, 0, o.content.Size)
}

// cool makes caches near the client forget an object; the system must prove it.
func (t *trial) cool(ctx context.Context, ref system.Ref) error {
	c, ok := t.node.(system.Cooler)
	if !ok {
		return nil
	}
	return t.within(ctx, fmt.Sprintf("make %s cold", ref), func(ctx context.Context) error { return c.Cool(ctx, ref) })
}

func (t *trial) read(ctx context.Context, kind record.OpKind, o object, index int, off, length int64) (action, error) {
	return action{
		kind: kind, object: uint32(index), offset: off, length: length,
		do: func(w *scenario.Operation) error {
			if kind == record.OpGet {
				return t.node.Get(w.Ctx, o.ref, w.Receiving(o.content, off))
			}
			return t.node.(system.Ranger).GetRange(w.Ctx, o.ref, off, length, w.Receiving(o.content, off))
		},
	}, t.cool(ctx, o.ref)
}

func (t *trial) stat(ctx context.Context, o object, index int) (action, error) {
	s := t.node.(system.Stater)
	return action{kind: record.OpStat, object: uint32(index), do: func(w *scenario.Operation) error {
		got, err := s.Stat(w.Ctx, o.ref)
		if err == nil && got.Size >= 0 && got.Size != o.content.Size {
			err = errors.New("stat: the size is not that of the object")
		}
		return err
	}}, t.cool(ctx, o.ref)
}

// remover stores an object and prepares its removal.
func (t *trial) remover(ctx context.Context, c workload.Content) (action, error) {
	var ref system.Ref
	err := t.within(ctx, "store an object to remove", func(ctx context.Context) (err error) {
		ref, err = t.store(ctx, t.name(c), c, system.Seed)
		return err
	})
	if err == nil {
		err = t.settle(ctx, object{ref, c})
	}
	d := t.node.(system.Deleter)
	return action{kind: record.OpDelete, object: uint32(c.Index),
		do: func(w *scenario.Operation) error { return d.Delete(w.Ctx, ref) },
		after: func(context.Context) error {
			t.removed(system.Object{Ref: ref, Size: c.Size})
			return nil
		},
	}, err
}

// fill adds objects to the existing ones, then reads some of them. The objects remain, so that
// the trials of later blocks find more. A new deployment begins without objects, which
// stored_objects takes into account.
func (t *trial) fill(ctx context.Context) (before []record.Detail, err error) {
	filled := set{"fill", t.cell.Data.Size}
	t.facts = append(t.facts, scenario.Fact(scenario.LoadHeld, float64(t.held.Load())))
	err = t.loop(ctx, t.o.Objects, 0, func(_ context.Context, worker, n int) (action, error) {
		return t.put(record.OpPut, t.content(worker, n), worker), nil
	})
	t.sets[filled] = append(t.sets[filled], t.made...) // those of a failed trial remain, too
	// Wait for all objects, including those of earlier trials: the following reads need the link
	// for themselves, and the inventory must contain all objects.
	t.pending, t.made = append(t.pending, t.made...), nil
	if err == nil {
		t.pending, err = t.runner.settle(ctx, t.pending...)
	}
	t.unsettled.Store(len(t.pending) > 0)
	if err == nil && len(t.sets[filled]) > 0 {
		err = t.probe(ctx, t.sets[filled])
	}
	return t.before, err
}

// probe reads some of the stored objects and, if the system can, stats some.
func (t *trial) probe(ctx context.Context, there []object) error {
	kinds := []func(context.Context, object, int) (action, error){t.get}
	if _, ok := t.node.(system.Stater); ok {
		kinds = append(kinds, t.stat)
	}
	for k, of := range kinds {
		next := func(ctx context.Context, worker, n int) (action, error) {
			i := rand.New(rand.NewPCG(t.seed^uint64(k+1), uint64(worker)<<32|uint64(n))).IntN(len(there))
			return of(ctx, there[i], i)
		}
		if err := t.loop(ctx, t.o.Count*t.o.Concurrency, t.o.Time.Std(), next); err != nil {
			return err
		}
	}
	return nil
}
