// Package stats computes statistics of repeated trials: medians with exact intervals,
// ratios with intervals, and significance tests. It makes no assumption about the
// shape of a distribution, since measurements of computers are skewed and
// heavy-tailed, and it knows nothing about storage. Fitted models (costs, factorial
// experiments) have Student's intervals; their coverage under other noise is
// determined by simulation, and tested.
//
// An interval has the unit of its values. What limits a ratio, such as too few values, is
// stated in its Warn, in words for the user.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an estimate with its confidence interval.
type Interval struct {
	Mid    float64 // the estimate: a median, a ratio, a share
	Lo, Hi float64 // ±Inf where the data do not bound it
	Conf   float64 // actual confidence; see each function
	N      int     // number of values (of the smaller sample, if there are two)
	Warn   string  // why there is no ratio, or what the reader of one must know; may be empty
}

// Bounded reports whether both ends are finite.
func (i Interval) Bounded() bool {
	return !math.IsInf(i.Lo, 0) && !math.IsInf(i.Hi, 0) && !math.IsNaN(i.Lo) && !math.IsNaN(i.Hi)
}

// Contains reports whether v lies in the interval, ends included.
func (i Interval) Contains(v float64) bool { return i.Lo <= v && v <= i.Hi }

// unbounded is an estimate from n values without an interval.
func unbounded(mid float64, n int) Interval {
	return Interval{Mid: mid, Lo: math.Inf(-1), Hi: math.Inf(1), Conf: 1, N: n}
}

// Median returns the middle value, or the mean of the two middle values. NaN without values or
// if one of them is NaN. An infinite value ("longer than observed") is a value like any other.
func Median(xs []float64) float64 {
	s, ok := sorted(xs)
	if !ok {
		return math.NaN()
	}
	return medianSorted(s)
}

func medianSorted(s []float64) float64 {
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	a, b := s[n/2-1], s[n/2]
	if a == b {
		return a // also for infinite values
	}
	return a + (b-a)/2
}

// sorted returns a sorted copy; false if there are no values or a NaN.
func sorted(xs []float64) ([]float64, bool) {
	if len(xs) == 0 || slices.ContainsFunc(xs, math.IsNaN) {
		return nil, false
	}
	s := slices.Clone(xs)
	slices.Sort(s)
	return s, true
}

// MedianCI returns the exact interval for the median of the population of the values,
// whatever its shape (David and Nagaraja, Order Statistics, 3rd ed., 2003, §7.1; Conover,
// Practical Nonparametric Statistics, 3rd ed., 1999, §3.2): the k-th smallest to the k-th
// largest value, which contain the true median with probability
// 1 − 2·P(Bin(n, ½) ≤ k−1), or more for discrete distributions. k is the largest for which
// this reaches conf, and Conf is the resulting probability. With too few values (for 95 %:
// fewer than 6) even the whole range does not reach it: then the interval is unbounded.
func MedianCI(xs []float64, conf float64) Interval {
	s, ok := sorted(xs)
	if !ok {
		return unbounded(math.NaN(), len(xs))
	}
	n := len(s)
	i := unbounded(medianSorted(s), n)
	if k := medianOrder(n, conf); k > 0 {
		i.Lo, i.Hi, i.Conf = s[k-1], s[n-k], orderConfidence(n, k)
	}
	return i
}

// orderConfidence returns the probability that the k-th smallest and the k-th largest of n
// values enclose the median.
func orderConfidence(n, k int) float64 {
	b := distuv.Binomial{N: float64(n), P: 0.5}
	return 1 - 2*b.CDF(float64(k-1))
}

// RangeConfidence returns the probability that the range of n values covers the median of their
// population: 1 − 2^(1−n).
func RangeConfidence(n int) float64 { return 1 - math.Pow(2, float64(1-n)) }

// medianOrder returns the largest k for which the confidence reaches conf; 0: none.
func medianOrder(n int, conf float64) int {
	k := 0
	for 2*(k+1) <= n && orderConfidence(n, k+1) >= conf {
		k++
	}
	return k
}

func minMedianN(conf float64) int {
	n := 2
	for RangeConfidence(n) < conf && n < 1000 {
		n++
	}
	return n
}
