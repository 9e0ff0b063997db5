package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

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
