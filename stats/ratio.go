package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// minRatioN is the smallest sample that gets an interval.
const minRatioN = 5

// Ratio is median(xs) / median(ys) with a percentile bootstrap interval (Efron
// and Tibshirani, An Introduction to the Bootstrap, 1993, §13.3; for medians:
// Wilcox, Introduction to Robust Estimation and Hypothesis Testing, 5th ed.,
// 2022, §5.4): xs and ys are drawn anew, each from itself, and the interval is
// what holds the middle of the ratios. Nothing is really drawn: how often each
// median would come is known, see medianDraws.
//
// The plain bootstrap is too narrow for the median of few values (7 of them:
// 87.5 % where it says 95 %). The share cut off at each end is therefore made
// so small that, if one sample had no spread at all, the interval would be no
// narrower than the exact one of [MedianCI] for the other. Conf is what is
// thereby kept: conf, or less when the samples are too small for it.
func Ratio(xs, ys []float64, conf float64) Interval {
	x, okx := sorted(xs)
	y, oky := sorted(ys)
	if !okx || !oky {
		return unknown(min(len(xs), len(ys)), "no values")
	}
	b := bootstrap{mid: [2]float64{medianSorted(x), medianSorted(y)}, size: [2]int{len(x), len(y)}}
	i, ok := b.begin(conf)
	if ok {
		if x[0] < 0 || y[0] < 0 {
			i.Warn = "no interval of a ratio where values are negative"
			return i
		}
		share := min(tail(len(x), conf), tail(len(y), conf))
		i.Lo, i.Hi = quotients(medianDraws(x), medianDraws(y), share)
		// Values without spread have the ratio itself as its ends.
		if math.Abs(i.Lo-i.Mid) < 1e-12*i.Mid {
			i.Lo = i.Mid
		}
		if math.Abs(i.Hi-i.Mid) < 1e-12*i.Mid {
			i.Hi = i.Mid
		}
	}
	return i
}

type bootstrap struct {
	mid  [2]float64 // the medians
	size [2]int
}

// begin is the ratio without its interval; false: there is none.
func (b bootstrap) begin(conf float64) (Interval, bool) {
	mx, my := b.mid[0], b.mid[1]
	n := min(b.size[0], b.size[1])
	ratio := Interval{Mid: mx / my, Lo: math.Inf(-1), Hi: math.Inf(1), Conf: 1, N: n}
	switch {
	case !(my > 0) || math.IsInf(my, 0) || mx < 0 || math.IsInf(mx, 0):
		ratio.Mid = math.NaN()
		ratio.Warn = fmt.Sprintf("no ratio of the medians %.4g and %.4g: it needs positive, finite values", mx, my)
		return ratio, false
	case n < minRatioN:
		ratio.Warn = fmt.Sprintf("n too small: %d values give no interval of a ratio; at least %d are needed", n, minRatioN)
		return ratio, false
	}
	ratio.Conf = conf
	if most := rangeConfidence(n); most < conf {
		ratio.Conf = most
		ratio.Warn = fmt.Sprintf("n small: %d values keep %.4g %% confidence; at least %d are needed for %.4g %%", n, 100*most, minMedianN(conf), 100*conf)
	}
	return ratio, true
}

// tail is the share of resamples to cut off at each end, so that the bootstrap
// of one sample's median would not end inside its exact interval from the k-th
// smallest value to the k-th largest. A resample's median is at most the k-th
// smallest when more than half of its n values are, each with probability k/n.
func tail(n int, conf float64) float64 {
	k := max(medianOrder(n, conf), 1)
	reach := 1 - distuv.Binomial{N: float64(n), P: float64(k) / float64(n)}.CDF(float64(n/2))
	// A little less than that: the resamples are finitely many.
	return min((1-conf)/2, 0.8*reach)
}
