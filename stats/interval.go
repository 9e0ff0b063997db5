package stats

import "math"

// Interval is an estimate with its confidence interval.
type Interval struct {
	Mid    float64 // the estimate: a median, a ratio, a share
	Lo, Hi float64 // ±Inf where the data do not bound it
	Conf   float64 // actual confidence; see each function
	N      int     // number of values (of the smaller sample, if there are two)
	Warn   string  // why there is no ratio, or what the reader of one must know; may be empty
}

// Bounded reports whether both ends are finite.
func (i Interval) Bounded() bool {
	return !math.IsInf(i.Lo, 0) && !math.IsInf(i.Hi, 0) && !math.IsNaN(i.Lo) && !math.IsNaN(i.Hi)
}

// Contains reports whether v lies in the interval, ends included.
func (i Interval) Contains(v float64) bool { return i.Lo <= v && v <= i.Hi }

// unbounded is an estimate from n values without an interval.
func unbounded(mid float64, n int) Interval {
	return Interval{Mid: mid, Lo: math.Inf(-1), Hi: math.Inf(1), Conf: 1, N: n}
}
