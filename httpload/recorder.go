package httpload

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/record"
)

// recorder passes batches of operations to the sink from its own goroutine, so that a slow
// disk does not block an event loop unless the queue is full, which the loops' own measures
// then show.
type recorder struct {
	queue chan []record.Op
	done  chan struct{}
	err   error // valid after close
}

func newRecorder(sink func([]record.Op) error, cancel context.CancelCauseFunc) *recorder {
	r := &recorder{queue: make(chan []record.Op, 8), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for ops := range r.queue {
			if r.err != nil {
				continue
			}
			if err := sink(ops); err != nil {
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
