package httpload

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/plimsoll-project/plimsoll/record"
)

const (
	batchSize  = record.BlockSize // operations handed over at once
	maxClasses = 64               // distinct classes kept, whatever a server thinks of
	otherClass = "other"
)

// tally is what one event loop (or all net/http workers together, under a
// lock) counts. Memory is constant.
type tally struct {
	rec     *recorder
	link    *linkUse
	batch   []record.Op
	flushed int64

	outcomes map[record.Outcome]int64
	classes  map[string]int64
	ops      int64
	ok       int64
	failed   int64
	bytes    int64
	last     int64 // when the last operation was decided, ns since the epoch

	warmed int64 // bytes of the warm-up

	dials, reconnects, redirects, chunked int64

	lag, late, wait, first *hdrhistogram.Histogram // ns
}

func newTally(rec *recorder, link *linkUse) *tally {
	hist := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Hour), 2) }
	return &tally{rec: rec, link: link, batch: make([]record.Op, 0, batchSize), outcomes: map[record.Outcome]int64{},
		classes: map[string]int64{},
		lag:     hist(), late: hist(), wait: hist(), first: hist()}
}

func observe(h *hdrhistogram.Histogram, ns int64) {
	h.RecordValue(min(max(ns, 0), int64(time.Hour)))
}

// begin counts an operation that starts; possible is when it could have.
func (t *tally) begin(op *record.Op, possible int64) {
	t.link.underway.Add(1)
	if op.Kind == record.OpWarmup {
		return
	}
	observe(t.lag, op.Start-op.Intended)
	observe(t.late, op.Start-possible)
}

// waited notes how long received bytes may have lain ready.
func (t *tally) waited(ns int64) { observe(t.wait, ns) }

// end counts an operation and hands it to the recorder.
func (t *tally) end(op *record.Op) {
	t.link.underway.Add(-1)
	if op.Kind == record.OpWarmup {
		t.warmed += op.Bytes
		t.hand(op)
		return
	}
	t.ops++
	t.bytes += op.Bytes
	t.last = max(t.last, op.LastByte)
	t.outcomes[op.Outcome]++
	switch {
	case op.Outcome == record.OK:
		t.ok++
	case op.Outcome.ServerFailure():
		t.failed++
	}
	if op.Class != "" {
		if t.classes[op.Class] == 0 && len(t.classes) >= maxClasses {
			op.Class = otherClass
		}
		t.classes[op.Class]++
	}
	if op.FirstByte > 0 {
		observe(t.first, op.FirstByte-op.Start)
	}
	t.hand(op)
}

// hand gives an operation to the recorder.
func (t *tally) hand(op *record.Op) {
	t.batch = append(t.batch, *op)
	if len(t.batch) == batchSize {
		t.flush(op.LastByte)
	}
}

func (t *tally) flush(now int64) {
	t.flushed = now
	t.rec.progress(t)
	if len(t.batch) > 0 {
		t.batch = t.rec.put(t.batch)
	}
}

// flushAfter flushes what is older than window nanoseconds.
func (t *tally) flushAfter(now, window int64) {
	if now-t.flushed >= window {
		t.flush(now)
	}
}

// addTo sums t into a result and into the histograms of another tally.
func (t *tally) addTo(r *Result, sum *tally) {
	for o, n := range t.outcomes {
		r.Outcomes[o.String()] += n
	}
	for c, n := range t.classes {
		if r.Classes == nil {
			r.Classes = map[string]int64{}
		}
		r.Classes[c] += n
	}
	r.Ops += t.ops
	r.Bytes += t.bytes
	r.Warmed += t.warmed
	r.Dials += t.dials
	r.Reconnects += t.reconnects
	r.Chunked += t.chunked
	r.Redirects += t.redirects
	sum.lag.Merge(t.lag)
	sum.late.Merge(t.late)
	sum.wait.Merge(t.wait)
	sum.first.Merge(t.first)
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	s := func(ns int64) float64 { return float64(ns) / 1e9 }
	return Quantiles{P50: s(h.ValueAtQuantile(50)), P99: s(h.ValueAtQuantile(99)), Max: s(h.Max())}
}
