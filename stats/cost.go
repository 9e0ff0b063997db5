package stats

import "math"

// CostPoint is the time that one trial's operations took.
type CostPoint struct {
	RTT  float64 // seconds, measured
	Size float64 // file bytes of one operation
	Time float64 // seconds of one operation: the trial's median
	Cell int     // equal for trials of the same cell: replicates
	// Block is equal for trials of one time. What disturbs a system then disturbs all of
	// its cells alike, so blocks are what the intervals are over.
	Block int
}

// CostModel is t = A + R·RTT + B·size.
type CostModel struct {
	A Interval // seconds
	R Interval // round trips
	B Interval // seconds per byte
	// that cells miss the model by chance alone; NaN: nothing was repeated, or no cell is left to
	// test with
	P        float64
	Holds    bool      // P is not significant at 1 %
	Why      string    // why it does not hold, or what limits the fit; empty: nothing to say
	Residual []float64 // of each point, relative: time / predicted − 1
	Points   int
}

// Predict is the model's time in seconds for one operation. A part that the data
// did not identify (no interval, NaN) counts as 0: it is in A, for the round trip
// or the size at which everything was measured. NaN when nothing was fitted.
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
