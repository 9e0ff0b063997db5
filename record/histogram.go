package record

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms count nanoseconds in buckets of three significant figures: a
// value read back differs from the one recorded by at most 0.1 %. The promise
// holds from MinTracked to MaxTracked; below, values are kept too, to the
// nanosecond. Values above MaxTracked are counted as overflow, never clamped:
// a quantile that falls among them is +Inf.
const (
	MinTracked         = time.Microsecond
	MaxTracked         = time.Hour
	SignificantFigures = 3
)

// histogram is a dense HDR histogram of nanoseconds (270 kB) and the count of
// what it could not hold.
type histogram struct {
	h    *hdrhistogram.Histogram
	over int64
}

func newHistogram() *histogram {
	return &histogram{h: hdrhistogram.New(1, int64(MaxTracked), SignificantFigures)}
}

// record counts one value; a negative one counts as 0 (an arrival that started
// early by the resolution of a timer has no lag).
func (h *histogram) record(ns int64) {
	if ns > int64(MaxTracked) {
		h.over++
		return
	}
	// The range is checked above: it cannot fail.
	_ = h.h.RecordValue(max(ns, 0))
}

func (h *histogram) count() int64 { return h.h.TotalCount() + h.over }

func (h *histogram) reset() {
	h.h.Reset()
	h.over = 0
}

func (h *histogram) merge(o *histogram) error {
	if dropped := h.h.Merge(o.h); dropped != 0 {
		return fmt.Errorf("record: merge histograms: %d values out of range", dropped)
	}
	h.over += o.over
	return nil
}

// pack is the sparse form of h, for keeping and storing.
func (h *histogram) pack() (*Histogram, error) {
	p := newPacked()
	if dropped := p.MergeFrom(h.h); dropped != 0 {
		return nil, fmt.Errorf("record: pack histogram: %d values out of range", dropped)
	}
	return &Histogram{p: p, over: h.over}, nil
}

func newPacked() *hdrhistogram.PackedHistogram {
	return hdrhistogram.NewPacked(1, int64(MaxTracked), SignificantFigures)
}

// Histogram is a sparse histogram of times, as stored for one window or one
// trial. See [MinTracked] for its precision.
type Histogram struct {
	p    *hdrhistogram.PackedHistogram
	over int64
}

// Count is the number of values, those above [MaxTracked] included.
func (h *Histogram) Count() int64 {
	if h == nil {
		return 0
	}
	return h.p.TotalCount() + h.over
}

// Overflow is the number of values above [MaxTracked].
func (h *Histogram) Overflow() int64 {
	if h == nil {
		return 0
	}
	return h.over
}

// Each calls fn with every bucket's value (seconds) and count, in ascending
// order, until it returns false. Overflow comes last, as +Inf.
func (h *Histogram) Each(fn func(seconds float64, count int64) bool) {
	if h == nil {
		return
	}
	stopped := false
	h.p.ForEachBucket(func(v, n int64) bool {
		stopped = !fn(seconds(v), n)
		return !stopped
	})
	if !stopped && h.over > 0 {
		fn(math.Inf(1), h.over)
	}
}

// Quantile is the smallest recorded value (seconds) that at least the share q
// of all values do not exceed: the ⌈q·n⌉-th in order. NaN when there are none;
// +Inf when it lies above [MaxTracked].
func (h *Histogram) Quantile(q float64) float64 { return quantile(h.Each, h.Count(), q) }

// Merge adds the values of o.
func (h *Histogram) Merge(o *Histogram) error {
	if o == nil {
		return nil
	}
	if dropped := h.p.Merge(o.p); dropped != 0 {
		return fmt.Errorf("record: merge histograms: %d values out of range", dropped)
	}
	h.over += o.over
	return nil
}

func seconds(ns int64) float64 { return float64(ns) / float64(time.Second) }

func quantile(each func(func(float64, int64) bool), n int64, q float64) float64 {
	if n == 0 || !(q >= 0 && q <= 1) {
		return math.NaN()
	}
	rank := max(int64(math.Ceil(q*float64(n))), 1)
	at := math.NaN()
	var seen int64
	each(func(v float64, n int64) bool {
		seen += n
		at = v
		return seen < rank
	})
	return at
}
