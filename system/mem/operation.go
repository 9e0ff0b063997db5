package mem

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

const chunk = 64 << 10 // bytes that come at once

// operation is one that is under way.
type operation struct {
	ctx     context.Context
	node    *Node
	what    string
	ref     system.Ref
	size    int64 // bytes that it moves
	model   Model
	fate    fate
	dial    float64 // round trips for a new connection
	local   bool    // ends at the client, which has kept the object
	started time.Time
	era     int // of the node's connections
}

// begin waits until the first byte of an operation may pass, which moves size bytes.
func (n *Node) begin(ctx context.Context, what string, ref system.Ref, size int64) (*operation, error) {
	op := &operation{ctx: ctx, node: n, what: what, ref: ref, size: size, started: time.Now()}
	if err := ctx.Err(); err != nil {
		return nil, op.failed(err)
	}
	op.model, op.fate = n.store.draw()
	n.mu.Lock()
	stopped := n.stopped
	reads := what == "get" || what == "range"
	op.local = op.model.Cache && reads && n.near[ref]
	op.era = n.era
	switch {
	case op.local || stopped:
	case n.idle > 0:
		n.idle--
	default:
		op.dial = op.model.Dial
	}
	n.mu.Unlock()
	if stopped {
		return nil, op.failed(errStopped)
	}
	if op.fate.hang {
		<-ctx.Done()
		return nil, op.failed(fmt.Errorf("no answer: %w", ctx.Err()))
	}
	if err := op.reach(0); err != nil {
		return nil, err
	}
	if op.fate.fail {
		return nil, op.failed(ErrInjected)
	}
	return op, nil
}

// distance and transfer are the model's, of this operation.
func (op *operation) distance() time.Duration {
	if op.local {
		return 0
	}
	return op.model.distance(op.dial)
}

func (op *operation) transfer(done int64) time.Duration {
	if op.local {
		return 0
	}
	return op.model.transfer(done)
}

// reach waits until the operation has moved done bytes. It waits for points in
// time, so that many small waits do not add up their errors.
func (op *operation) reach(done int64) error {
	took := op.model.A + op.distance() + op.transfer(done)
	if err := wait(op.ctx, op.started.Add(took)); err != nil {
		return op.failed(err)
	}
	return nil
}

// wait ends at a time, or with ctx.
func wait(ctx context.Context, until time.Time) error {
	if d := time.Until(until); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// end puts the connection back and writes down where the time went.
func (op *operation) end() {
	n := op.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if !op.local && n.era == op.era {
		n.idle++
	}
	n.phases = []system.Phase{
		{Name: "setup", Took: op.model.A},
		{Name: "round trips", Took: op.distance()},
		{Name: "transfer", Took: op.transfer(op.size)},
	}
}

func (op *operation) failed(err error) error {
	return fmt.Errorf("mem: %s %.100q: %w", op.what, op.ref, err)
}

// take reads an object of size bytes, at the pace that after each chunk pace gives.
func take(name string, size int64, r io.Reader, pace func(done int64) error) (*object, error) {
	body, err := web.Exactly(r, size)
	if err != nil {
		return nil, err
	}
	o := &object{name: name}
	for o.size < size {
		b := make([]byte, min(chunk, size-o.size))
		n, err := io.ReadFull(body, b)
		if err != nil {
			return nil, err
		}
		o.chunks = append(o.chunks, b[:n])
		o.size += int64(n)
		if err := pace(o.size); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// give writes the n bytes at off of an object to w.
func (op *operation) give(o *object, off, n int64, w io.Writer) error {
	if op.fate.cut {
		n = int64(op.fate.at * float64(n))
	}
	wrong := int64(-1)
	if op.fate.corrupt && n > 0 {
		wrong = off + int64(op.fate.at*float64(n))
	}
	for at := off; at < off+n; {
		part := o.chunks[at/chunk][at%chunk:]
		part = part[:min(int64(len(part)), off+n-at)]
		if at <= wrong && wrong < at+int64(len(part)) {
			part = slices.Clone(part)
			part[wrong-at] ^= 1
		}
		at += int64(len(part))
		if err := op.reach(at - off); err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return op.failed(err)
		}
	}
	return nil
}
