package stats

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Slope returns how much y grows per unit of x: the median of the slopes of all pairs of points
// with different x (Theil 1950; Sen 1968, Estimates of the regression coefficient based on
// Kendall's tau), which tolerates up to 29 % of arbitrary outliers. NaN without such a pair, or
// if a value is not finite.
func Slope(x, y []float64) float64 {
	var slopes []float64
	for i := range x {
		for j := range i {
			if x[i] != x[j] {
				slopes = append(slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	return Median(slopes)
}

// TrendSlope returns the slope of values in temporal order, which may be autocorrelated, with an
// interval as wide as Student's for a straight line (see trend). An interval needs at least four
// values.
func TrendSlope(x, y []float64, autocorrelation, conf float64) Interval {
	_, se := trend(x, y, autocorrelation)
	return slopeInterval(Slope(x, y), se, len(x)-2, len(x), conf)
}

// BlockSlope returns the slope of points minus the mean of their block, so that effects on whole
// blocks cancel. The interval is Student's, from the spread of the blocks' own slopes. Blocks
// without a slope are ignored; an interval needs at least two.
func BlockSlope(x, y []float64, blocks []int, conf float64) Interval {
	byBlock := map[int][2][]float64{}
	for i, b := range blocks {
		of := byBlock[b]
		byBlock[b] = [2][]float64{append(of[0], x[i]), append(of[1], y[i])}
	}
	var xs, ys, own []float64
	for _, b := range slices.Sorted(maps.Keys(byBlock)) { // a sum depends on its order
		bx, by := byBlock[b][0], byBlock[b][1]
		if slices.Min(bx) == slices.Max(bx) {
			continue
		}
		own = append(own, Slope(bx, by))
		floats.AddConst(-stat.Mean(bx, nil), bx)
		floats.AddConst(-stat.Mean(by, nil), by)
		xs, ys = append(xs, bx...), append(ys, by...)
	}
	se := math.NaN()
	if len(own) > 1 {
		se = stat.StdErr(stat.StdDev(own, nil), float64(len(own)))
	}
	return slopeInterval(Slope(xs, ys), se, len(own)-1, len(x), conf)
}

func slopeInterval(mid, se float64, freedom, n int, conf float64) Interval {
	if math.IsNaN(mid) || math.IsNaN(se) {
		return unbounded(mid, n)
	}
	return studentInterval(mid, se, float64(freedom), conf, n)
}

// Rising returns the one-sided p-value that y does not rise with x, for values in temporal order
// that may be autocorrelated (see trend). The p-value that y does not fall is 1 − p. NaN with
// fewer than four values, or if all have the same x.
func Rising(x, y []float64, autocorrelation float64) float64 {
	slope, se := trend(x, y, autocorrelation)
	return distuv.StudentsT{Sigma: 1, Nu: float64(len(x) - 2)}.Survival(slope / se)
}

// trend returns the slope of a straight line through values in temporal order and its standard
// error, after subtracting a share of the previous value from each value (Prais and Winsten
// 1954). Student's test of it is exact for normal noise with this autocorrelation, and
// conservative for less. NaN with fewer than four values, or if all have the same x.
func trend(x, y []float64, autocorrelation float64) (slope, se float64) {
	n := len(x)
	if n < 4 {
		return math.NaN(), math.NaN()
	}
	free := func(v []float64) []float64 {
		all := []float64{v[0] * math.Sqrt(1-autocorrelation*autocorrelation)}
		for i := range v[1:] {
			all = append(all, v[i+1]-autocorrelation*v[i])
		}
		return all
	}
	ones, xs, ys := free(slices.Repeat([]float64{1}, n)), free(x), free(y)
	for _, v := range [][]float64{xs, ys} {
		floats.AddScaled(v, -floats.Dot(ones, v)/floats.Dot(ones, ones), ones)
	}
	spread := floats.Dot(xs, xs)
	if !(spread > negligible*floats.Dot(ones, ones)) {
		return math.NaN(), math.NaN()
	}
	slope = floats.Dot(xs, ys) / spread
	floats.AddScaled(ys, -slope, xs)
	return slope, math.Sqrt(floats.Dot(ys, ys) / float64(n-2) / spread)
}

const (
	mostOrders  = 9999 // largest number of permutations, besides the observed order
	enoughLarge = 200  // stop after so many with as large a change: p is not small (Besag and Clifford 1991)
	leastValues = 5    // 2 of 120 orders are monotone: fewer values cannot show a change
)

// Change returns how much values in temporal order rise or fall from the first to the last, by
// the least-squares line through them, in their unit; NaN values are missing. p is from a
// permutation test: the share of other orders with as large a change; NaN with fewer than 5
// values. The seed makes it repeatable.
func Change(values []float64, seed uint64) (change, p float64) {
	var at, known []float64
	for i, v := range values {
		if !math.IsNaN(v) {
			at, known = append(at, float64(i)), append(known, v)
		}
	}
	change = alongLine(at, known)
	if len(known) < leastValues {
		return change, math.NaN()
	}
	least := math.Abs(change) * (1 - 1e-12)
	rng := rand.New(rand.NewPCG(seed, 0x626c6f636b))
	large, orders := 1, 1
	for orders <= mostOrders && large < enoughLarge {
		orders++
		rng.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		if math.Abs(alongLine(at, known)) >= least {
			large++
		}
	}
	return change, float64(large) / float64(orders)
}

// alongLine returns the change from the first position to the last on the line through ys.
func alongLine(at, ys []float64) float64 {
	if len(at) < 2 {
		return 0
	}
	_, slope := stat.LinearRegression(at, ys, nil, false)
	return slope * (at[len(at)-1] - at[0])
}
