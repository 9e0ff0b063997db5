package stats

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// minRatioN is the smallest sample that gets an interval.
const minRatioN = 5

// Ratio returns median(xs) / median(ys). Its interval combines the exact intervals
// ([MedianCI]) of both samples: on the logarithmic scale, the distances of their ends are
// squared and added (Zou and Donner, Construction of confidence limits about effect
// measures, Statistics in Medicine 27, 2008). If one sample does not vary, it is the
// interval of the other. Conf is conf, or less if the samples are too small.
func Ratio(xs, ys []float64, conf float64) Interval {
	x, okx := sorted(xs)
	y, oky := sorted(ys)
	if !okx || !oky {
		return unbounded(math.NaN(), min(len(xs), len(ys)))
	}
	mx, my := medianSorted(x), medianSorted(y)
	n := min(len(x), len(y))
	ratio := unbounded(mx/my, n)
	switch {
	case !(my > 0) || math.IsInf(my, 0) || mx < 0 || math.IsInf(mx, 0):
		ratio.Mid = math.NaN()
		ratio.Warn = fmt.Sprintf("no ratio of the medians %.4g and %.4g: it needs positive, finite values", mx, my)
		return ratio
	case n < minRatioN:
		ratio.Warn = fmt.Sprintf("%d values give no interval of a ratio; at least %d are needed", n,
			minRatioN)
		return ratio
	case x[0] < 0 || y[0] < 0:
		ratio.Warn = "no interval of a ratio where values are negative"
		return ratio
	}
	ratio.Conf = conf
	if most := RangeConfidence(n); most < conf {
		ratio.Conf = most
		ratio.Warn = fmt.Sprintf("%d values give a %.4g %% interval; at least %d are needed for %.4g %%", n,
			100*most, minMedianN(conf), 100*conf)
	}
	of := RatioOf(MedianCI(xs, ratio.Conf), MedianCI(ys, ratio.Conf))
	ratio.Lo, ratio.Hi = of.Lo, of.Hi
	return ratio
}

// RatioOf returns the ratio of two independent estimates that are not negative, from their intervals. On
// the logarithmic scale, the distances of their ends are squared and added, as in [Ratio].
func RatioOf(x, y Interval) Interval {
	ratio := unbounded(x.Mid/y.Mid, min(x.N, y.N))
	if !(y.Mid > 0) {
		ratio.Mid, ratio.Warn = math.NaN(), fmt.Sprintf("no ratio of %.4g and %.4g", x.Mid, y.Mid)
		return ratio
	}
	// Equal values have no distance, even if they are 0.
	apart := func(a, b float64) float64 {
		if a == b {
			return 0
		}
		return math.Log(a / b)
	}
	ratio.Lo = ratio.Mid * math.Exp(-math.Hypot(apart(x.Mid, x.Lo), apart(y.Hi, y.Mid)))
	ratio.Hi = ratio.Mid * math.Exp(math.Hypot(apart(x.Hi, x.Mid), apart(y.Mid, y.Lo)))
	if x.Mid == 0 {
		ratio.Lo, ratio.Hi = 0, x.Hi/y.Lo
	}
	return ratio
}

// leastBlocks is the number of blocks that a signed-rank test needs to reach 5 %.
const leastBlocks = 6

// PairedRatio returns the ratio within pairs, one pair of trials per block, from the logarithms of
// the pairs' ratios: effects of a block on both sides cancel. The estimate is that of Hodges and
// Lehmann, the interval contains the ratios that Wilcoxon's signed-rank test does not reject, and p
// is from that test (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed.,
// 2014, ch. 3): the interval excludes 1 exactly if p is at most 1−conf. Up to 50 pairs both are
// exact for any symmetric noise; ties make them conservative. With fewer than 6 pairs the interval
// is unbounded at 95 %. A logarithm of −Inf is a ratio of 0.
func PairedRatio(logs []float64, conf float64) (ratio Interval, p float64) {
	d, ok := sorted(logs)
	if !ok {
		return unbounded(math.NaN(), len(logs)), math.NaN()
	}
	n := len(d)
	all := n * (n + 1) / 2
	walsh := make([]float64, 0, all) // Walsh averages: pairwise means, including each value with itself
	for i := range d {
		for j := range i + 1 {
			walsh = append(walsh, d[i]/2+d[j]/2)
		}
	}
	slices.Sort(walsh)
	chance := signedRankCDF(n)
	negative, _ := slices.BinarySearch(walsh, 0)
	below, _ := slices.BinarySearch(walsh, math.SmallestNonzeroFloat64)
	p = min(1, 2*chance(min(below, all-negative)))
	mid := walsh[(all+1)/2-1]
	if even := walsh[all/2]; even != mid {
		mid = mid/2 + even/2
	}
	ratio = unbounded(math.Exp(mid), n)
	if k := sort.Search(all, func(k int) bool { return 2*chance(k) > 1-conf }); k > 0 {
		ratio.Lo, ratio.Hi, ratio.Conf = math.Exp(walsh[k-1]), math.Exp(walsh[all-k]), 1-2*chance(k-1)
	}
	return ratio, p
}

// LeastPairedP returns the smallest p that [PairedRatio] can give with n pairs.
func LeastPairedP(n int) float64 { return min(1, math.Pow(2, float64(1-n))) }

// signedRankCDF returns the probability that the rank sum of n pairs is at most w if both signs
// are equally likely.
func signedRankCDF(n int) func(w int) float64 {
	all := n * (n + 1) / 2
	if n > exactLimit {
		mean, sd := float64(all)/2, math.Sqrt(float64(all)*float64(2*n+1)/12)
		return func(w int) float64 { return distuv.UnitNormal.CDF((float64(w) + 0.5 - mean) / sd) }
	}
	ways := make([]float64, all+1)
	ways[0] = 1
	for r := 1; r <= n; r++ {
		for s := all; s >= r; s-- {
			ways[s] += ways[s-r]
		}
	}
	return func(w int) float64 {
		sum := 0.0
		for s := 0; s <= min(w, all); s++ {
			sum += ways[s]
		}
		return sum / math.Pow(2, float64(n))
	}
}

// StudentRatio returns the geometric mean of the pairs' ratios with Student's interval and test
// on their logarithms: it assumes normal noise, and so works with too few pairs for
// [PairedRatio]. Equal logarithms give an interval without width.
func StudentRatio(logs []float64, conf float64) (ratio Interval, p float64) {
	if len(logs) < 2 || slices.ContainsFunc(logs, math.IsNaN) {
		return unbounded(math.NaN(), len(logs)), math.NaN()
	}
	n := float64(len(logs))
	mean, variance := stat.MeanVariance(logs, nil)
	switch {
	case math.IsInf(mean, 0):
		return unbounded(math.Exp(mean), len(logs)), math.NaN()
	case slices.Min(logs) == slices.Max(logs): // without rounding errors
		mean, variance = logs[0], 0
	}
	return logRatio{mean, math.Sqrt(variance / n), n - 1, len(logs)}.test(conf)
}

// BlockMeans returns an estimate over all cells for each block: the mean of the cells' centres
// plus the mean deviation of the block's values from them. cells[i][b] is of cell i in block b,
// or NaN; blocks without values are omitted. Blocks are independent, but their cells are not:
// what affects a system in a block affects all of its cells.
func BlockMeans(cells [][]float64, centres []float64) []float64 {
	width, centre := 0, 0.0
	for i, c := range cells {
		width = max(width, len(c))
		centre += centres[i] / float64(len(cells))
	}
	var means []float64
	for b := range width {
		sum, n := 0.0, 0.0
		for i, c := range cells {
			if b < len(c) && !math.IsNaN(c[b]) {
				sum, n = sum+c[b]-centres[i], n+1
			}
		}
		if n > 0 {
			means = append(means, centre+sum/n)
		}
	}
	return means
}

// RunsRatio returns xs over ys for cells of two runs, from the logarithms of their values by
// block: the geometric mean over cells, with Student's interval and test for unequal variances
// (Welch 1947) over the blocks of each run. Cells need two values on each side and are omitted
// otherwise; N is the number of remaining cells. With fewer than six blocks on a side
// there is no interval, and p is NaN.
func RunsRatio(xs, ys [][]float64, conf float64) (ratio Interval, p float64) {
	var cells [2][][]float64
	var centres [2][]float64
	for i := range xs {
		mx, nx := meanKnown(xs[i])
		my, ny := meanKnown(ys[i])
		if nx < 2 || ny < 2 {
			continue
		}
		cells[0], centres[0] = append(cells[0], xs[i]), append(centres[0], mx)
		cells[1], centres[1] = append(cells[1], ys[i]), append(centres[1], my)
	}
	n := len(cells[0])
	if n == 0 {
		ratio = unbounded(math.NaN(), 0)
		ratio.Warn = "no cell has two values on either side"
		return ratio, math.NaN()
	}
	var mean, variance, count [2]float64
	for side := range mean {
		blocks := BlockMeans(cells[side], centres[side])
		count[side] = float64(len(blocks))
		for _, c := range centres[side] {
			mean[side] += c / float64(n)
		}
		variance[side] = stat.Variance(blocks, nil) / count[side]
	}
	d := mean[0] - mean[1]
	if min(count[0], count[1]) < leastBlocks {
		ratio = unbounded(math.Exp(d), n)
		ratio.Warn = fmt.Sprintf("%g and %g blocks: all cells together need %d on either side", count[1], count[0],
			leastBlocks)
		return ratio, math.NaN()
	}
	r := welch(d, variance[0], count[0], variance[1], count[1])
	r.n = n
	return r.test(conf)
}

// meanKnown returns the mean of the values that are not NaN, and their number.
func meanKnown(xs []float64) (mean float64, n int) {
	for _, x := range xs {
		if !math.IsNaN(x) {
			mean, n = mean+x, n+1
		}
	}
	return mean / float64(n), n
}
