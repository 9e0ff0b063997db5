package record

import (
	"iter"
	"math"
)

// productLimit returns the quantile q of the Kaplan–Meier estimate: with d_i events and n_i
// operations still watched just before time t_i, the share that took longer than t is
// S(t) = Π_{t_i ≤ t} (1 − d_i/n_i). An operation censored at the time of an event counts as
// watched at that time.
func productLimit(events, cut *histogram, q float64) float64 {
	if cut.count() == 0 {
		return events.quantile(q)
	}
	next, stop := iter.Pull2(iter.Seq2[float64, int64](cut.each))
	defer stop()
	cutAt, cuts, more := next()

	watched := float64(events.count() + cut.count())
	longer := 1.0
	result := math.Inf(1)
	events.each(func(t float64, d int64) bool {
		for more && cutAt < t {
			watched -= float64(cuts)
			cutAt, cuts, more = next()
		}
		longer *= 1 - float64(d)/watched
		watched -= float64(d)
		// Allow for the rounding of the product.
		if 1-longer >= q-1e-9 {
			result = t
			return false
		}
		return true
	})
	return result
}
