package stats

// CostPoint is the time that one trial's operations took.
type CostPoint struct {
	RTT  float64 // seconds, measured
	Size float64 // file bytes of one operation
	Time float64 // seconds of one operation: the trial's median
	Cell int     // equal for trials of the same cell: replicates
}

// CostModel is t = A + R·RTT + B·size, with A and B shared by all sizes and R
// constant within each segment of sizes.
type CostModel struct {
	A        Interval // seconds
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
	From, To float64 // bytes
	R        Interval
}
