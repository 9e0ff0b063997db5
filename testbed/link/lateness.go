package link

import (
	"math/bits"
	"time"
)

// Lateness is a histogram of how much later than due packets left. Buckets are
// logarithmic, eight to a doubling, so a quantile is at most 12.5 % too high; the
// bucket index of a value v ≥ 8 ns is 8·⌊log2 v⌋ − 16 + its next three bits.
type Lateness struct {
	Counts []int64       // of all buckets; nil: nothing was counted
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

func (l *Lateness) add(ns int64) {
	if l.Counts == nil {
		l.Counts = make([]int64, latenessBuckets)
	}
	l.Counts[latenessBucket(ns)]++
	l.Max = max(l.Max, time.Duration(ns))
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
	sum := 0.0
	for b, c := range l.Counts {
		sum += float64(c) * float64(min(latenessBound(b), int64(l.Max)))
	}
	return time.Duration(sum / float64(max(l.N(), 1)))
}

// merge adds what another thread counted.
func (l *Lateness) merge(o Lateness) {
	if l.Counts == nil {
		l.Counts = make([]int64, len(o.Counts))
	}
	for i, c := range o.Counts {
		l.Counts[i] += c
	}
	l.Max = max(l.Max, o.Max)
}

// Since returns what was counted after before was taken. Its Max is the bound of
// its own highest bucket.
func (l Lateness) Since(before Lateness) Lateness {
	d := Lateness{Counts: make([]int64, latenessBuckets)}
	copy(d.Counts, l.Counts)
	for i, c := range before.Counts {
		d.Counts[i] -= c
	}
	for i, c := range d.Counts {
		if c > 0 {
			d.Max = min(time.Duration(latenessBound(i)), l.Max)
		}
	}
	return d
}
