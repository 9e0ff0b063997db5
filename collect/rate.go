package collect

import (
	"math"
	"slices"
)

// Reported is a number read by one poll: it had this value at some moment between the poll's start
// and its end, in seconds.
type Reported struct{ Start, End, Value float64 }

// LeastCertain is the share of a rate that must be certain for [Rate] to return it. A rate that may
// be up to a fifth lower is still useful, and its interval shows that.
const LeastCertain = 0.8

// Rate returns the growth per second of a number during an activity between the times from and to,
// as read by polls in temporal order. It compares the last poll that ended before from with the
// first poll that began after to. If there is no such poll before (or after), the time is counted
// from the middle of the first poll (or to the middle of the last).
//
// Not everything that the later poll saw need have come within the time: a system that buffers data
// may pass them on afterwards, until that poll. lo is the least that came: the growth seen by the
// polls that ended within the time, or all growth divided by the time until the end of the later
// poll, whichever is more. If it is below [LeastCertain] of the whole, the polls cannot determine a
// rate, and value is NaN. hi is the most that it can be: the growth between the two polls divided
// by the shortest time that it can have taken. All are NaN if there is no such pair of polls.
func Rate(reported []Reported, from, to float64) (value, lo, hi float64) {
	if len(reported) < 2 || !(to > from) {
		return math.NaN(), math.NaN(), math.NaN()
	}
	before, after := reported[0], reported[len(reported)-1]
	var within *Reported // the last poll that ended within the time, except after
	for i, p := range slices.Backward(reported) {
		if p.End <= from {
			before = p
			break
		}
		if p.Start >= to {
			after = p
		} else if within == nil && p.End <= to && i < len(reported)-1 {
			within = &reported[i]
		}
	}
	a, b := max(from, (before.Start+before.End)/2), min(to, (after.Start+after.End)/2)
	if !(b > a) {
		return math.NaN(), math.NaN(), math.NaN()
	}
	grown := after.Value - before.Value
	value = grown / (b - a)
	slowest, fastest := grown/(after.End-max(from, before.Start)), value
	if shortest := min(to, after.Start) - max(from, before.End); shortest > 0 {
		fastest = grown / shortest
	}
	if within != nil {
		if seen := (within.Value - before.Value) / (b - a); math.Abs(value-seen) < math.Abs(value-slowest) {
			slowest = seen
		}
	}
	lo, hi = min(value, slowest, fastest), max(value, slowest, fastest)
	if math.Abs(slowest) < LeastCertain*math.Abs(value) {
		value = math.NaN()
	}
	return value, lo, hi
}
