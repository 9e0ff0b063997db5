package httpload

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/record"
)

// recorder hands batches of operations to the sink from a goroutine of its own,
// so that a slow disk does not stop the clock of an event loop; once its queue
// is full it does, and the loops' own measures show it.
type recorder struct {
	queue chan []record.Op
	done  chan struct{}
	err   error // valid after close
}

func newRecorder(sink record.OpSink, cancel context.CancelCauseFunc) *recorder {
	r := &recorder{queue: make(chan []record.Op, 8), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for ops := range r.queue {
			if r.err != nil {
				continue
			}
			if err := sink.Ops(ops); err != nil {
				r.err = fmt.Errorf("httpload: record operations: %w", err)
				cancel(r.err)
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
