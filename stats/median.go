package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

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
