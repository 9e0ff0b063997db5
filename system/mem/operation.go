package mem

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

const chunk = 64 << 10 // bytes delivered at once

// operation is a running operation.
type operation struct {
	ctx     context.Context
	node    *client
	model   Model // Dial is 0 if an open connection is used
	fate    fate
	local   bool // served by the client's cache
	started time.Time
	era     int   // generation of the node's connections
	moved   int64 // bytes
}

// operate makes a call that takes the time of an operation: it calls do when the first byte may
// pass.
func (n *Node) operate(ctx context.Context, what, of string, do func(op *operation) error) error {
	return n.call(ctx, what, of, func() error {
		op, err := n.begin(ctx, what, system.Ref(of))
		if err != nil {
			return err
		}
		defer op.end()
		if err := op.reach(0); err != nil {
			return err
		}
		if op.fate.fail {
			return ErrInjected
		}
		return do(op)
	})
}

// begin takes an idle connection, if there is one and the operation needs it.
func (n *client) begin(ctx context.Context, what string, ref system.Ref) (*operation, error) {
	n.store.mu.Lock()
	op := &operation{ctx: ctx, node: n, model: n.store.model, fate: n.store.draw(), started: time.Now(), era: n.era}
	dead := n.dead
	op.local = op.model.Cache && (what == "get" || what == "range") && n.near[ref]
	switch {
	case op.local: // neither distance nor size counts
		op.model.RTT, op.model.Rate = 0, 0
	case n.idle > 0 && !dead:
		n.idle--
		op.model.Dial = 0
	}
	n.store.mu.Unlock()
	if dead {
		return nil, errStopped
	}
	if op.fate.hang {
		<-ctx.Done()
		return nil, fmt.Errorf("no answer: %w", ctx.Err())
	}
	return op, nil
}

// reach waits until the operation may have moved done bytes. It waits for absolute times, so that
// the errors of many short waits do not accumulate.
func (op *operation) reach(done int64) error {
	op.moved = done
	return wait(op.ctx, op.started.Add(op.model.A+op.model.distance()+op.model.transfer(done)))
}

// wait waits until a time, or until ctx ends.
func wait(ctx context.Context, until time.Time) error {
	if d := time.Until(until); d > 0 {
		timing.Pause(ctx, d)
	}
	return ctx.Err()
}

// end returns the connection to the pool and records where the time went.
func (op *operation) end() {
	n := op.node
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	if !op.local && n.era == op.era {
		n.idle++
	}
	n.phases = []system.Phase{
		{Name: "setup", Took: op.model.A},
		{Name: "round trips", Took: op.model.distance()},
		{Name: "transfer", Took: op.model.transfer(op.moved)},
	}
}

// take reads an object of size bytes; pace is called before each chunk and delays it.
func take(kind, name string, size int64, r io.Reader, pace func(done int64) error) (*object, error) {
	body, err := web.Exactly(r, size)
	if err != nil {
		return nil, err
	}
	o := &object{kind: kind, name: name}
	for {
		if err := pace(o.size()); err != nil {
			return nil, err
		}
		if o.size() == size {
			return o, nil
		}
		part := make([]byte, min(chunk, size-o.size()))
		if _, err := io.ReadFull(body, part); err != nil {
			return nil, err
		}
		o.data = append(o.data, part...)
	}
}

// give writes bytes of an object to w.
func (op *operation) give(data []byte, w io.Writer) error {
	if op.fate.cut {
		data = data[:int(op.fate.at*float64(len(data)))]
	}
	if op.fate.corrupt && len(data) > 0 {
		data = slices.Clone(data)
		data[int(op.fate.at*float64(len(data)))] ^= 1
	}
	for part := range slices.Chunk(data, chunk) {
		if err := op.reach(op.moved + int64(len(part))); err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// store holds the objects of the servers and the timing of operations. Its lock also guards the
// nodes and the swarm.
type store struct {
	mu      sync.Mutex
	model   Model
	faults  *rand.Rand
	objects map[system.Ref]*object
	swarm
}

// object is immutable: an update replaces it.
type object struct {
	kind, name string
	data       []byte
	durable    time.Time
}

func (o *object) size() int64 { return int64(len(o.data)) }

// part returns the existing bytes of the range of count bytes at off.
func (o *object) part(off, count int64) []byte {
	off = min(off, o.size())
	return o.data[off : off+min(count, o.size()-off)]
}

// Kinds of objects. Refs are KIND/NAME, or dir/NAME/ENTRY.
const (
	immutable = "object"
	mutable   = "mutable"
	directory = "dir"
)

func refOf(kind, name string) system.Ref { return system.Ref(kind + "/" + disk.FileName(name)) }

// find returns the object of a ref, which must be of the given kind; "" accepts any.
func (s *store) find(ref system.Ref, kind string) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[ref]
	switch {
	case o == nil:
		return nil, system.ErrNotFound
	case kind != "" && o.kind != kind:
		return nil, fmt.Errorf("it is of kind %s: %w", o.kind, system.ErrBadRef)
	}
	return o, nil
}

// fate is the random outcome of an operation.
type fate struct {
	hang, fail, corrupt, cut bool
	at                       float64 // position in the object, 0 to 1
}

// draw uses the same number of random values for each operation, whatever the operation.
func (s *store) draw() fate {
	m, n := s.model, s.faults
	return fate{
		hang:    n.Float64() < m.Hangs,
		fail:    n.Float64() < m.Errors,
		corrupt: n.Float64() < m.Corrupt,
		cut:     n.Float64() < m.Truncate,
		at:      n.Float64(),
	}
}
