package workload

import (
	"math"
	"sort"
)

// Zipf is a popularity of objects: the k-th, from 1, is asked for in proportion to
// 1/k^exponent. It holds the running sums of these weights.
type Zipf []float64

// NewZipf is the popularity of n objects; with the exponent 0 all are alike.
func NewZipf(n int, exponent float64) Zipf {
	z, sum := make(Zipf, n), 0.0
	for i := range z {
		sum += math.Pow(float64(i+1), -exponent)
		z[i] = sum
	}
	return z
}

// Pick is the index of an object, from a number between 0 and 1.
func (z Zipf) Pick(u float64) int {
	return min(sort.SearchFloat64s(z, u*z[len(z)-1]), len(z)-1)
}
