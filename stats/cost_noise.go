package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// costCell is what the trials of one cell say together.
type costCell struct {
	rtt, size float64
	n         int
	at        float64 // robust location of the times on the scale of costNoise
}

// costNoise is how trials of the same cell differ. The standard deviation of a
// time around its expectation μ is taken as spread·√(floor² + μ²): a share of
// the time, plus what timers and schedulers add to any time. On the scale
// asinh(t/floor) it is the same for all times (Rocke and Durbin 2001, A model
// for measurement error for gene expression arrays; Durbin et al. 2002), which
// for t ≫ floor is the logarithm: a deviation there is a relative error.
type costNoise struct {
	floor    float64 // seconds
	spread   float64 // robust standard deviation of one trial on the scale
	variance float64 // of one trial, as it acts on a cell's location
	freedom  int     // degrees of freedom: trials beyond the first of each cell; 0: nothing was repeated
}

func (c costNoise) scale(t float64) float64 { return math.Asinh(t / c.floor) }

// slope is the derivative of scale.
func (c costNoise) slope(t float64) float64 { return 1 / math.Hypot(t, c.floor) }

func (c costNoise) time(v float64) float64 { return c.floor * math.Sinh(v) }

// leastSpread is the smallest relative spread that is believed: clocks are not
// better, and trials that agree to the last bit must not divide by zero.
const leastSpread = 1e-6

// gatherCells groups the points, in the order of size and round trip, and
// estimates the noise from those that are replicates.
func gatherCells(points []CostPoint) ([]costCell, costNoise, error) {
	groups := map[int][]CostPoint{}
	for i, p := range points {
		if !(p.Time > 0) || math.IsInf(p.Time, 0) {
			return nil, costNoise{}, fmt.Errorf("cost: point %d has a time of %v s: times must be positive and finite; leave out trials that did not finish", i, p.Time)
		}
		if !(p.RTT >= 0) || math.IsInf(p.RTT, 0) || !(p.Size >= 0) || math.IsInf(p.Size, 0) {
			return nil, costNoise{}, fmt.Errorf("cost: point %d has a round trip of %v s and a size of %v bytes: both must be finite and not negative", i, p.RTT, p.Size)
		}
		if g := groups[p.Cell]; len(g) > 0 && g[0].Size != p.Size {
			return nil, costNoise{}, fmt.Errorf("cost: cell %d holds the sizes %v and %v: replicates must have one size", p.Cell, g[0].Size, p.Size)
		}
		groups[p.Cell] = append(groups[p.Cell], p)
	}
	times := make([][]float64, 0, len(groups))
	cells := make([]costCell, 0, len(groups))
	keys := make([]int, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	rtts := map[int]float64{}
	for k, g := range groups {
		of := make([]float64, len(g))
		for i, p := range g {
			of[i] = p.RTT
		}
		rtts[k] = Median(of)
	}
	slices.SortFunc(keys, func(a, b int) int {
		return cmp.Or(cmp.Compare(groups[a][0].Size, groups[b][0].Size), cmp.Compare(rtts[a], rtts[b]), cmp.Compare(a, b))
	})
	for _, k := range keys {
		of := make([]float64, len(groups[k]))
		for i, p := range groups[k] {
			of[i] = p.Time
		}
		slices.Sort(of)
		times = append(times, of)
		cells = append(cells, costCell{rtt: rtts[k], size: groups[k][0].Size, n: len(of)})
	}
	noise := fitNoise(times)
	noise.locate(cells, times)
	return cells, noise, nil
}

// fitNoise finds the floor by maximum likelihood over a ladder of floors, from
// almost none (noise all relative) to beyond the largest time (all additive).
// Only deviations from the median of the cell enter, so no model of the
// expectations is needed; they are taken as Student's t with 3 degrees of
// freedom, whose tails leave outliers little say.
func fitNoise(times [][]float64) costNoise {
	least, most, n := math.Inf(1), 0.0, 0
	for _, of := range times {
		least, most = min(least, of[0]), max(most, of[len(of)-1])
		n += len(of)
	}
	best := costNoise{floor: least / 1000, spread: leastSpread, freedom: n - len(times)}
	if best.freedom == 0 {
		return best
	}
	cost := best.unlikelihood(times, most)
	for floor := least / 8; floor < 64*most; floor *= 2 {
		c := costNoise{floor: floor}
		if u := c.unlikelihood(times, most); u < cost {
			cost, best.floor = u, floor
		}
	}
	best.spread = max(pairSpread(best, times), best.leastSpread(most))
	return best
}

// leastSpread is the constant of that name on the scale, at the largest time.
func (c costNoise) leastSpread(most float64) float64 { return leastSpread * most * c.slope(most) }

// unlikelihood is the negative logarithm of the likelihood, but for a constant,
// at the best spread.
func (c costNoise) unlikelihood(times [][]float64, most float64) float64 {
	var squares []float64
	cost := 0.0
	for _, of := range times {
		mid := c.scale(medianSorted(of))
		for _, t := range of {
			d := c.scale(t) - mid
			squares = append(squares, d*d)
			cost -= math.Log(c.slope(t))
		}
	}
	const nu = 3
	least := c.leastSpread(most)
	s2 := 0.0
	for _, d2 := range squares {
		s2 += math.Sqrt(d2) / float64(len(squares))
	}
	s2 = max(s2*s2, least*least)
	for range 6 { // expectation maximisation of the spread
		sum := 0.0
		for _, d2 := range squares {
			sum += (nu + 1) * d2 / (nu + d2/s2)
		}
		s2 = max(sum/float64(len(squares)), least*least)
	}
	for _, d2 := range squares {
		cost += (nu+1)/2.*math.Log1p(d2/s2/nu) + math.Log(s2)/2
	}
	return cost
}

// pairSpread is a robust standard deviation from all differences between
// replicates: their median absolute value, then the root of their mean square,
// each cut at three of the former.
func pairSpread(c costNoise, times [][]float64) float64 {
	var pairs []float64
	for _, of := range times {
		on := make([]float64, len(of))
		for i, t := range of {
			on[i] = c.scale(t)
		}
		for i := range on {
			for j := range i {
				pairs = append(pairs, math.Abs(on[i]-on[j])/math.Sqrt2)
			}
		}
	}
	slices.Sort(pairs)
	first := medianSorted(pairs) / normalQuartile
	squares := 0.0
	for _, d := range pairs {
		d = min(d, 3*first)
		squares += d * d
	}
	// Half of the differences are ties: the timer is coarser than the noise.
	if first == 0 {
		return 0
	}
	return math.Sqrt(squares / float64(len(pairs)))
}

// normalQuartile is the median absolute deviation of a standard normal variable.
const normalQuartile = 0.6744897501960817

// locate fills in each cell's location, a Tukey M-estimate with the common
// spread, and the variance that a single trial contributes to it (Huber 1981,
// Robust Statistics, §6.5: ψ's mean square over the square of its mean slope).
func (c *costNoise) locate(cells []costCell, times [][]float64) {
	squares, slopes, n := 0.0, 0.0, 0.0
	for g := range cells {
		on := make([]float64, len(times[g]))
		for i, t := range times[g] {
			on[i] = c.scale(t)
		}
		// Disturbances lengthen times: of two that disagree, begin with the shorter.
		at := on[(len(on)-1)/2]
		for range 30 {
			sum, weights := 0.0, 0.0
			for _, v := range on {
				w := tukeyWeight((v - at) / c.spread)
				sum += w * v
				weights += w
			}
			next := sum / weights
			done := math.Abs(next-at) < 1e-9*c.spread
			at = next
			if done {
				break
			}
		}
		cells[g].at = at
		if len(on) < 2 {
			continue
		}
		for _, v := range on {
			u := (v - at) / c.spread
			psi := u * tukeyWeight(u)
			squares += psi * psi
			slopes += tukeySlope(u)
			n++
		}
	}
	c.variance = c.spread * c.spread
	if c.freedom > 0 && slopes > 0 {
		c.variance *= squares / float64(c.freedom) / (slopes / n * slopes / n)
	}
	most := 0.0
	for _, cell := range cells {
		most = max(most, c.time(cell.at))
	}
	least := c.leastSpread(most)
	c.variance = max(c.variance, least*least)
}

// tukeyCut makes Tukey's estimate 95 % as precise as the mean for normal errors.
const tukeyCut = 4.685

func tukeyWeight(u float64) float64 {
	if math.Abs(u) >= tukeyCut {
		return 0
	}
	v := 1 - u*u/(tukeyCut*tukeyCut)
	return v * v
}

// tukeySlope is the derivative of ψ(u) = u·tukeyWeight(u).
func tukeySlope(u float64) float64 {
	if math.Abs(u) >= tukeyCut {
		return 0
	}
	v := u * u / (tukeyCut * tukeyCut)
	return (1 - v) * (1 - 5*v)
}
