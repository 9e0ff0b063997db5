package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// exactLimit is the number of values up to which the permutation distribution of the rank sum is
// computed exactly; above it, the normal approximation is accurate to a few per mille.
const exactLimit = 50

// MannWhitney returns the two-sided p-value of the hypothesis that both samples
// come from the same distribution (Mann and Whitney 1947): the share of all
// ways to divide the values into two groups of these sizes whose rank sum is
// at least as far from its mean as the observed one. It is exact up to 50
// values, including ties; above, it is the normal approximation with
// corrections for ties and continuity (Conover 1999, §5.1). NaN if a sample
// is empty or contains NaN.
func MannWhitney(xs, ys []float64) float64 {
	if len(xs) == 0 || len(ys) == 0 || slices.ContainsFunc(xs, math.IsNaN) || slices.ContainsFunc(ys, math.IsNaN) {
		return math.NaN()
	}
	ranks, w := doubledRanks(xs, ys)
	if len(ranks) <= exactLimit {
		return rankSumExact(ranks, len(xs), w)
	}
	return rankSumNormal(ranks, len(xs), w)
}

// MinP returns the smallest possible p-value for samples of these sizes: if it is above
// the level, no difference can be significant, however large.
func MinP(nx, ny int) float64 {
	if nx < 1 || ny < 1 {
		return math.NaN()
	}
	lnx, _ := math.Lgamma(float64(nx + 1))
	lny, _ := math.Lgamma(float64(ny + 1))
	ln, _ := math.Lgamma(float64(nx + ny + 1))
	return min(1, 2*math.Exp(lnx+lny-ln))
}

// doubledRanks returns twice the mid-rank of every value of both samples, which
// is an integer, and the sum of those of xs.
func doubledRanks(xs, ys []float64) (ranks []int, w int) {
	all := slices.Concat(xs, ys)
	from, ranks := make([]int, len(all)), make([]int, len(all))
	floats.Argsort(all, from)
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		for k := i; k < j; k++ {
			ranks[k] = i + 1 + j // twice the mean of the ranks i+1 … j
			if from[k] < len(xs) {
				w += ranks[k]
			}
		}
		i = j
	}
	return ranks, w
}

// rankSumExact counts, for every sum, the ways to choose n of the ranks. Up to
// 50 ranks all counts are exact in a float64.
func rankSumExact(ranks []int, n, w int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	ways := make([][]float64, n+1)
	for k := range ways {
		ways[k] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for i, r := range ranks {
		for k := min(i+1, n); k >= 1; k-- {
			for s := total; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	// The mean of the sum is total·n/N; compare without dividing.
	N := len(ranks)
	distance := func(s int) int { return max(s*N-total*n, total*n-s*N) }
	var far, all float64
	for s, c := range ways[n] {
		all += c
		if distance(s) >= distance(w) {
			far += c
		}
	}
	return far / all
}

func rankSumNormal(ranks []int, n, w int) float64 {
	N := float64(len(ranks))
	single := make([]float64, len(ranks))
	for i, r := range ranks {
		single[i] = float64(r) / 2
	}
	// The variance of the sum of n ranks drawn without replacement; the ranks already
	// account for ties.
	mean, variance := stat.MeanVariance(single, nil)
	variance *= float64(n) * (N - float64(n)) / N
	if variance == 0 {
		return 1
	}
	distance := math.Abs(float64(w)/2-float64(n)*mean) - 0.5
	if distance <= 0 {
		return 1
	}
	return math.Erfc(distance / math.Sqrt(2*variance))
}

// Holm adjusts the p-values of a family of comparisons (Holm 1979): the probability
// that any true null hypothesis of the family is rejected at level alpha is at most
// alpha, however the comparisons depend on each other. The order is kept. NaN (no
// comparison was possible) stays NaN and does not belong to the family.
func Holm(ps []float64) []float64 {
	order := make([]int, 0, len(ps))
	adjusted := make([]float64, len(ps))
	for i, p := range ps {
		adjusted[i] = p
		if !math.IsNaN(p) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, ps[i]*float64(len(order)-rank)))
		adjusted[i] = least
	}
	return adjusted
}
