package stats

import (
	"fmt"
	"math"
)

// minRatioN is the smallest sample that gets an interval.
const minRatioN = 5

// Ratio returns median(xs) / median(ys). Its interval combines the exact intervals
// ([MedianCI]) of both samples: on the logarithmic scale, the distances of their ends are
// squared and added (Zou and Donner, Construction of confidence limits about effect
// measures, Statistics in Medicine 27, 2008). If one sample does not vary, it is the
// interval of the other. Conf is conf, or less if the samples are too small.
func Ratio(xs, ys []float64, conf float64) Interval {
	x, okx := sorted(xs)
	y, oky := sorted(ys)
	if !okx || !oky {
		return unbounded(math.NaN(), min(len(xs), len(ys)))
	}
	mx, my := medianSorted(x), medianSorted(y)
	n := min(len(x), len(y))
	ratio := unbounded(mx/my, n)
	switch {
	case !(my > 0) || math.IsInf(my, 0) || mx < 0 || math.IsInf(mx, 0):
		ratio.Mid = math.NaN()
		ratio.Warn = fmt.Sprintf("no ratio of the medians %.4g and %.4g: it needs positive, finite values", mx, my)
		return ratio
	case n < minRatioN:
		ratio.Warn = fmt.Sprintf("%d values give no interval of a ratio; at least %d are needed", n,
			minRatioN)
		return ratio
	case x[0] < 0 || y[0] < 0:
		ratio.Warn = "no interval of a ratio where values are negative"
		return ratio
	}
	ratio.Conf = conf
	if most := RangeConfidence(n); most < conf {
		ratio.Conf = most
		ratio.Warn = fmt.Sprintf("%d values give a %.4g %% interval; at least %d are needed for %.4g %%", n,
			100*most, minMedianN(conf), 100*conf)
	}
	cx, cy := MedianCI(xs, ratio.Conf), MedianCI(ys, ratio.Conf)
	// Equal values have no distance, even if they are 0.
	apart := func(a, b float64) float64 {
		if a == b {
			return 0
		}
		return math.Log(a / b)
	}
	ratio.Lo = ratio.Mid * math.Exp(-math.Hypot(apart(cx.Mid, cx.Lo), apart(cy.Hi, cy.Mid)))
	ratio.Hi = ratio.Mid * math.Exp(math.Hypot(apart(cx.Hi, cx.Mid), apart(cy.Mid, cy.Lo)))
	if ratio.Mid == 0 {
		ratio.Lo, ratio.Hi = 0, cx.Hi/cy.Lo
	}
	return ratio
}
