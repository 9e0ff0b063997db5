package stats

import (
	"cmp"
	"math"
	"slices"
)

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

// Lifetime is the time until an event happened, or for which it was observed without
// happening. If it can never happen any more, Time is +Inf.
type Lifetime struct {
	Time     float64
	Happened bool
	N        int64 // how many there are of it
}

// ProductLimit returns the quantile q of lifetimes by Kaplan and Meier (Nonparametric estimation
// from incomplete observations, J. Amer. Statist. Assoc. 53, 1958): the shortest time by which the
// event has happened to the share q; +Inf if the share is not reached. A lifetime that is censored
// at the time of another's event is still at risk at that time.
func ProductLimit(all []Lifetime, q float64) float64 {
	all = slices.Clone(all)
	order := map[bool]int{true: 0, false: 1}
	slices.SortFunc(all, func(a, b Lifetime) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), order[a.Happened]-order[b.Happened])
	})
	watched := int64(0)
	for _, l := range all {
		watched += l.N
	}
	longer := 1.0
	for _, l := range all {
		if l.Happened {
			longer *= 1 - float64(l.N)/float64(watched)
			// Allow for the rounding of the product.
			if 1-longer >= q-1e-9 {
				return l.Time
			}
		}
		watched -= l.N
	}
	return math.Inf(1)
}
