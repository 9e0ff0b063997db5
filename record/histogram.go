package record

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms count nanoseconds in buckets of three significant figures: a value read back
// differs from the recorded one by at most 0.1 %; values below a microsecond are exact.
// Values above maxTracked are counted as overflow, not clamped: a quantile among them is
// +Inf.
const (
	maxTracked         = time.Hour
	significantFigures = 3
)

// histogram is a dense HDR histogram of nanoseconds (270 kB) and the number of values
// above its range.
type histogram struct {
	h    *hdrhistogram.Histogram
	over int64
}

func newHistogram() *histogram {
	return &histogram{h: hdrhistogram.New(1, int64(maxTracked), significantFigures)}
}

// record counts one value; a negative one counts as 0.
func (h *histogram) record(ns int64) {
	if ns > int64(maxTracked) {
		h.over++
		return
	}
	// It cannot fail: the range was checked above.
	_ = h.h.RecordValue(max(ns, 0))
}

// count returns the number of values.
func (h *histogram) count() int64 { return h.h.TotalCount() + h.over }

// decode adds a stored histogram: HdrHistogram V2, compressed, in base64.
func (h *histogram) decode(hdr string, over int64) error {
	p, err := hdrhistogram.DecodePacked([]byte(hdr))
	if err != nil {
		return fmt.Errorf("histogram: %w: %w", ErrCorrupt, err)
	}
	if dropped := p.MergeInto(h.h); dropped != 0 {
		return fmt.Errorf("histogram: %w: %d values out of range", ErrCorrupt, dropped)
	}
	h.over += over
	return nil
}

// each yields every bucket's value (seconds) and count, in ascending order. Overflow comes last, as
// +Inf.
func (h *histogram) each(yield func(seconds float64, count int64) bool) {
	for _, b := range h.h.Distribution() {
		if b.Count > 0 && !yield(float64(b.From)/float64(time.Second), b.Count) {
			return
		}
	}
	if h.over > 0 {
		yield(math.Inf(1), h.over)
	}
}

// quantile returns the smallest recorded value (seconds) that at least the share q of all
// values do not exceed: the ⌈q·n⌉-th in order. NaN without values; +Inf above maxTracked.
func (h *histogram) quantile(q float64) float64 {
	if !(q >= 0 && q <= 1) {
		return math.NaN()
	}
	rank := max(int64(math.Ceil(q*float64(h.count()))), 1)
	var seen int64
	for v, n := range h.each {
		if seen += n; seen >= rank {
			return v
		}
	}
	return math.NaN()
}
