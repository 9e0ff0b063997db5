package stats

import (
	"math"
	"math/rand/v2"
)

const (
	mostOrders  = 9999 // permutations at most, beside the order that was seen
	enoughLarge = 200  // as many that change as much settle that p is not small (Besag and Clifford 1991)
	leastValues = 5    // 2 of 120 orders are monotone: fewer values cannot show a change
)

// Change is how far values in the order of time go up or down from the first to the
// last, by the straight line of least squares through them, in their unit; NaN: that
// place has none. p is that of a permutation test: how often the values in another
// order change as much; NaN: there are fewer than 5. The seed makes it repeatable.
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

// alongLine is the change from the first place to the last on the line through ys.
func alongLine(at, ys []float64) float64 {
	n := float64(len(at))
	var sx, sy, xy, xx float64
	for i := range at {
		sx, sy = sx+at[i], sy+ys[i]
	}
	for i := range at {
		d := at[i] - sx/n
		xy, xx = xy+d*(ys[i]-sy/n), xx+d*d
	}
	if xx == 0 {
		return 0
	}
	return xy / xx * (at[len(at)-1] - at[0])
}
