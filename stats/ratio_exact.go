package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// weighed is a value with its probability.
type weighed struct{ v, p float64 }

// medianDraws is the bootstrap's distribution of the median of a sorted sample: of
// as many values drawn from it with replacement. Of an odd number n = 2m−1 the
// median is at most the i-th smallest value when m draws or more are, with
// probability P(Bin(n, i/n) ≥ m). Of an even number n = 2k it lies between the i-th
// and the j-th smallest value, i < j, when k draws are at most the i-th, one of
// them equal to it, and k at least the j-th, likewise:
//
//	C(n,k) · ((i/n)^k − ((i−1)/n)^k) · (((n−j+1)/n)^k − ((n−j)/n)^k)
//
// What is rarer than 10^-15 is left out.
func medianDraws(x []float64) []weighed {
	n := len(x)
	N := float64(n)
	// atMost is the probability that the k-th smallest draw is at most x[i-1].
	atMost := func(i, k int) float64 {
		if i == n {
			return 1
		}
		return 1 - distuv.Binomial{N: N, P: float64(i) / N}.CDF(float64(k-1))
	}
	const rare = 1e-15
	var all []weighed
	if n%2 == 1 {
		before := 0.0
		for i := 1; i <= n; i++ {
			p := atMost(i, n/2+1)
			if p-before > rare {
				all = append(all, weighed{x[i-1], p - before})
			}
			before = p
		}
		return all
	}
	k := n / 2
	lg, _ := math.Lgamma(N + 1)
	lk, _ := math.Lgamma(float64(k) + 1)
	// Logarithms: C(n,k) of a large sample is beyond a float64.
	part := func(i int) float64 { // log((i/n)^k − ((i−1)/n)^k)
		a, b := math.Log(float64(i)/N), math.Log(float64(i-1)/N)
		return float64(k)*a + math.Log1p(-math.Exp(float64(k)*(b-a)))
	}
	parts := make([]float64, n+1)
	for i := 1; i <= n; i++ {
		parts[i] = part(i)
	}
	before := 0.0
	for i := 1; i <= n; i++ {
		p := atMost(i, k)
		same := p - before // both middle draws are x[i-1], once the others are taken off
		before = p
		for j := i + 1; j <= n; j++ {
			both := math.Exp(lg - 2*lk + parts[i] + parts[n-j+1])
			same -= both
			if both > rare {
				all = append(all, weighed{medianSorted([]float64{x[i-1], x[j-1]}), both})
			} else if parts[n-j+1] < parts[n-i+1]-40 {
				break
			}
		}
		if same > rare {
			all = append(all, weighed{x[i-1], same})
		}
	}
	slices.SortFunc(all, func(a, b weighed) int { return cmp.Compare(a.v, b.v) })
	return all
}

// quotients are the ends of what holds all of x/y but the share at each end, x and
// y independent and in ascending order. Where 0/0 or ∞/∞ may come, it could be
// anything and counts as +∞.
func quotients(x, y []weighed, share float64) (lo, hi float64) {
	// below is the probability that x/y ≤ r.
	below := func(r float64) float64 {
		sum, part, at := 0.0, 0.0, 0
		for _, b := range y {
			most := r * b.v
			for at < len(x) && x[at].v <= most && !math.IsInf(x[at].v, 0) {
				part += x[at].p
				at++
			}
			sum += b.p * part
		}
		return sum
	}
	least, most := math.Inf(1), 0.0
	infinite := 0.0
	for _, a := range x {
		for _, b := range []weighed{y[0], y[len(y)-1]} {
			if q := a.v / b.v; q > 0 && !math.IsInf(q, 0) {
				least, most = min(least, q), max(most, q)
			}
		}
		if math.IsInf(a.v, 1) {
			infinite += a.p
		}
	}
	if below(least*(1-1e-9)) > share {
		lo = 0 // x is 0, or y is infinite, more often than that
	} else {
		lo, _ = bisect(least*(1-1e-9), most*(1+1e-9), func(r float64) bool { return below(r) > share })
	}
	if infinite > share || 1-below(most*(1+1e-9)) > share {
		hi = math.Inf(1)
	} else {
		_, hi = bisect(least*(1-1e-9), most*(1+1e-9), func(r float64) bool { return 1-below(r) <= share })
	}
	return lo, hi
}

// bisect encloses the smallest r between two positive ends for which reached holds.
func bisect(lo, hi float64, reached func(float64) bool) (float64, float64) {
	for range 100 {
		mid := math.Sqrt(lo) * math.Sqrt(hi)
		if hi/lo < 1+1e-14 || mid <= lo || mid >= hi {
			break
		}
		if reached(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo, hi
}
