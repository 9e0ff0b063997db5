package stats

import "math"

// Summary describes the values of one metric over the trials of a cell.
type Summary struct {
	N        int
	Median   Interval // see [MedianCI]
	Min, Max float64
	Mean     float64
	// CV is the coefficient of variation: standard deviation (n−1) over mean.
	// NaN for fewer than two values or a mean of 0.
	CV float64
	// Missing is how many values were NaN: trials that did not yield the
	// metric. They are not among N.
	Missing int
}

// Summarize describes values; conf is that of the median's interval.
func Summarize(xs []float64, conf float64) Summary {
	present := make([]float64, 0, len(xs))
	for _, x := range xs {
		if !math.IsNaN(x) {
			present = append(present, x)
		}
	}
	s := Summary{N: len(present), Missing: len(xs) - len(present), Median: MedianCI(present, conf), CV: math.NaN()}
	sorted, ok := sorted(present)
	if !ok {
		s.Min, s.Max, s.Mean = math.NaN(), math.NaN(), math.NaN()
		return s
	}
	s.Min, s.Max = sorted[0], sorted[len(sorted)-1]
	for _, x := range sorted {
		s.Mean += x / float64(s.N)
	}
	if s.N > 1 && s.Mean != 0 {
		squares := 0.0
		for _, x := range sorted {
			squares += (x - s.Mean) * (x - s.Mean)
		}
		s.CV = math.Sqrt(squares/float64(s.N-1)) / math.Abs(s.Mean)
	}
	return s
}
