package stats

import "math"

// CostPoint is the time that one trial's operations took.
type CostPoint struct {
	RTT  float64 // seconds, measured
	Size float64 // file bytes of one operation
	Time float64 // seconds of one operation: the trial's median
	Cell int     // equal for trials of the same cell: replicates
}

// CostModel is t = A + R·RTT + B·size, with B shared by all sizes and R
// constant within each segment of sizes. A is shared too, unless the smallest
// sizes form a segment of their own, see [CostSegment]. Where it does not hold,
// more than one segment may stand for something else than round trips, such as
// a rate that changes with size.
type CostModel struct {
	A        Interval // seconds; where the smallest sizes have their own, that of all others
	B        Interval // seconds per byte
	Segments []CostSegment
	Holds    bool      // the residuals are no larger than what repeated trials differ by
	Why      string    // why it does not hold, or what limits the fit; empty: nothing to say
	Residual []float64 // of each point, relative: time / predicted − 1
	Scale    float64   // robust spread of the residuals (relative)
	Points   int
	Cells    int
}

// CostSegment is a range of sizes, both ends included, over which R is constant.
type CostSegment struct {
	From, To float64  // bytes: the smallest and the largest size measured
	A        Interval // seconds: the model's, unless OwnA
	OwnA     bool     // the constant part differs from that of larger sizes; only ever in the first segment
	R        Interval // round trips
}

// Predict is the model's time in seconds for one operation. Beyond the sizes
// that were measured the nearest segment is taken; between two segments the
// border is the geometric mean of the sizes beside it. A part that the data did
// not identify (no interval, NaN) counts as 0: it is in A, for the round trip
// or the size at which everything was measured. NaN when nothing was fitted.
func (m CostModel) Predict(rtt, size float64) float64 {
	if len(m.Segments) == 0 {
		return math.NaN()
	}
	s := m.Segments[m.segment(size)]
	return s.A.Mid + identified(s.R.Mid)*rtt + identified(m.B.Mid)*size
}

// segment is the index of the segment to which a size belongs.
func (m CostModel) segment(size float64) int {
	k := 0
	for k+1 < len(m.Segments) && size > math.Sqrt(m.Segments[k].To*m.Segments[k+1].From) {
		k++
	}
	return k
}

func identified(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}
