package httpload

import (
	"context"
	"fmt"
	"sync"

	"github.com/plimsoll-project/plimsoll/record"
)

// recorder hands batches of operations to the sink from a goroutine of its own,
// so that a slow disk does not stop the clock of an event loop; once its queue
// is full it does, and the loops' own measures show it.
type recorder struct {
	sink   record.OpSink
	queue  chan []record.Op
	done   chan struct{}
	cancel context.CancelCauseFunc
	err    error // valid after close

	mu    sync.Mutex
	parts map[*tally]Progress
}

func newRecorder(sink record.OpSink, cancel context.CancelCauseFunc) *recorder {
	r := &recorder{sink: sink, queue: make(chan []record.Op, 8), done: make(chan struct{}), cancel: cancel,
		parts: map[*tally]Progress{}}
	go func() {
		defer close(r.done)
		for ops := range r.queue {
			if r.err == nil {
				if err := r.sink.Ops(ops); err != nil {
					r.err = fmt.Errorf("httpload: record operations: %w", err)
					r.cancel(r.err)
				}
			}
		}
	}()
	return r
}

// put queues a batch and returns an empty one.
func (r *recorder) put(ops []record.Op) []record.Op {
	r.queue <- ops
	return make([]record.Op, 0, batchSize)
}

// close waits until everything has reached the sink.
func (r *recorder) close() error {
	close(r.queue)
	<-r.done
	return r.err
}

// progress notes how far a tally has come.
func (r *recorder) progress(t *tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[t] = Progress{Ops: t.ops, OK: t.ok, Failed: t.failed, Bytes: t.bytes}
}

func (r *recorder) total(at int64) Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Progress{At: at}
	for _, q := range r.parts {
		p.Ops += q.Ops
		p.OK += q.OK
		p.Failed += q.Failed
		p.Bytes += q.Bytes
	}
	return p
}
