package stats

import "gonum.org/v1/gonum/stat/distuv"

// Concentrated reports whether one cluster contains most of all failures, and more than
// independent failures would in 99 of 100 cases. Then further clusters may be like that one,
// and the spread of the others says little about how often.
func Concentrated(clusters []Count) bool {
	failures, n := 0.0, 0.0
	for _, c := range clusters {
		failures, n = failures+c.N-c.K, n+c.N
	}
	if failures < 2 {
		return false
	}
	// By the union bound over clusters that each could have held as many.
	for _, c := range clusters {
		held := c.N - c.K
		if held <= failures/2 {
			continue
		}
		chance := 0.0
		for _, other := range clusters {
			chance += 1 - distuv.Binomial{N: failures, P: other.N / n}.CDF(held-1)
		}
		return chance < 0.01
	}
	return false
}
