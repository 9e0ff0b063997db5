package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// minSlopeN is the number of points below which a slope carries a warning.
const minSlopeN = 6

// Slope is how much y grows per unit of x: the median of the slopes of all
// pairs of points with different x (Theil 1950; Sen 1968, Estimates of the
// regression coefficient based on Kendall's tau), which up to 29 % of arbitrary
// outliers cannot carry away. The interval holds the slopes that leave x and
// the residuals of y without a Kendall correlation at conf: from the k-th
// smallest to the k-th largest slope. For up to 50 points with different x it
// is exact, whatever the distribution of the residuals, and Conf is what is
// then kept (conf or a little more); with ties among x or more points it is
// Sen's normal approximation with his correction for ties. Ties among y make
// it wider than need be, never narrower. It asks for residuals that are
// independent of each other. With too few points to reach conf it is unbounded,
// and below 6 points Warn always says so.
func Slope(x, y []float64, conf float64) Interval {
	n := len(x)
	if n != len(y) {
		return unknown(min(n, len(y)), fmt.Sprintf("no slope: %d values of x and %d of y", n, len(y)))
	}
	for i := range x {
		if d := x[i] - x[i] + y[i] - y[i]; d != 0 { // NaN or infinite
			return unknown(n, fmt.Sprintf("no slope: the point (%v, %v) is not finite", x[i], y[i]))
		}
	}
	if !(conf > 0 && conf < 1) {
		return unknown(n, fmt.Sprintf("no slope: confidence %v does not lie between 0 and 1", conf))
	}
	slopes := make([]float64, 0, n*(n-1)/2+1)
	for i := range x {
		for j := range i {
			if x[i] != x[j] {
				slopes = append(slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	if len(slopes) == 0 {
		return unknown(n, fmt.Sprintf("no slope: %d points, all at one x", n))
	}
	slices.Sort(slopes)
	i := Interval{Mid: medianSorted(slopes), Lo: math.Inf(-1), Hi: math.Inf(1), Conf: 1, N: n}
	pairs := n * (n - 1) / 2
	i.Exact = n <= exactLimit && len(slopes) == pairs
	k, kept := slopeOrderNormal(x, len(slopes), conf), conf
	if i.Exact {
		k, kept = slopeOrderExact(n, conf)
	}
	if n < minSlopeN {
		i.Warn = fmt.Sprintf("n too small: a slope of %d points; at least %d are needed", n, minSlopeN)
	}
	if k == 0 {
		if i.Warn == "" {
			i.Warn = fmt.Sprintf("n too small: the slopes between %d points do not bound the true one with %.4g %% confidence", n, 100*conf)
		}
		return i
	}
	i.Lo, i.Hi, i.Conf = slopes[k-1], slopes[len(slopes)-k], kept
	return i
}

// slopeOrderExact is the largest k at which the k-th smallest and the k-th
// largest slope hold the true one with at least conf, and the confidence they
// have: the number of slopes below the true one is that of the inversions of a
// random permutation (Kendall 1938). 0: none.
func slopeOrderExact(n int, conf float64) (k int, kept float64) {
	chance := []float64{1} // of each number of inversions
	for m := 2; m <= n; m++ {
		next := make([]float64, len(chance)+m-1)
		for i, p := range chance {
			for j := range m {
				next[i+j] += p / float64(m)
			}
		}
		chance = next
	}
	below := 0.0
	for i := 0; 2*(i+1) <= len(chance); i++ {
		below += chance[i]
		if 1-2*below < conf {
			break
		}
		k, kept = i+1, 1-2*below
	}
	return k, kept
}

// slopeOrderNormal is Sen's approximation; ties among x lessen the variance of
// Kendall's score.
func slopeOrderNormal(x []float64, slopes int, conf float64) int {
	score := func(n int) float64 { return float64(n) * float64(n-1) * float64(2*n+5) / 18 }
	variance := score(len(x))
	of := slices.Clone(x)
	slices.Sort(of)
	for i := 0; i < len(of); {
		j := i
		for j < len(of) && of[j] == of[i] {
			j++
		}
		variance -= score(j - i)
		i = j
	}
	z := distuv.UnitNormal.Quantile((1 + conf) / 2)
	// The k-th from either end is the last that is beyond z standard deviations.
	return max(0, int(math.Floor((float64(slopes)-z*math.Sqrt(variance))/2)))
}

// Rising is the p-value that y does not rise with x, one-sided, for values in the order
// of time of which neighbours may be alike: Student's test of a straight line through
// both, after each value has lost a share of the one before it (Prais and Winsten 1954).
// It is exact for normal noise of this autocorrelation and cautious for less. NaN: fewer
// than four values, or all at one x. That y does not fall has the p-value 1 − p.
func Rising(x, y []float64, autocorrelation float64) float64 {
	n := len(x)
	if n < 4 {
		return math.NaN()
	}
	free := func(v []float64) []float64 {
		all := []float64{v[0] * math.Sqrt(1-autocorrelation*autocorrelation)}
		for i := range v[1:] {
			all = append(all, v[i+1]-autocorrelation*v[i])
		}
		return all
	}
	ones := free(slices.Repeat([]float64{1}, n))
	xs, ys := free(x), free(y)
	for _, v := range [][]float64{xs, ys} {
		subtract(v, dot(ones, v)/dot(ones, ones), ones)
	}
	spread := dot(xs, xs)
	if !(spread > negligible*dot(ones, ones)) {
		return math.NaN()
	}
	slope := dot(xs, ys) / spread
	subtract(ys, slope, xs)
	return distuv.StudentsT{Sigma: 1, Nu: float64(n - 2)}.Survival(slope / math.Sqrt(dot(ys, ys)/float64(n-2)/spread))
}
