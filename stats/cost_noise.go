package stats

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// costCell summarises the trials of one cell.
type costCell struct {
	rtt, size float64
	at        float64   // robust location of the times on the scale of costNoise
	spread    float64   // of one trial about it, on the same scale
	times     []float64 // of its trials, ascending
	variance  float64   // of at
}

// costNoise is the noise between trials of the same cell. The standard deviation of a
// time around its expectation μ is modelled as spread·√(floor² + μ²): a share of the
// time, plus what timers and schedulers add to any time. On the scale asinh(t/floor)
// it is the same for all times (Rocke and Durbin 2001, A model for measurement error
// for gene expression arrays; Durbin et al. 2002). For t ≫ floor that is the
// logarithm, where deviations are relative errors.
type costNoise struct {
	floor   float64 // seconds
	spread  float64 // robust standard deviation of one trial on the scale, over all cells
	freedom int     // degrees of freedom: trials beyond the first of each cell; 0: nothing was repeated
	unsure  float64 // variance of the logarithm of a cell's estimated variance; 0: all cells have the same spread
}

func (c costNoise) scale(t float64) float64 { return math.Asinh(t / c.floor) }

func (c costNoise) scaled(times []float64) []float64 {
	on := make([]float64, len(times))
	for i, t := range times {
		on[i] = c.scale(t)
	}
	return on
}

// slope returns the derivative of scale.
func (c costNoise) slope(t float64) float64 { return 1 / math.Hypot(t, c.floor) }

func (c costNoise) time(v float64) float64 { return c.floor * math.Sinh(v) }

// leastSpread is the smallest credible relative spread: clocks are not more precise,
// and identical trials must not cause a division by zero.
const leastSpread = 1e-6

// gatherCells groups the points by cell, in the order of size and round trip, and
// estimates the noise from replicates.
func gatherCells(points []CostPoint) ([]costCell, costNoise, error) {
	groups := map[int][]CostPoint{}
	for i, p := range points {
		if !(p.RTT >= 0) || math.IsInf(p.RTT, 0) {
			return nil, costNoise{}, fmt.Errorf("cost: point %d has a round trip of %v s: it must be finite and not "+
				"negative", i, p.RTT)
		}
		groups[p.Cell] = append(groups[p.Cell], p)
	}
	var cells []costCell
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		c := costCell{size: groups[k][0].Size}
		var rtts []float64
		for _, p := range groups[k] {
			c.times, rtts = append(c.times, p.Time), append(rtts, p.RTT)
		}
		slices.Sort(c.times)
		c.rtt = Median(rtts)
		cells = append(cells, c)
	}
	slices.SortStableFunc(cells, func(a, b costCell) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.rtt, b.rtt))
	})
	noise := fitNoise(cells)
	noise.locate(cells)
	return cells, noise, nil
}

// fitNoise finds the floor by maximum likelihood over a grid of floors, from almost 0
// (relative noise) to beyond the largest time (additive noise). It uses only
// deviations from the median of each cell, so it needs no model of the expectations;
// they are modelled as Student's t with 3 degrees of freedom, which limits the
// influence of outliers.
func fitNoise(cells []costCell) costNoise {
	least, most, n := math.Inf(1), 0.0, 0
	for _, c := range cells {
		least, most = min(least, c.times[0]), max(most, c.times[len(c.times)-1])
		n += len(c.times)
	}
	best := costNoise{floor: least / 1000, spread: leastSpread, freedom: n - len(cells)}
	if best.freedom == 0 {
		return best
	}
	cost := best.unlikelihood(cells, most)
	for floor := least / 8; floor < 64*most; floor *= 2 {
		c := costNoise{floor: floor}
		if u := c.unlikelihood(cells, most); u < cost {
			cost, best.floor = u, floor
		}
	}
	best.spread = max(pairSpread(best, cells), best.leastSpread(most))
	return best
}

// leastSpread returns the constant leastSpread on the scale, at the largest time.
func (c costNoise) leastSpread(most float64) float64 { return leastSpread * most * c.slope(most) }

// unlikelihood returns the negative logarithm of the likelihood, except for a constant, at
// the best spread.
func (c costNoise) unlikelihood(cells []costCell, most float64) float64 {
	var squares []float64
	cost := 0.0
	for _, cell := range cells {
		mid := c.scale(medianSorted(cell.times))
		for _, t := range cell.times {
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

// pairSpread returns a robust standard deviation from all differences between replicates:
// the root of their mean square, each truncated at three times their median absolute
// value; 0 if half of them are ties, because the timer is coarser than the noise.
func pairSpread(c costNoise, cells []costCell) float64 {
	var pairs []float64
	for _, cell := range cells {
		on := c.scaled(cell.times)
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
	return math.Sqrt(squares / float64(len(pairs)))
}

// normalQuartile is the median absolute deviation of a standard normal variable.
const normalQuartile = 0.6744897501960817

// normalDecile is the 90th percentile of a standard normal variable.
const normalDecile = 1.2815515655446004

// locate fills in each cell's spread, its location (Tukey's M-estimate) and
// the variance of that (Huber 1981, Robust Statistics, §6.5: ψ's mean square
// over the square of its mean slope).
func (c *costNoise) locate(cells []costCell) {
	most := 0.0
	values := make([][]float64, len(cells))
	for g, cell := range cells {
		values[g], most = c.scaled(cell.times), max(most, cell.times[len(cell.times)-1])
	}
	least := c.leastSpread(most)
	c.spreads(cells, values, least)
	squares, slopes, n := 0.0, 0.0, 0.0
	for g, on := range values {
		cell := &cells[g]
		cell.at = medianSorted(on)
		if len(on) == 2 { // disturbances lengthen times: start with the shorter one
			cell.at = on[0]
		}
		for range 30 {
			sum, weights := 0.0, 0.0
			for _, v := range on {
				w := tukeyWeight((v - cell.at) / cell.spread)
				sum += w * v
				weights += w
			}
			if weights == 0 { // far apart, with none near their median
				break
			}
			before := cell.at
			cell.at = sum / weights
			if math.Abs(cell.at-before) < 1e-9*cell.spread {
				break
			}
		}
		if len(on) < 2 {
			continue
		}
		for _, v := range on {
			u := (v - cell.at) / cell.spread
			psi := u * tukeyWeight(u)
			squares += psi * psi
			slopes += tukeySlope(u)
			n++
		}
	}
	precision := 1.0
	if c.freedom > 0 && slopes > 0 {
		precision = squares / float64(c.freedom) / (slopes / n * slopes / n)
	}
	for g := range cells {
		s := max(cells[g].spread*math.Sqrt(precision), least)
		cells[g].variance = s * s / float64(len(cells[g].times))
	}
}

// minSpreadCells is the smallest number of repeated cells whose spreads are compared
// with each other.
const minSpreadCells = 8

// spreads gives each cell the common spread, unless the spreads of cells differ by
// more than chance explains: a part of a system may be noisier than its time suggests.
// Then the spread of each cell is shrunk towards the common one, in logarithms, by the
// share due to chance (empirical Bayes; see Smyth 2004). The spread of a cell is Qn
// (Rousseeuw and Croux 1993), which is insensitive to an outlier.
func (c *costNoise) spreads(cells []costCell, values [][]float64, least float64) {
	own := make([]float64, len(cells)) // logarithm of the variance over the common one
	var repeated []float64
	chance := 0.0
	for g, on := range values {
		cells[g].spread = c.spread
		if len(on) < 2 {
			continue
		}
		own[g] = 2 * math.Log(max(qn(on), c.spread/20, least)/c.spread)
		repeated = append(repeated, own[g])
		chance += qnVariance(len(on))
	}
	if len(repeated) < minSpreadCells {
		return
	}
	chance /= float64(len(repeated))
	slices.Sort(repeated)
	m := len(repeated)
	s := (repeated[m-1-m/10] - repeated[m/10]) / (2 * normalDecile)
	// 1.5 standard errors of a variance estimated from deciles.
	if s*s < chance*(1+1.5*1.75/math.Sqrt(float64(m))) {
		return
	}
	between, mid := s*s-chance, medianSorted(repeated)
	c.unsure = between * chance / (between + chance)
	for g, on := range values {
		if len(on) < 2 {
			continue
		}
		share := between / (between + qnVariance(len(on)))
		cells[g].spread = c.spread * math.Exp(share*(own[g]-mid)/2)
	}
}

// qn returns the scale estimate of Rousseeuw and Croux (1993): roughly the lower quartile
// of the differences between values, with their correction for small samples.
func qn(sorted []float64) float64 {
	n := len(sorted)
	var differences []float64
	for i := range sorted {
		for j := range i {
			differences = append(differences, sorted[i]-sorted[j])
		}
	}
	slices.Sort(differences)
	h := n/2 + 1
	few := [...]float64{2: 0.399, 3: 0.994, 4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}
	factor := float64(n) / (float64(n) + 3.8)
	switch {
	case n < len(few):
		factor = few[n]
	case n%2 == 1:
		factor = float64(n) / (float64(n) + 1.4)
	}
	return 2.2219 * factor * differences[h*(h-1)/2-1]
}

// qnVariance returns the variance of the logarithm of qn's square for normal values,
// within a seventh of what simulation gives for n up to 12.
func qnVariance(n int) float64 { return 4 / float64(2*(n/2)-1) }

// tukeyCut makes Tukey's estimate 95 % as precise as the mean for normal errors.
const tukeyCut = 4.685

func tukeyWeight(u float64) float64 {
	if math.Abs(u) >= tukeyCut {
		return 0
	}
	v := 1 - u*u/(tukeyCut*tukeyCut)
	return v * v
}

// tukeySlope returns the derivative of ψ(u) = u·tukeyWeight(u).
func tukeySlope(u float64) float64 {
	if math.Abs(u) >= tukeyCut {
		return 0
	}
	v := u * u / (tukeyCut * tukeyCut)
	return (1 - v) * (1 - 5*v)
}
