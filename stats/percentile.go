package stats

import "math"

// minPercentileN is the smallest number of values for any percentile.
const minPercentileN = 10

// PercentileN returns how many values the percentile q (0.99) needs: at least one expected
// beyond it, and ten in total. This is the rule of Tahoe-LAFS's statistics: the 90th of 10,
// the 99th of 100, the 99.9th of 1000.
func PercentileN(q float64) int64 {
	tail := min(q, 1-q)
	if !(tail > 0) {
		return math.MaxInt64
	}
	// 1/(1−0.99) is a little more than 100 in binary.
	return max(minPercentileN, int64(math.Ceil(1/tail-1e-6)))
}
