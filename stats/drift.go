package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// DriftFit says whether something rises, and goes on rising, with x.
type DriftFit struct {
	Slope       Interval // of y per x, 95 %
	P           float64  // of a slope of 0 or less; NaN: not known
	Early, Late float64  // slopes of the two halves
	EarlySE     float64  // their standard errors
	LateSE      float64
	From, To    float64 // medians of the first and the last tenth
	Span        float64 // of x that was looked at
	Correlation float64 // of neighbouring blocks; 1: it wanders
	N           int     // points that were looked at
	Blocks      int
	Why         string // where there is no slope
}

const (
	// driftBlocks is into how many stretches of equal length a series is cut, and
	// minDrift how many of them must have points: fewer do not tell wandering from
	// a trend.
	driftBlocks = 60
	minDrift    = 20
	// wandering blocks' means are alike beyond what single points are: their
	// differences correlate by 1/4, which makes the variance of a sum 3/2 as large
	// (Working 1960, Note on the correlation of first differences of averages in a
	// random chain).
	working = 1.5
)

// Drift tells a trend from noise whose neighbours are alike, and from a random walk,
// of which nobody knows beforehand which it is (Perron and Yabu 2009, Estimating
// deterministic trends with an integrated or stationary noise component). The series,
// in the order of x, without the share of it that is left out at the beginning, is cut into 60
// stretches of equal length; from the residuals of their medians about a line follows
// the correlation of neighbours, corrected for the bias that a fitted line has
// (Marriott and Pope 1954, Kendall 1954) and one standard error more; beyond
// 1 − 1/√blocks it is taken for 1, a random walk. The slope is that of generalised
// least squares with it.
//
// A level that moves up once, a saw-tooth, or a random walk have no slope then. What
// saturates has one: Early and Late tell it.
func Drift(x, y []float64, leave float64) DriftFit {
	f := DriftFit{Slope: unknown(len(y), ""), P: math.NaN()}
	if len(x) != len(y) || len(x) == 0 {
		f.Why = fmt.Sprintf("%d values of x and %d of y", len(x), len(y))
		return f
	}
	from, to := slices.Min(x), slices.Max(x)
	from += leave * (to - from)
	f.Span = to - from
	if !(f.Span > 0) {
		f.Why = "all points have the same x"
		return f
	}
	points, sums := make([][]float64, driftBlocks), make([]float64, driftBlocks)
	for i, v := range x {
		if v < from || y[i]-y[i] != 0 {
			continue
		}
		k := min(driftBlocks-1, int(driftBlocks*(v-from)/f.Span))
		points[k] = append(points[k], y[i])
		sums[k] += v - from
		f.N++
	}
	var at, mid []float64
	for k, ys := range points {
		if len(ys) > 0 {
			at, mid = append(at, from+sums[k]/float64(len(ys))), append(mid, Median(ys))
		}
	}
	f.Blocks, f.Slope.N = len(mid), f.N
	if f.Blocks < minDrift {
		f.Why = fmt.Sprintf("points in %d stretches of %d: at least %d are needed", f.Blocks, driftBlocks, minDrift)
		return f
	}
	tenth := max(1, len(mid)/10)
	f.From, f.To = Median(mid[:tenth]), Median(mid[len(mid)-tenth:])
	f.Early, f.Late = lineOf(at[:len(at)/2], mid[:len(at)/2]), lineOf(at[len(at)/2:], mid[len(at)/2:])
	f.Correlation = neighbours(at, mid)
	half := len(at) / 2
	_, f.EarlySE, _ = trend(at[:half], mid[:half], f.Correlation)
	_, f.LateSE, _ = trend(at[half:], mid[half:], f.Correlation)
	slope, se, freedom := trend(at, mid, f.Correlation)
	t := distuv.StudentsT{Sigma: 1, Nu: freedom}
	reach := t.Quantile(0.975) * se
	f.Slope = Interval{Mid: slope, Lo: slope - reach, Hi: slope + reach, Conf: 0.95, N: f.N}
	switch {
	case se > 0:
		f.P = t.Survival(slope / se)
	case slope > 0:
		f.P = 0
	default:
		f.P = 1
	}
	return f
}

// lineOf is the slope of least squares.
func lineOf(x, y []float64) float64 {
	mx, my := 0.0, 0.0
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	xy, xx := 0.0, 0.0
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
	}
	return xy / xx
}

// neighbours is the correlation of a block with the next about a line; 1 when that
// cannot be excluded.
func neighbours(x, y []float64) float64 {
	m := float64(len(y))
	slope := lineOf(x, y)
	u := make([]float64, len(y))
	mean := 0.0
	for i := range y {
		u[i] = y[i] - slope*x[i]
		mean += u[i] / m
	}
	product, square, most := 0.0, 0.0, 0.0
	for i := range u {
		u[i] -= mean
		most = max(most, math.Abs(y[i]))
		if i > 0 {
			product += u[i] * u[i-1]
			square += u[i-1] * u[i-1]
		}
	}
	if square <= m*math.Pow(negligible*most, 2) {
		return 0 // a line
	}
	a := product / square
	a += (2+4*a)/m + math.Sqrt(max(0, 1-a*a)/m)
	switch {
	case a > 1-1/math.Sqrt(m):
		return 1
	case a < 0:
		return 0
	}
	return a
}

// trend is the slope with its standard error and degrees of freedom, when neighbours
// correlate so.
func trend(x, y []float64, a float64) (slope, se, freedom float64) {
	n := len(y)
	if a == 1 {
		// y wanders by a variance in proportion to the distance in x.
		span := x[n-1] - x[0]
		slope = (y[n-1] - y[0]) / span
		sum := 0.0
		for i := 1; i < n; i++ {
			d := x[i] - x[i-1]
			e := y[i] - y[i-1] - slope*d
			sum += e * e / d
		}
		freedom = float64(n - 2)
		return slope, math.Sqrt(working * sum / freedom / span), freedom
	}
	// Prais and Winsten's transformation makes the noise independent.
	first := math.Sqrt(1 - a*a)
	one, line, z := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range y {
		if i == 0 {
			one[0] = first // x and y count from here
			continue
		}
		one[i], line[i], z[i] = 1-a, (x[i]-x[0])-a*(x[i-1]-x[0]), (y[i]-y[0])-a*(y[i-1]-y[0])
	}
	s := fitLinear([][]float64{one, line}, z)
	freedom = float64(max(1, s.freedom))
	w := s.weights([]float64{0, 1})
	return dot(w, z), s.sigma * math.Sqrt(dot(w, w)), freedom
}
