package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// MeanPairedRatio is the geometric mean over groups of the ratio of medians that
// [PairedRatio] gives for each, every group weighing the same: it lies between the
// least and the greatest of these. A group's values belong together in pairs,
// groups[i][0][j] with groups[i][1][j]. The interval is a percentile bootstrap that
// draws pairs within their groups. The same seed gives the same interval.
//
// Groups whose ratio is not positive and finite are left out; N is how many were
// not. A group with a single pair has no spread to draw from: the interval is then
// not bounded.
func MeanPairedRatio(groups [][2][]float64, conf float64, seed uint64) Interval {
	const draws = 5000
	var used [][2]resampled
	sum, thin := 0.0, false
	for _, g := range groups {
		if len(g[0]) == 0 || len(g[0]) != len(g[1]) {
			continue
		}
		log := math.Log(Median(g[0]) / Median(g[1]))
		if math.IsNaN(log) || math.IsInf(log, 0) {
			continue
		}
		sum += log
		used = append(used, [2]resampled{resample(g[0]), resample(g[1])})
		thin = thin || len(g[0]) < 2
	}
	if len(used) == 0 {
		return unknown(0, "no group has a ratio")
	}
	n := float64(len(used))
	mean := Interval{Mid: math.Exp(sum / n), Lo: math.Inf(-1), Hi: math.Inf(1), Conf: 1, N: len(used)}
	if thin {
		mean.Warn = "a group with a single pair has no spread"
		return mean
	}
	rng := rand.New(rand.NewPCG(seed, 0x706f6f6c))
	all := make([]float64, draws)
	for i := range all {
		sum := 0.0
		for _, g := range used {
			sum += math.Log(drawPairs(g, pairsDrawn(len(g[0].rank)), rng))
		}
		all[i] = math.Exp(sum / n)
		if math.IsNaN(all[i]) { // 0/0, ∞/∞: it could be anything
			all[i] = math.Inf(1)
		}
	}
	slices.Sort(all)
	at := int(math.Round((1 - conf) / 2 * draws))
	mean.Lo, mean.Hi, mean.Conf = all[at], all[draws-1-at], conf
	return mean
}

// pairsDrawn is how many of n pairs a resample has. Of two it is one, which makes
// the spread right where medians are means (Rao and Wu, JASA 83, 1988). Medians of
// odd numbers scatter more than is needed, so an even number is drawn: found by
// simulation, ratio_mean_test.go has how often the interval covers.
func pairsDrawn(n int) int {
	switch n {
	case 2:
		return 1
	case 3:
		return 3
	}
	return n - n%2
}
