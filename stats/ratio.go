package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// resamples is how often the bootstrap draws: enough that the ends of a 95 %
// interval move by less than a tenth of its width from seed to seed.
const resamples = 10_000

// minRatioN is the smallest sample for which the bootstrap interval was shown
// by simulation to cover the truth as often as it says (see the tests).
const minRatioN = 6

// Ratio is median(xs) / median(ys) with a percentile bootstrap interval (Efron
// and Tibshirani, An Introduction to the Bootstrap, 1993, §13.3; for medians:
// Wilcox, Introduction to Robust Estimation and Hypothesis Testing, 5th ed.,
// 2022, §5.4): xs and ys are drawn anew, each from itself, and the interval is
// what holds the middle conf of the ratios. The same seed gives the same
// interval. Conf is nominal.
func Ratio(xs, ys []float64, conf float64, seed uint64) Interval {
	x, okx := sorted(xs)
	y, oky := sorted(ys)
	n := min(len(xs), len(ys))
	if !okx || !oky {
		return unknown(n, "no values")
	}
	return bootstrapRatio(medianSorted(x), medianSorted(y), n, conf, seed, func(rng *rand.Rand, bx, by []float64) ([]float64, []float64) {
		bx, by = bx[:len(x)], by[:len(y)]
		for i := range bx {
			bx[i] = x[rng.IntN(len(x))]
		}
		for i := range by {
			by[i] = y[rng.IntN(len(y))]
		}
		return bx, by
	}, max(len(x), len(y)))
}

// PairedRatio is like [Ratio] for values that belong together in pairs: xs[i]
// and ys[i] are of the same block, so whatever disturbed that block disturbed
// both. Pairs are drawn, not single values: what the two have in common
// cancels, and the interval is the narrower for it.
func PairedRatio(xs, ys []float64, conf float64, seed uint64) Interval {
	if len(xs) != len(ys) {
		return unknown(min(len(xs), len(ys)), fmt.Sprintf("pairs expected: %d and %d values", len(xs), len(ys)))
	}
	if _, ok := sorted(slices.Concat(xs, ys)); !ok {
		return unknown(len(xs), "no values")
	}
	return bootstrapRatio(Median(xs), Median(ys), len(xs), conf, seed, func(rng *rand.Rand, bx, by []float64) ([]float64, []float64) {
		bx, by = bx[:len(xs)], by[:len(xs)]
		for i := range bx {
			at := rng.IntN(len(xs))
			bx[i], by[i] = xs[at], ys[at]
		}
		return bx, by
	}, len(xs))
}

func bootstrapRatio(mx, my float64, n int, conf float64, seed uint64, draw func(rng *rand.Rand, bx, by []float64) ([]float64, []float64), size int) Interval {
	ratio := Interval{Mid: mx / my, Lo: math.Inf(-1), Hi: math.Inf(1), Conf: conf, N: n}
	switch {
	case !(my > 0) || math.IsInf(my, 0) || mx < 0 || math.IsInf(mx, 0):
		ratio.Mid = math.NaN()
		ratio.Warn = fmt.Sprintf("no ratio of the medians %.4g and %.4g: it needs positive, finite values", mx, my)
		return ratio
	case n < minRatioN:
		ratio.Warn = fmt.Sprintf("n too small: %d values give no interval of a ratio; at least %d are needed", n, minRatioN)
		return ratio
	}
	rng := rand.New(rand.NewPCG(seed, 0x706c696d))
	all := make([]float64, 0, resamples)
	bx, by := make([]float64, size), make([]float64, size)
	for range resamples {
		x, y := draw(rng, bx, by)
		slices.Sort(x)
		slices.Sort(y)
		r := medianSorted(x) / medianSorted(y)
		if math.IsNaN(r) {
			r = math.Inf(1)
		}
		all = append(all, r)
	}
	slices.Sort(all)
	tail := (1 - conf) / 2
	at := int(math.Floor(tail * resamples))
	ratio.Lo, ratio.Hi = all[at], all[resamples-1-at]
	return ratio
}
