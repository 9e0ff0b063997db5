package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// costMargin is how far beyond what was measured a prediction may go: this
// share of the smallest and of the largest size, and of the range of the round
// trips on either side.
const costMargin = 0.1

// Supports says why the model must not be asked about a round trip and a size;
// nil: both lie within what was measured, or beyond it by costMargin at most,
// and not between two segments, where R changes at a size that is not known.
func (m CostModel) Supports(rtt, size float64) error {
	if m.fit == nil {
		return errors.New("nothing was fitted")
	}
	cells := m.fit.cells // sorted by size
	from, to := cells[0].size, cells[len(cells)-1].size
	if size < from*(1-costMargin) || size > to*(1+costMargin) {
		return fmt.Errorf("a size of %s is outside of what the fit rests on, %s", bytesText(size), span(bytesText(from), bytesText(to)))
	}
	for k := 1; k < len(m.Segments); k++ {
		if before, after := m.Segments[k-1].To, m.Segments[k].From; size > before && size < after {
			return fmt.Errorf("a size of %s is between %s and %s, where the cost of a round trip changes: at which size is not known", bytesText(size), bytesText(before), bytesText(after))
		}
	}
	least, most := math.Inf(1), 0.0
	for _, c := range cells {
		least, most = min(least, c.rtt), max(most, c.rtt)
	}
	margin := max(costMargin*(most-least), sameRTT*most, sameRTTAbsolute)
	if rtt < least-margin || rtt > most+margin {
		return fmt.Errorf("a round trip of %.3g ms is outside of what the fit rests on, %s", 1e3*rtt, span(fmt.Sprintf("%.3g ms", 1e3*least), fmt.Sprintf("%.3g ms", 1e3*most)))
	}
	return nil
}

func span(from, to string) string {
	if from == to {
		return from + " alone"
	}
	return from + " to " + to
}

func bytesText(v float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if v >= u.size {
			return fmt.Sprintf("%.4g %s", v/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.4g B", v)
}

// PredictInterval is the time of a cell that need not have been measured: the
// median over so many trials of it lies within the interval at conf. It adds
// three errors on the scale of the noise, which are independent: that of the
// parameters; what cells miss the model by, beyond what replicates differ by;
// and what trials differ by. For the latter the normal distribution is not
// relied on where there are replicates enough to see its tails, see reach. The
// choice of segments is taken as right. Where the model must not be asked (see
// [CostModel.Supports]) there is no interval, and a reason.
func (m CostModel) PredictInterval(rtt, size float64, trials int, conf float64) Interval {
	if err := m.Supports(rtt, size); err != nil {
		return unknown(m.Points, err.Error())
	}
	noise := m.fit.noise
	half, ok := m.fit.modelError(rtt, size, conf)
	if !ok {
		return unknown(m.Points, "no interval: the cells leave nothing over to tell the error of the model")
	}
	spread := m.fit.spreadAt(rtt, size)
	below, above := m.fit.reach(conf)
	if trials > 2 { // a median: the tails are cut off
		below = distuv.UnitNormal.Quantile((1 + conf) / 2)
		above = below
	}
	spread *= math.Sqrt(medianVariance(trials))
	return noise.around(m.Predict(rtt, size), math.Hypot(half, below*spread), math.Hypot(half, above*spread), conf, m.Points)
}

// widest is the largest factor between a prediction and an end of its interval.
const widest = 10

// around is the interval from so far below to so far above a time, on the scale.
func (c costNoise) around(mid, below, above, conf float64, n int) Interval {
	if !(mid > 0) {
		return unknown(n, "the model gives no time above 0 here")
	}
	at := c.scale(mid)
	if lo, hi := c.time(at-below), c.time(at+above); hi > widest*mid || lo < mid/widest && mid > widest*c.floor {
		return unknown(n, fmt.Sprintf("the interval would reach beyond a factor of %d: the fit says next to nothing here", widest))
	}
	return Interval{Mid: mid, Lo: max(0, c.time(at-below)), Hi: c.time(at + above), Conf: conf, N: n}
}

// medianVariance is the variance of the median of n standard normal values: 1
// for one, π/2n for many, and within a tenth between, but for 2 (0.61 for 0.5).
func medianVariance(n int) float64 {
	return math.Pi / (float64(2*n) + math.Pi - 2)
}

// modelError is the half width, on the scale of the noise, of what is not known
// of a cell's expectation: the parameters' part, and the cells' own misfit.
func (f *costFit) modelError(rtt, size, conf float64) (float64, bool) {
	s, ok := f.sandwich()
	if !ok {
		return 0, false
	}
	at := costCell{rtt: rtt, size: size}
	x := make([]float64, len(f.beta))
	f.form.row(at, x)
	standardError, freedom := s.of(x)
	left := len(f.cells) - len(f.beta)
	if !(freedom > 0) || left <= 0 || f.noise.freedom == 0 {
		return 0, false
	}
	expected := 0.0
	for j := range x {
		expected += x[j] * f.beta[j]
	}
	student := func(freedom float64) float64 {
		return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: max(freedom, 1)}.Quantile((1 + conf) / 2)
	}
	parameters := student(freedom) * standardError * f.noise.slope(expected)
	variance := 0.0
	for _, c := range f.cells {
		variance += c.variance / float64(len(f.cells))
	}
	own := 0.0
	if excess := f.misfit()*f.misfit() - 1; excess > 0 {
		own = student(float64(left)) * math.Sqrt(excess*variance)
	}
	return math.Hypot(parameters, own), true
}

// spreadAt is what one trial of a cell there differs by. Where cells' own
// spreads differ, it is the root mean square of those nearest: on either side
// of its size and of its round trip.
func (f *costFit) spreadAt(rtt, size float64) float64 {
	if f.noise.unsure == 0 {
		return f.noise.spread
	}
	below, above := math.Inf(-1), math.Inf(1)
	for _, c := range f.cells {
		if c.size <= size {
			below = max(below, c.size)
		}
		if c.size >= size {
			above = min(above, c.size)
		}
	}
	sum, n := 0.0, 0.0
	for _, edge := range []float64{below, above} {
		var lower, upper *costCell
		for i := range f.cells {
			c := &f.cells[i]
			if c.size != edge {
				continue
			}
			if c.rtt <= rtt && (lower == nil || c.rtt > lower.rtt) {
				lower = c
			}
			if c.rtt >= rtt && (upper == nil || c.rtt < upper.rtt) {
				upper = c
			}
		}
		for _, c := range []*costCell{lower, upper} {
			if c != nil {
				sum += c.spread * c.spread
				n++
			}
		}
	}
	if n == 0 {
		return f.noise.spread
	}
	return math.Sqrt(sum / n)
}

// enoughForTails is how many replicates it takes to read the ends of an
// interval off them instead of a distribution.
const enoughForTails = 40

// reach is how many spreads a trial may lie below and above its cell's
// expectation: the order statistic of conf among the deviations of each trial
// from the median of its cell's others, with the one that is to come counted in
// (split conformal prediction: Lei et al. 2018, Distribution-free predictive
// inference for regression), or Student's t where there are too few of them.
// Disturbances only lengthen times, so below it is no more than a quarter of
// the trials outside need.
func (f *costFit) reach(conf float64) (below, above float64) {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(max(f.noise.freedom, 1))}.Quantile((1 + conf) / 2)
	var signed []float64
	for _, c := range f.cells {
		if len(c.times) < 2 {
			continue
		}
		wider := math.Sqrt(1 + medianVariance(len(c.times)-1))
		for i, v := range c.times {
			others := slices.Delete(slices.Clone(c.times), i, i+1)
			d := f.noise.scale(v) - f.noise.scale(medianSorted(others))
			signed = append(signed, d/c.spread/wider)
		}
	}
	if len(signed) < enoughForTails {
		return t, t
	}
	slices.Sort(signed)
	n := float64(len(signed) + 1)
	low := -signed[max(int((1-conf)/4*n), 1)-1]
	for i, d := range signed {
		signed[i] = math.Abs(d)
	}
	slices.Sort(signed)
	above = max(signed[min(int(math.Ceil(conf*n)), len(signed))-1], t)
	return min(max(low, t), above), above
}

// CostHeldOut is a cell beside what the model of all others gives for it.
type CostHeldOut struct {
	Cell      int
	RTT, Size float64
	Trials    int
	Time      float64  // the median over its trials
	Median    Interval // predicted for that; unknown, with the reason, where the others do not support it
	Trial     Interval // predicted for a single trial
	Inside    int      // trials that lie in that
}

// HoldOutCost leaves each cell out in turn, fits the others and predicts it, in
// the order of size and round trip. An error: the points cannot be fitted.
func HoldOutCost(points []CostPoint, conf float64) ([]CostHeldOut, error) {
	if _, err := FitCost(points, conf); err != nil {
		return nil, err
	}
	byCell := map[int][]CostPoint{}
	for _, p := range points {
		byCell[p.Cell] = append(byCell[p.Cell], p)
	}
	var held []CostHeldOut
	for id, own := range byCell {
		var rtts, times []float64
		for _, p := range own {
			rtts, times = append(rtts, p.RTT), append(times, p.Time)
		}
		h := CostHeldOut{Cell: id, RTT: Median(rtts), Size: own[0].Size, Trials: len(own), Time: Median(times)}
		others := slices.DeleteFunc(slices.Clone(points), func(p CostPoint) bool { return p.Cell == id })
		m, err := FitCost(others, conf)
		if err != nil {
			h.Median = unknown(len(others), err.Error())
			h.Trial = h.Median
		} else {
			h.Median, h.Trial = m.PredictInterval(h.RTT, h.Size, h.Trials, conf), m.PredictInterval(h.RTT, h.Size, 1, conf)
		}
		for _, t := range times {
			if h.Trial.Bounded() && h.Trial.Contains(t) {
				h.Inside++
			}
		}
		held = append(held, h)
	}
	slices.SortFunc(held, func(a, b CostHeldOut) int {
		for _, d := range []float64{a.Size - b.Size, a.RTT - b.RTT, float64(a.Cell - b.Cell)} {
			if d != 0 {
				return int(math.Copysign(1, d))
			}
		}
		return 0
	})
	return held, nil
}

// CostSingle is the time of a single operation, and its trial's, which is the
// median of such.
type CostSingle struct{ Time, Trial float64 }

// PredictSingle is the time of a single operation of a cell that need not have
// been measured. What it differs by from its trial's median is taken from
// operations of all cells, on the scale of the noise, with the tail of long
// times told from that of short ones; no interval where they are too few.
func (m CostModel) PredictSingle(rtt, size float64, singles []CostSingle, conf float64) Interval {
	trial := m.PredictInterval(rtt, size, 1, conf)
	if !trial.Bounded() {
		return trial
	}
	if len(singles) < enoughForTails {
		return unknown(len(singles), fmt.Sprintf("%d operations are too few to tell how single ones differ", len(singles)))
	}
	noise := m.fit.noise
	deviations := make([]float64, len(singles))
	for i, s := range singles {
		deviations[i] = noise.scale(s.Time) - noise.scale(s.Trial)
	}
	slices.Sort(deviations)
	beyond := (1 - conf) / 2 * float64(len(deviations)+1)
	k := max(int(math.Floor(beyond)), 1)
	shortest, longest := min(deviations[k-1], 0), max(deviations[len(deviations)-k], 0)
	at := noise.scale(trial.Mid)
	return noise.around(trial.Mid, math.Hypot(at-noise.scale(trial.Lo), shortest), math.Hypot(noise.scale(trial.Hi)-at, longest), conf, len(singles))
}
