package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Proportion returns the share k/n (n is positive) with the exact interval of Clopper and Pearson
// (1934): the shares p for which k or more, and k or fewer, of n independent cases each have a
// probability of at least (1−conf)/2. Its coverage is at least Conf. Cases must be
// independent, like trials; for requests of several trials see [ClusteredProportion].
func Proportion(k, n int64, conf float64) Interval {
	tail := (1 - conf) / 2
	i := Interval{Mid: float64(k) / float64(n), Lo: 0, Hi: 1, Conf: conf, N: int(n)}
	if k > 0 {
		i.Lo = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(tail)
	}
	if k < n {
		i.Hi = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(1 - tail)
	}
	return i
}

// Count is K cases of N in one cluster, such as the operations of one trial.
type Count struct{ K, N float64 }

// ClusteredProportion returns the share over clusters whose cases are not independent, such
// as operations or nodes of one trial. The interval is that of Korn and Graubard (Survey
// Methodology 24, 1998): Clopper and Pearson's for the effective number of independent
// cases, n/deff · (t(n−1)/t(m−1))² for n cases in m clusters, where deff is estimated from
// the spread between clusters. N is the effective number.
//
// If the share is 0 or 1, there is no spread. With oneFate the clusters are then the
// cases; otherwise deff is 1. A single cluster has no interval.
func ClusteredProportion(clusters []Count, oneFate bool, conf float64) Interval {
	k, n, m := 0.0, 0.0, 0.0
	for _, c := range clusters {
		k, n = k+c.K, n+c.N
		if c.N > 0 {
			m++
		}
	}
	share := k / n
	if m < 2 {
		return unbounded(share, int(m))
	}
	all := share == 0 || share == 1
	effect := 1.0
	if !all {
		between := 0.0
		for _, c := range clusters {
			d := c.K - c.N*share
			between += d * d
		}
		effect = max(1, between*m/(m-1)/(n*share*(1-share)))
	}
	worth := m
	if !all || !oneFate {
		t := func(df float64) float64 {
			return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile((1 + conf) / 2)
		}
		worth = max(1, math.Floor(n/effect*math.Pow(t(n-1)/t(m-1), 2)))
	}
	lo := Proportion(int64(math.Floor(share*worth)), int64(worth), conf)
	hi := Proportion(int64(math.Ceil(share*worth)), int64(worth), conf)
	return Interval{Mid: share, Lo: lo.Lo, Hi: hi.Hi, Conf: conf, N: int(worth)}
}

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
