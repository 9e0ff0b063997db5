package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Proportion is the share k/n with the exact interval of Clopper and Pearson
// (1934): the shares p under which k or more, or k or fewer, of n independent
// cases each have a probability of at least (1−conf)/2. It covers the truth at
// least as often as Conf says. It is for independent cases, such as trials;
// requests of one trial are not independent, and their interval would be too
// narrow.
func Proportion(k, n int64, conf float64) Interval {
	if n <= 0 || k < 0 || k > n {
		return Interval{Mid: math.NaN(), Lo: 0, Hi: 1, Conf: 1, N: int(max(n, 0)), Warn: fmt.Sprintf("no share of %d in %d", k, n)}
	}
	tail := (1 - conf) / 2
	i := Interval{Mid: float64(k) / float64(n), Lo: 0, Hi: 1, Conf: conf, Exact: true, N: int(n)}
	if k > 0 {
		i.Lo = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(tail)
	}
	if k < n {
		i.Hi = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(1 - tail)
	}
	return i
}
