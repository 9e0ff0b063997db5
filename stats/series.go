package stats

import (
	"fmt"
	"math"
	"slices"
)

// A series is what growth, changes and attribution work on: a long record in
// the order of time, reduced to medians of consecutive blocks.
type series struct {
	x    [][]float64 // of each quantity, the block's mean
	y    []float64   // the block's median
	from []int       // index of the block's first point
	size int         // points of the largest block
	n    int         // points
	log  bool        // residuals are judged on the logarithm of y
}

// maxBlocks is to how many blocks a long record is reduced.
const maxBlocks = 200

// reduce takes medians of consecutive blocks: an outlier, or a burst of them
// shorter than half a block, leaves no trace, and most of the correlation of
// one point with the next is within the blocks. Blocks have an odd number of
// points where they can: a median of two is a mean.
func reduce(y []float64, x ...[]float64) (series, error) {
	n := len(y)
	for i, v := range y {
		if v-v != 0 {
			return series{}, fmt.Errorf("value %d is %v: leave points out that have no finite value", i, v)
		}
	}
	for _, q := range x {
		if len(q) != n {
			return series{}, fmt.Errorf("%d values of x and %d of y", len(q), n)
		}
		for i, v := range q {
			if v-v != 0 {
				return series{}, fmt.Errorf("x of value %d is %v: leave points out that have no finite x", i, v)
			}
		}
	}
	size := max(1, (n+maxBlocks-1)/maxBlocks)
	if size%2 == 0 {
		size++
	}
	blocks := n / size
	if blocks == 0 {
		return series{n: n}, nil
	}
	s := series{x: make([][]float64, len(x)), size: size, n: n}
	for b := range blocks {
		from, to := b*n/blocks, (b+1)*n/blocks
		s.size = max(s.size, to-from)
		s.from = append(s.from, from)
		s.y = append(s.y, Median(y[from:to]))
		for q := range x {
			sum := 0.0
			for _, v := range x[q][from:to] {
				sum += v - x[q][from]
			}
			s.x[q] = append(s.x[q], x[q][from]+sum/float64(to-from))
		}
	}
	s.log = multiplicative(s.y)
	return s, nil
}

// multiplicative tells whether the noise of y is in proportion to y: which of
// a normal and a lognormal distribution makes the differences of neighbours
// more likely (the second with the Jacobian of the logarithm: Box and Cox
// 1964). Neighbours have almost the same expectation, so no model of the
// growth is needed for this.
func multiplicative(y []float64) bool {
	if slices.Min(y) <= 0 {
		return false
	}
	absolute, relative := make([]float64, len(y)-1), make([]float64, len(y)-1)
	logs := 0.0
	for i := range absolute {
		absolute[i] = y[i+1] - y[i]
		relative[i] = math.Log(y[i+1] / y[i])
		logs += (math.Log(y[i]) + math.Log(y[i+1])) / 2
	}
	a, r := winsorisedSpread(absolute), winsorisedSpread(relative)
	return r > 0 && math.Log(a) >= math.Log(r)+logs/float64(len(absolute))
}

// winsorisedSpread is the root mean square of values cut off at three robust
// standard deviations.
func winsorisedSpread(xs []float64) float64 {
	cut := 3 * robustSpread(xs)
	sum := 0.0
	for _, v := range xs {
		if cut > 0 {
			v = max(-cut, min(cut, v))
		}
		sum += v * v
	}
	return math.Sqrt(sum / float64(len(xs)))
}

// unit maps a quantity to 0…1 over its range.
func unit(x []float64, from, span float64) []float64 {
	u := make([]float64, len(x))
	for i, v := range x {
		u[i] = (v - from) / span
	}
	return u
}
