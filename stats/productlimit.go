package stats

import (
	"cmp"
	"math"
	"slices"
)

// Lifetime is a time after which something happened, or for which it was watched
// in vain. What never can happen any more was watched for ever: Time is +Inf.
type Lifetime struct {
	Time     float64
	Happened bool
}

// ProductLimit is the quantile q of some lifetimes after Kaplan and Meier
// (Nonparametric estimation from incomplete observations, J. Amer. Statist. Assoc.
// 53, 1958): the shortest time by which it has happened to the share q. +Inf when
// that is not reached. One that was watched until the very moment at which it
// happened to another was still there.
func ProductLimit(all []Lifetime, q float64) float64 {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Lifetime) int {
		switch c := cmp.Compare(a.Time, b.Time); {
		case c != 0 || a.Happened == b.Happened:
			return c
		case a.Happened:
			return -1
		}
		return 1
	})
	longer := 1.0
	for i, l := range all {
		if !l.Happened {
			continue
		}
		longer *= 1 - 1/float64(len(all)-i)
		// The share is a product of quotients: allow for their rounding.
		if 1-longer >= q-1e-9 {
			return l.Time
		}
	}
	return math.Inf(1)
}
