package stats

import "math"

// CostPoint is the time that one trial's operations took.
type CostPoint struct {
	RTT  float64 // seconds, measured
	Size float64 // file bytes of one operation
	Time float64 // seconds of one operation: the trial's median
	Cell int     // equal for trials of the same cell: replicates
	// Block is equal for trials that were run together. A disturbance then affects all cells
	// of a system alike, so the intervals are over blocks.
	Block int
}

// CostModel is t = A + R·RTT + B·size.
type CostModel struct {
	A Interval // seconds
	R Interval // round trips
	B Interval // seconds per byte
	// p-value that cells deviate from the model by chance only; NaN: nothing was repeated, or
	// there are no cells left for a test
	P        float64
	Holds    bool      // P is not significant at 1 %
	Why      string    // why it does not hold, or what limits the fit; may be empty
	Residual []float64 // of each point, relative: time / predicted − 1
	Points   int
}

// Predict returns the model's time in seconds for one operation. A parameter that the
// data did not identify (no interval, NaN) counts as 0: it is included in A, for the
// round trip or size of all measurements. NaN if nothing was fitted.
func (m CostModel) Predict(rtt, size float64) float64 {
	if m.Points == 0 {
		return math.NaN()
	}
	return m.A.Mid + identified(m.R.Mid)*rtt + identified(m.B.Mid)*size
}

func identified(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}
