package httpload

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/plimsoll-project/plimsoll/record"
)

const (
	batchSize  = record.BlockSize // operations per batch
	maxClasses = 64               // largest number of distinct classes
	otherClass = "other"
)

// Counts are sums over operations: of an event loop, or of all generators.
type Counts struct {
	Ops int64 // with any outcome
	// received bytes of objects, with any outcome; bodies of error answers do not count
	Bytes    int64
	Warmed   int64 // bytes of the warm-up, which are in no other number
	Outcomes map[string]int64
	Classes  map[string]int64

	Dials      int64 // connections opened
	Reconnects int64 // requests sent again because the server had closed a kept connection
	Redirects  int64 // followed
	Chunked    int64 // chunked answers, which are received by copying even in drop mode
}

func (c *Counts) add(of *Counts) {
	c.Ops, c.Bytes, c.Warmed = c.Ops+of.Ops, c.Bytes+of.Bytes, c.Warmed+of.Warmed
	c.Dials, c.Reconnects = c.Dials+of.Dials, c.Reconnects+of.Reconnects
	c.Redirects, c.Chunked = c.Redirects+of.Redirects, c.Chunked+of.Chunked
	c.Outcomes, c.Classes = added(c.Outcomes, of.Outcomes), added(c.Classes, of.Classes)
}

func added(a, b map[string]int64) map[string]int64 {
	sum := map[string]int64{}
	for _, counts := range []map[string]int64{a, b} {
		for k, n := range counts {
			sum[k] += n
		}
	}
	return sum
}

// tally has the counters of one event loop (or of all net/http workers, under a lock). Its
// memory is constant.
type tally struct {
	Counts
	rec     *recorder
	link    *linkUse
	batch   []record.Op
	flushed int64
	last    int64 // when the last operation was decided, ns since the epoch

	lag, late, wait, first *hdrhistogram.Histogram // ns
}

func newTally(rec *recorder, link *linkUse) *tally {
	hist := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Hour), 2) }
	return &tally{Counts: Counts{Outcomes: map[string]int64{}, Classes: map[string]int64{}}, rec: rec, link: link,
		batch: make([]record.Op, 0, batchSize), lag: hist(), late: hist(), wait: hist(), first: hist()}
}

func observe(h *hdrhistogram.Histogram, ns int64) {
	h.RecordValue(min(max(ns, 0), int64(time.Hour)))
}

// begin counts the start of an operation; possible is its earliest possible start.
func (t *tally) begin(op *record.Op, possible int64) {
	t.link.underway.Add(1)
	if op.Kind == record.OpWarmup {
		return
	}
	observe(t.lag, op.Start-op.Intended)
	observe(t.late, op.Start-possible)
}

// waited records how long received bytes may have been ready.
func (t *tally) waited(ns int64) { observe(t.wait, ns) }

// end counts the end of an operation and passes it to the recorder.
func (t *tally) end(op *record.Op) {
	t.link.underway.Add(-1)
	if op.Kind == record.OpWarmup {
		t.Warmed += op.Bytes
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
	t.Ops++
	t.Bytes += op.Bytes
	t.last = max(t.last, op.LastByte)
	t.Outcomes[op.Outcome.String()]++
	if op.Class != "" {
		if t.Classes[op.Class] == 0 && len(t.Classes) >= maxClasses {
			op.Class = otherClass
		}
		t.Classes[op.Class]++
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
	sum.Counts.add(&t.Counts)
	sum.lag.Merge(t.lag)
	sum.late.Merge(t.late)
	sum.wait.Merge(t.wait)
	sum.first.Merge(t.first)
}

// seconds returns a percentile of a histogram.
func seconds(h *hdrhistogram.Histogram, percent float64) float64 {
	return float64(h.ValueAtQuantile(percent)) / 1e9
}
