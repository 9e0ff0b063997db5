package collect

import (
	"math"
	"slices"
)

// Reported is a number as one poll read it: the number had this value at some moment
// between the poll's start and its end, in seconds.
type Reported struct{ Start, End, Value float64 }

// LeastCertain is how much of a rate must be certain for [Rate] to return it. A rate that
// may be up to a fifth lower is still useful, and its interval shows it.
const LeastCertain = 0.8

// Rate is by how much a number grew per second while something was done, from one
// moment to another, as polls read it, given in their order: from the last poll
// that ended before it began to the first that began after it had ended. Where no
// poll was before, or none after, the time is counted from the middle of the first
// or to that of the last.
//
// What the later of the two saw need not have come within the time: who takes data
// first may send them on after it, up to that poll. lo is what came at least: what
// the polls that ended within the time saw, or all of it over the time up to the end
// of that poll, whichever is more. Below [LeastCertain] of the whole the polls cannot tell
// a rate: then value is NaN, and it was hi at most, which is what came between those
// two over the shortest time that it can have taken. False: there is no such pair of
// polls.
func Rate(reported []Reported, from, to float64) (value, lo, hi float64, ok bool) {
	if len(reported) < 2 || !(to > from) {
		return 0, 0, 0, false
	}
	before, after := reported[0], reported[len(reported)-1]
	var within *Reported // the last that ended within the time, and is not after
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
		return 0, 0, 0, false
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
	return value, lo, hi, true
}
