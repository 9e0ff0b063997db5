package collect

import "slices"

// Told is a number as one poll told it: it was that at some moment between the
// poll's start and its end, in seconds.
type Told struct{ Start, End, Value float64 }

// Rate is by how much a number grew per second while something was done, from one
// moment to another, as polls tell it, given in their order: from the last poll
// that ended before it began to the first that began after it had ended. All that
// those two saw come is of that time, however long before and after it they were:
// nothing grows where nothing is done. Where no poll was before, or none after,
// the time is counted from the middle of the first or to that of the last.
//
// Where polls are few, hi is what came between those two over the shortest time
// that it can have taken, and lo what polls within the time saw come over all of
// it; 0 where there are not two. False: there is no such pair of polls.
func Rate(told []Told, from, to float64) (value, lo, hi float64, ok bool) {
	if len(told) < 2 || !(to > from) {
		return 0, 0, 0, false
	}
	before, after := told[0], told[len(told)-1]
	var within []Told
	for _, p := range slices.Backward(told) {
		if p.End <= from {
			before = p
			break
		}
		if p.Start >= to {
			after = p
		} else if p.Start >= from && p.End <= to {
			within = append(within, p)
		}
	}
	a, b := max(from, (before.Start+before.End)/2), min(to, (after.Start+after.End)/2)
	if !(b > a) {
		return 0, 0, 0, false
	}
	grown := after.Value - before.Value
	value = grown / (b - a)
	lo, hi = min(value, 0), value
	if shortest := min(to, after.Start) - max(from, before.End); shortest > 0 {
		hi = max(value, grown/shortest)
	}
	if n := len(within); n > 1 {
		lo = min(value, (within[0].Value-within[n-1].Value)/(b-a))
	}
	return value, lo, hi, true
}
