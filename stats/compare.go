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

// Load is one trial with N concurrent users and X operations per second, which is positive.
type Load struct{ N, X float64 }

// Level summarises the trials of one N.
type Level struct {
	N, X float64 // X: geometric mean
	P    float64 // p-value that X at the highest N is not below this: Welch, one-sided, Holm over the levels

	logs []float64
}

// Fall compares the throughput at the highest N with that at each other N, by the logarithms
// of trials. It returns the levels in ascending order and the smallest p-value; NaN with fewer
// than two levels, or with a single trial at one of them.
func Fall(trials []Load) ([]Level, float64) {
	byN := map[float64]*Level{}
	for _, t := range trials {
		l := byN[t.N]
		if l == nil {
			l = &Level{N: t.N, P: 1}
			byN[t.N] = l
		}
		l.logs = append(l.logs, math.Log(t.X))
	}
	var levels []Level
	for _, l := range byN {
		l.X = math.Exp(stat.Mean(l.logs, nil))
		levels = append(levels, *l)
	}
	if len(levels) < 2 || slices.ContainsFunc(levels, func(l Level) bool { return len(l.logs) < 2 }) {
		return nil, math.NaN()
	}
	slices.SortFunc(levels, func(a, b Level) int { return cmp.Compare(a.N, b.N) })
	top := levels[len(levels)-1]
	ps := make([]float64, len(levels)-1)
	for i := range ps {
		ps[i] = welchBelow(top.logs, levels[i].logs)
	}
	least := 1.0
	for i, p := range Holm(ps) {
		levels[i].P = p
		least = min(least, p)
	}
	return levels, least
}

// welchBelow returns the one-sided p-value that the mean of a is not below that of b (Welch 1947).
func welchBelow(a, b []float64) float64 {
	ma, va := stat.MeanVariance(a, nil)
	mb, vb := stat.MeanVariance(b, nil)
	na, nb := float64(len(a)), float64(len(b))
	if va+vb == 0 && ma == mb {
		return 1
	}
	return welch(mb-ma, va/na, na, vb/nb, nb).above()
}

// welch returns the difference of two means with the standard error and the degrees of freedom of
// Welch (1947), from the squared standard error and the number of values of each.
func welch(difference, va, na, vb, nb float64) logRatio {
	r := logRatio{mid: difference, se: math.Sqrt(va + vb), freedom: na + nb - 2}
	if r.se > 0 {
		r.freedom = sq(va+vb) / (sq(va)/(na-1) + sq(vb)/(nb-1))
	}
	return r
}

func sq(x float64) float64 { return x * x }
