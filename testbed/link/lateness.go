package link

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Lateness is how much later than due packets departed: the counts of an HDR histogram of nanoseconds,
// whose quantiles are at most a sixteenth too high; nil: no packet was counted.
type Lateness []int64

const longestLateness = time.Hour // later packets count as this late

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(longestLateness), 1) }

func (l Lateness) histogram() *hdrhistogram.Histogram {
	s := newHistogram().Export()
	s.Counts = l
	return hdrhistogram.Import(s)
}

// N is the number of packets counted.
func (l Lateness) N() int64 { return l.histogram().TotalCount() }

// Quantile returns an upper bound, within a sixteenth, of the q-quantile; 0 when
// nothing was counted.
func (l Lateness) Quantile(q float64) time.Duration {
	return time.Duration(l.histogram().ValueAtQuantile(q * 100))
}

// Mean returns the mean, within a sixteenth; 0 when nothing was counted.
func (l Lateness) Mean() time.Duration { return time.Duration(l.histogram().Mean()) }

// plus adds (sign 1) or subtracts (sign -1) other counts.
func (l Lateness) plus(o Lateness, sign int64) Lateness {
	sum := make(Lateness, max(len(l), len(o)))
	copy(sum, l)
	for i, c := range o {
		sum[i] += sign * c
	}
	return sum
}
