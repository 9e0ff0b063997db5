package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The distribution is the one that drawing comes to.
func TestRatioIsThatOfDrawing(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 21))
	for _, n := range [][2]int{{5, 5}, {6, 6}, {7, 10}, {12, 9}, {40, 41}, {300, 300}} {
		xs, ys := sample(rng, n[0], shapes[1].draw), sample(rng, n[1], shapes[1].draw)
		x, _ := sorted(xs)
		y, _ := sorted(ys)
		for _, s := range [][]float64{x, y} {
			sum, draws := 0.0, medianDraws(s)
			for _, w := range draws {
				sum += w.p
			}
			if math.Abs(sum-1) > 1e-9 || !slices.IsSortedFunc(draws, func(a, b weighed) int {
				if a.v <= b.v {
					return -1
				}
				return 1
			}) {
				t.Errorf("%d values: the probabilities add up to %v", len(s), sum)
			}
		}
		const times = 20_000
		var all []float64
		for range times {
			bx, by := make([]float64, len(x)), make([]float64, len(y))
			for i := range bx {
				bx[i] = x[rng.IntN(len(x))]
			}
			for i := range by {
				by[i] = y[rng.IntN(len(y))]
			}
			all = append(all, Median(bx)/Median(by))
		}
		slices.Sort(all)
		const share = 0.025
		lo, hi := quotients(medianDraws(x), medianDraws(y), share)
		between := func(v, q float64) bool { // within what chance allows of so many draws
			off := 5 * math.Sqrt(share*(1-share)/times)
			return all[int((q-off)*times)]*(1-1e-9) <= v && v <= all[min(int((q+off)*times)+1, times-1)]*(1+1e-9)
		}
		if !between(lo, share) || !between(hi, 1-share) {
			t.Errorf("%v values: %v to %v; drawing gives %v to %v", n, lo, hi, all[int(share*times)], all[int((1-share)*times)])
		}
	}
	if i := Ratio([]float64{2, 2, 2, 2, 2, 2}, []float64{1, 1, 1, 1, 1, 1}, 0.95); i.Lo != 2 || i.Hi != 2 {
		t.Errorf("no spread: %+v", i)
	}
}
