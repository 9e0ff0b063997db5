package httpload

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/plimsoll-project/plimsoll/record"
)

const batchSize = record.BlockSize // operations per batch

// tally has the counters of one event loop (or of all net/http workers, under a lock). Its
// memory is constant.
type tally struct {
	rec     *recorder
	link    *linkUse
	batch   []record.Op
	flushed int64
	last    int64 // when the last operation was decided, ns since the epoch

	warmed    int64            // bytes of the warm-up
	redirects int64            // followed
	chunked   int64            // chunked answers, which are received by copying even in drop mode
	local     map[string]int64 // operations that failed on this machine, by class

	// In ns: how late operations started, how long received bytes may have been ready, and times to the first byte.
	late, wait, first *hdrhistogram.Histogram
}

func newTally(rec *recorder, link *linkUse) *tally {
	hist := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Hour), 2) }
	return &tally{rec: rec, link: link, batch: make([]record.Op, 0, batchSize), local: map[string]int64{},
		late: hist(), wait: hist(), first: hist()}
}

func observe(h *hdrhistogram.Histogram, ns int64) {
	h.RecordValue(min(max(ns, 0), int64(time.Hour)))
}

// begin counts the start of an operation; possible is its earliest possible start.
func (t *tally) begin(op *record.Op, possible int64) {
	t.link.underway.Add(1)
	if op.Kind != record.OpWarmup {
		observe(t.late, op.Start-possible)
	}
}

// end counts the end of an operation and passes it to the recorder. A warm-up without an answer, or
// with wrong bytes, counts as an operation.
func (t *tally) end(op *record.Op, req *request) {
	t.link.underway.Add(-1)
	switch op.Outcome {
	case record.WrongBytes, record.Stalled, record.Starved, record.Deadline:
		op.Kind = req.kind()
	}
	if op.Kind == record.OpWarmup {
		t.warmed += op.Bytes
	} else {
		t.count(op)
	}
	t.batch = append(t.batch, *op)
	if len(t.batch) == batchSize {
		t.flush(op.LastByte)
	}
}

func (t *tally) count(op *record.Op) {
	t.link.ended.Add(1)
	t.last = max(t.last, op.LastByte)
	if strings.HasPrefix(op.Class, classLocalFailure) {
		t.local[op.Class]++
	}
	if op.FirstByte > 0 {
		observe(t.first, op.FirstByte-op.Start)
	}
}

func (t *tally) flush(now int64) {
	t.flushed = now
	if len(t.batch) > 0 {
		t.batch = t.rec.put(t.batch)
	}
}

// addTo sums t into another tally.
func (t *tally) addTo(sum *tally) {
	sum.warmed, sum.redirects, sum.chunked = sum.warmed+t.warmed, sum.redirects+t.redirects, sum.chunked+t.chunked
	for class, n := range t.local {
		sum.local[class] += n
	}
	sum.late.Merge(t.late)
	sum.wait.Merge(t.wait)
	sum.first.Merge(t.first)
}

// seconds returns a percentile of a histogram.
func seconds(h *hdrhistogram.Histogram, percent float64) float64 {
	return float64(h.ValueAtQuantile(percent)) / 1e9
}

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

// fullLink is the share of the link's rate above which it counts as full. The link carries
// more than body bytes: with hundreds of connections, much is dropped and retransmitted.
const fullLink = 0.5

// linkUse is the use of a link by all operations of a trial. It is safe for concurrent
// use.
type linkUse struct {
	rate     float64 // body bytes per second; 0: unknown
	shards   int64   // number of shards with equal load on the link
	bytes    atomic.Int64
	others   atomic.Int64 // bytes of the other shards, as of their last reports
	underway atomic.Int64 // operations
	ended    atomic.Int64 // operations, without warm-ups
}

// carried returns how many bytes all shards have received over the link.
func (l *linkUse) carried() int64 { return l.bytes.Load() + l.others.Load() }

// starved reports whether an operation of length bytes (-1: unknown) that received nothing
// for ns nanoseconds, since the link had carried before bytes, was starved by the link: the
// others filled the link, and a fair share of it in that time would not have been enough
// for the whole operation.
func (l *linkUse) starved(before, ns, length int64) bool {
	could := l.rate * float64(ns) / 1e9
	fair := could / float64(max(l.underway.Load(), 1)*l.shards)
	return could > 0 && float64(l.carried()-before) >= fullLink*could && (length < 0 || fair < float64(length))
}
