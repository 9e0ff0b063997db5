package link

import (
	"math/bits"
	"slices"
	"time"
)

// Lateness is a histogram of how much later than due packets left. Buckets are
// logarithmic, eight to a doubling, so a quantile is at most 12.5 % too high; the
// bucket index of a value v ≥ 8 ns is 8·⌊log2 v⌋ − 16 + its next three bits.
type Lateness struct {
	Counts []int64       // trailing zeros left out
	Max    time.Duration // since the emulator started
}

const latenessBuckets = 8 * 42 // up to 4.8 hours

func latenessBucket(ns int64) int {
	if ns < 8 {
		return int(max(ns, 0))
	}
	exp := bits.Len64(uint64(ns)) - 1 // ≥ 3
	return min((exp-2)*8+int(ns>>(exp-3))&7, latenessBuckets-1)
}

// latenessBound is the largest value of a bucket.
func latenessBound(bucket int) int64 {
	if bucket < 8 {
		return int64(bucket)
	}
	exp := bucket/8 + 2
	return (int64(8+bucket%8)+1)<<(exp-3) - 1
}

// N is the number of packets counted.
func (l Lateness) N() (n int64) {
	for _, c := range l.Counts {
		n += c
	}
	return n
}

// Quantile returns an upper bound, within 12.5 %, of the q-quantile; 0 when
// nothing was counted.
func (l Lateness) Quantile(q float64) time.Duration {
	n := l.N()
	if n == 0 {
		return 0
	}
	rank := min(int64(q*float64(n)), n-1)
	for b, c := range l.Counts {
		if rank < c {
			return min(time.Duration(latenessBound(b)), l.Max)
		}
		rank -= c
	}
	return l.Max
}

// Mean returns an upper bound, within 12.5 %, of the mean; 0 when nothing was
// counted.
func (l Lateness) Mean() time.Duration {
	n, sum := int64(0), 0.0
	for b, c := range l.Counts {
		n += c
		sum += float64(c) * float64(min(latenessBound(b), int64(l.Max)))
	}
	if n == 0 {
		return 0
	}
	return time.Duration(sum / float64(n))
}

// merge adds what another thread counted.
func (l *Lateness) merge(o Lateness) {
	if len(o.Counts) > len(l.Counts) {
		l.Counts = append(l.Counts, make([]int64, len(o.Counts)-len(l.Counts))...)
	}
	for i, c := range o.Counts {
		l.Counts[i] += c
	}
	l.Max = max(l.Max, o.Max)
}

// Since returns what was counted after before was taken. Its Max is the bound of
// its own highest bucket.
func (l Lateness) Since(before Lateness) Lateness {
	d := Lateness{Counts: slices.Clone(l.Counts)}
	for i := range d.Counts {
		if i < len(before.Counts) {
			d.Counts[i] -= before.Counts[i]
		}
		if d.Counts[i] > 0 {
			d.Max = min(time.Duration(latenessBound(i)), l.Max)
		}
	}
	return d
}

// latenessRecorder is the histogram being written.
type latenessRecorder struct {
	counts [latenessBuckets]int64
	max    int64
}

func (r *latenessRecorder) add(ns int64) {
	r.counts[latenessBucket(ns)]++
	r.max = max(r.max, ns)
}

func (r *latenessRecorder) snapshot() Lateness {
	last := 0
	for i, c := range r.counts {
		if c > 0 {
			last = i + 1
		}
	}
	return Lateness{slices.Clone(r.counts[:last]), time.Duration(r.max)}
}
