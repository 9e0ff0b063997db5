package stats

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"
)

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
