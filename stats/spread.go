package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
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

// MeanLogRatio is the geometric mean over groups of the ratio of the geometric
// means of xs and ys, with Student's interval for unequal variances: the variances
// of all means add up, with the degrees of freedom of Satterthwaite (Biometrics
// Bulletin 2, 1946). P is that of the hypothesis that it is 1. A group needs two
// positive values on either side, and is left out otherwise; N is how many groups
// were not.
func MeanLogRatio(groups [][2][]float64, conf float64) (ratio Interval, p float64) {
	sum, variance, lower := 0.0, 0.0, 0.0
	n := 0
	for _, g := range groups {
		mx, vx, okx := meanLog(g[0])
		my, vy, oky := meanLog(g[1])
		if !okx || !oky {
			continue
		}
		n++
		sum += mx - my
		variance += vx + vy
		lower += vx*vx/float64(len(g[0])-1) + vy*vy/float64(len(g[1])-1)
	}
	if n == 0 {
		return unknown(0, "no group has two positive values on either side"), math.NaN()
	}
	mean, se := sum/float64(n), math.Sqrt(variance)/float64(n)
	ratio = Interval{Mid: math.Exp(mean), Conf: conf, N: n}
	if se == 0 {
		ratio.Lo, ratio.Hi = ratio.Mid, ratio.Mid
		return ratio, map[bool]float64{true: 1, false: 0}[mean == 0]
	}
	t := distuv.StudentsT{Sigma: 1, Nu: variance * variance / lower}
	reach := t.Quantile(1-(1-conf)/2) * se
	ratio.Lo, ratio.Hi = math.Exp(mean-reach), math.Exp(mean+reach)
	return ratio, 2 * t.Survival(math.Abs(mean)/se)
}

// meanLog is the mean of the logarithms and its variance.
func meanLog(xs []float64) (mean, variance float64, ok bool) {
	if len(xs) < 2 {
		return 0, 0, false
	}
	logs := make([]float64, len(xs))
	for i, x := range xs {
		if !(x > 0) || math.IsInf(x, 0) {
			return 0, 0, false
		}
		logs[i] = math.Log(x)
		mean += logs[i] / float64(len(xs))
	}
	for _, l := range logs {
		variance += (l - mean) * (l - mean)
	}
	return mean, variance / float64(len(xs)-1) / float64(len(xs)), true
}
