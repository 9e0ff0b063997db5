package stats

import (
	"math"
	"slices"
)

// minSpreadN is the smallest sample whose spread is compared. Fewer leave too
// little once the median is taken out: the test then finds differences where
// there are none.
const minSpreadN = 6

// SpreadP is the two-sided p-value of the hypothesis that xs and ys scatter alike
// around their own medians, relative to them: the rank test of [MannWhitney] over
// the absolute deviations of the logarithms (Fligner and Killeen, JASA 71, 1976,
// for ranks of deviations from medians). The deviation that is 0 because the
// median is one of the values, or the second of the two that are equal because it
// lies between them, says nothing of the spread and is left out (Hines and Hines,
// Biometrics 56, 2000): without that the test is too shy.
//
// NaN when a sample has fewer than six values, or one that is not positive and
// finite. Where values scatter evenly between two ends it errs somewhat too often,
// in 7 % where p says 5: decide at half the level. spread_test.go has how often.
func SpreadP(xs, ys []float64) float64 {
	x, y := deviations(xs), deviations(ys)
	if x == nil || y == nil {
		return math.NaN()
	}
	return MannWhitney(x, y)
}

// SpreadRatio is how many times farther xs scatter around their median than ys,
// both relative to it: the ratio of the median absolute deviations of the
// logarithms. NaN where [SpreadP] is, or when ys do not scatter.
func SpreadRatio(xs, ys []float64) float64 {
	x, y := deviations(xs), deviations(ys)
	if x == nil || y == nil || Median(y) == 0 {
		return math.NaN()
	}
	return Median(x) / Median(y)
}

// LogSpread is the median absolute deviation of the logarithms that [SpreadRatio]
// compares; NaN where it cannot be computed.
func LogSpread(xs []float64) float64 {
	d := deviations(xs)
	if d == nil {
		return math.NaN()
	}
	return Median(d)
}

// deviations are the absolute distances of the logarithms from their median, less
// the one that says nothing, in ascending order. nil: there is nothing to compute
// with.
func deviations(xs []float64) []float64 {
	if len(xs) < minSpreadN {
		return nil
	}
	logs := make([]float64, len(xs))
	for i, x := range xs {
		if !(x > 0) || math.IsInf(x, 0) {
			return nil
		}
		logs[i] = math.Log(x)
	}
	mid := Median(logs)
	for i := range logs {
		logs[i] = math.Abs(logs[i] - mid)
	}
	slices.Sort(logs)
	return logs[1:]
}
