package stats

import (
	"fmt"
	"math"
	"slices"
)

// Lot is what several things take together: bytes, say, of objects of these sizes.
type Lot struct {
	Sizes []float64
	Takes float64
}

// QuantumFit says that things are rounded up to whole quanta, each with a constant
// beside it: what one takes is Factor·(q·⌈size/q⌉ + Beside).
type QuantumFit struct {
	Found   bool
	Quantum Interval // q: the roundest value that explains the lots, and all that do
	Factor  Interval // what one unit of padded size takes: with that value, and with all
	Beside  float64  // the constant, in units of size
	Waste   Interval // likewise: share of all that was taken that is neither size nor Factor: padding and what is beside it
	Lots    int
	Things  int
	Sizes   int     // different ones
	Telling int     // of them, those that rounding up makes a tenth larger, or more
	Steps   int     // different numbers of quanta among the sizes
	Misfit  float64 // mean relative residual
	Linear  float64 // likewise, of the model without a quantum
	Gain    float64 // by how much Akaike's criterion is better than that of the model without
	Floor   float64 // not below 0: it is so much better than that of a least size as it must be, and by that
	Why     string  // where nothing is found
}

const (
	// minQuantumSizes is how many different sizes a quantum needs: the model has
	// three parameters and a noise.
	minQuantumSizes = 6
	// minTelling sizes must be padded by a tenth or more: the others say nothing.
	minTelling = 3
	telling    = 0.1
	// leastGain of the criterion: the model without a quantum is then e⁵ = 150 times
	// less likely (Burnham and Anderson 2002, §2.6: "essentially no support").
	leastGain = 10
	// seriesGain is the same of a series, whose sums go astray together (simulated).
	seriesGain = 30
	// mostMisfit is the mean relative residual beyond which a quantum explains
	// nothing, however much less the line does.
	mostMisfit = 0.05
	// quantumPrecision is the relative residual below which one model is as good as
	// another: metadata that nobody counts differ by as much.
	quantumPrecision = 1e-3
	// leastMisfit of the line: one that is off by less needs no other model.
	leastMisfit = 5 * quantumPrecision
	// quantumReach is how far apart the ends of what is not excluded may be.
	quantumReach = 3
	// roundReach is how far a power of two may be from the best to be taken though it
	// is worse: the factor goes as 1/q where sizes tell little.
	roundReach = 1.1
	// leastStored is how far below 1 a factor may be besides the noise: what is
	// stored takes its size at least.
	leastStored = 0.01
	// hardly is the difference of the criterion that is none.
	hardly      = 2
	quantumStep = 1.02 // of the search
	quantumMost = 120  // lots that are looked at
	thingsMost  = 20000
)

// Quantum finds the unit that sizes are rounded up to. It compares
//
//	takes = Σ a·(q·⌈size/q⌉ + c)  with  takes = Σ a·(size + c)  and
//	takes = Σ a·(max(size, m) + c),  a ≥ 1 of the first, c ≥ 0,
//
// (the last is a least size, from which on nothing is rounded) by Akaike's criterion with the correction for few values (Hurvich and Tsai 1989),
// for residuals relative to what was taken and as heavy-tailed as Laplace's
// distribution, so that a few odd lots do not decide. q is looked for over all
// sizes; what is not excluded is where the criterion is less than 10
// above its least, which holds the truth in nine runs of ten (simulated), and of
// that a round value is taken where it is hardly worse. Lots of a single size each
// should be medians of what repeats gave.
func Quantum(lots []Lot) QuantumFit { return quantumOf(lots, false) }

// QuantumOfSeries is [Quantum] of lots that follow one another, of which each may
// hold a part of what the next should: sums from the beginning are compared, whose
// error does not grow, and residuals are in units of the mean lot.
func QuantumOfSeries(lots []Lot) QuantumFit { return quantumOf(lots, true) }

func quantumOf(lots []Lot, series bool) QuantumFit {
	none := unknown(len(lots), "")
	f := QuantumFit{Quantum: none, Factor: none, Waste: none}
	var kept []Lot
	distinct := map[float64]bool{}
	for _, l := range lots {
		if !(l.Takes > 0) || math.IsInf(l.Takes, 0) || len(l.Sizes) == 0 || slices.ContainsFunc(l.Sizes, func(s float64) bool { return !(s > 0) || math.IsInf(s, 0) }) {
			continue
		}
		kept = append(kept, l)
	}
	if !series {
		kept = thinned(kept)
	}
	sum := 0.0
	for _, l := range kept {
		f.Things += len(l.Sizes)
		for _, s := range l.Sizes {
			distinct[s] = true
			sum += s
		}
	}
	f.Lots, f.Sizes = len(kept), len(distinct)
	f.Quantum.N = f.Lots
	if f.Sizes < minQuantumSizes || f.Lots < minQuantumSizes {
		f.Why = fmt.Sprintf("%d sizes in %d observations: at least %d of each are needed to find what they are rounded up to", f.Sizes, f.Lots, minQuantumSizes)
		return f
	}
	line := fitQuantum(kept, plain, 0, series)
	f.Linear = line.misfit
	if line.misfit < leastMisfit {
		f.Why = "what is taken goes with the size"
		return f
	}
	sizes := make([]float64, 0, len(distinct))
	for s := range distinct {
		sizes = append(sizes, s)
	}
	slices.Sort(sizes)
	least, most := sizes[0], sizes[len(sizes)-1]
	tries := searchQuantum(kept, rounded, series, least, most)
	all := slices.DeleteFunc(slices.Clone(tries), func(t quantumTry) bool {
		return t.factor < 1-leastStored-min(t.misfit, mostMisfit)
	})
	if len(all) == 0 || bestOf(all).criterion > bestOf(tries).criterion+leastGain {
		f.Why = "rounding up explains it only if less than the size is kept"
		return f
	}
	best := bestOf(all)
	chosen := roundest(all, best)
	taken := 0.0
	for _, l := range kept {
		taken += l.Takes
	}
	waste := func(t quantumTry) float64 { return max(0, 1-t.factor*sum/taken) }
	one := func(x float64) Interval { return Interval{Mid: x, Lo: x, Hi: x, Conf: 0.9, N: f.Lots} }
	f.Quantum, f.Factor, f.Waste = one(chosen.q), one(chosen.factor), one(waste(chosen))
	for _, t := range all {
		if t.criterion <= best.criterion+leastGain {
			f.Quantum.extend(t.q)
			f.Factor.extend(t.factor)
			f.Waste.extend(waste(t))
		}
	}
	f.Beside, f.Misfit = chosen.constant/chosen.factor, chosen.misfit
	f.Gain = line.criterion - chosen.criterion
	enough := float64(leastGain)
	if series {
		enough = seriesGain
	}
	steps := map[float64]bool{}
	for _, s := range sizes {
		n := max(1, math.Ceil(s/chosen.q))
		steps[n] = true
		if n*chosen.q > s*(1+telling) {
			f.Telling++
		}
	}
	f.Steps = len(steps)
	switch {
	case !(chosen.factor > 0) || f.Misfit > mostMisfit && !(series && f.Misfit < mostMisfit*float64(f.Lots)):
		f.Why = fmt.Sprintf("no quantum explains what is taken: it is off by %.2g %% in the mean", 100*f.Misfit)
	case !(f.Gain >= enough):
		f.Why = "a quantum explains it no better than a constant beside each"
	case f.Telling < minTelling || f.Steps < 2:
		f.Why = fmt.Sprintf("%d sizes are much smaller or larger than whole quanta, in %d different numbers of them: at least %d and 2 are needed", f.Telling, f.Steps, minTelling)
	case f.Quantum.Hi > quantumReach*f.Quantum.Lo:
		f.Why = fmt.Sprintf("any quantum from %.3g to %.3g would do", f.Quantum.Lo, f.Quantum.Hi)
	default:
		floor := bestOf(searchQuantum(kept, atLeast, series, least, most))
		beside := bestOf(searchQuantum(kept, atLeastBeside, series, least, most))
		f.Floor = min(floor.criterion-leastGain, beside.criterion-hardly) - chosen.criterion
		if f.Found = f.Floor >= 0; !f.Found {
			f.Why = "a least size explains it as well"
		}
	}
	return f
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// thinned leaves lots out, evenly, until they are few enough to be looked at.
func thinned(lots []Lot) []Lot {
	things := 0
	for _, l := range lots {
		things += len(l.Sizes)
	}
	every := max((len(lots)+quantumMost-1)/quantumMost, (things+thingsMost-1)/thingsMost)
	if every <= 1 || len(lots)/every < minQuantumSizes {
		return lots
	}
	var few []Lot
	for i := 0; i < len(lots); i += every {
		few = append(few, lots[i])
	}
	return few
}

func (i *Interval) extend(x float64) { i.Lo, i.Hi = min(i.Lo, x), max(i.Hi, x) }

func bestOf(all []quantumTry) quantumTry {
	return slices.MinFunc(all, func(a, b quantumTry) int { return cmpFloat(a.criterion, b.criterion) })
}

// sizing is what becomes of a size s with a unit q.
type sizing int

const (
	plain         sizing = iota // s
	rounded                     // q·⌈s/q⌉
	atLeast                     // max(s, q)
	atLeastBeside               // likewise, with a constant
)

func (z sizing) of(s, q float64) float64 {
	switch z {
	case rounded:
		return q * max(1, math.Ceil(s/q))
	case atLeast, atLeastBeside:
		return max(s, q)
	}
	return s
}

// quantumTry is the fit with one quantum, or one least size.
type quantumTry struct {
	q, factor, constant float64
	misfit              float64 // mean relative residual
	criterion           float64
}

// quantumData is what lots are with one quantum: what they take is factor·padded +
// constant·things.
type quantumData struct {
	padded, things, takes []float64
}

// padded makes of sizes what z does with q. Values are relative to what each lot
// takes, or sums of a series, relative to the mean lot.
func padded(lots []Lot, z sizing, q float64, series bool) quantumData {
	n := len(lots)
	d := quantumData{make([]float64, n), make([]float64, n), make([]float64, n)}
	mean := 0.0
	for _, l := range lots {
		mean += l.Takes / float64(n)
	}
	for i, l := range lots {
		by := l.Takes
		if series {
			by = mean
		}
		sum := 0.0
		for _, s := range l.Sizes {
			sum += z.of(s, q)
		}
		d.padded[i], d.things[i], d.takes[i] = sum/by, float64(len(l.Sizes))/by, l.Takes/by
		if series && i > 0 {
			d.padded[i] += d.padded[i-1]
			d.things[i] += d.things[i-1]
			d.takes[i] += d.takes[i-1]
		}
	}
	return d
}

// fitQuantum fits a factor; with a constant where there is no unit, and with whole
// quanta where that is worth a parameter.
func fitQuantum(lots []Lot, z sizing, q float64, series bool) quantumTry {
	d := padded(lots, z, q, series)
	if z == atLeast {
		return d.fit(q, false)
	}
	with := d.fit(q, true)
	if z == rounded {
		if without := d.fit(q, false); without.criterion <= with.criterion {
			return without
		}
	}
	return with
}

// fit is by least absolute residuals.
func (d quantumData) fit(q float64, constant bool) quantumTry {
	n := len(d.takes)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1
	}
	t := quantumTry{q: q, misfit: math.Inf(1)}
	for range 12 { // reweighted least squares
		a, b := d.twoColumns(weights, constant)
		sum := 0.0
		for i := range weights {
			r := math.Abs(d.takes[i] - a*d.padded[i] - b*d.things[i])
			sum += r
			weights[i] = 1 / max(r, quantumPrecision)
		}
		mean := sum / float64(n)
		if !(mean < t.misfit*(1-1e-3)) {
			break
		}
		t.factor, t.constant, t.misfit = a, b, mean
	}
	p := 2.0 // factor, noise
	if constant {
		p++
	}
	if q > 0 {
		p++
	}
	left := float64(n) - p - 1
	if left <= 0 {
		t.criterion = math.Inf(1)
		return t
	}
	// −2·log likelihood of Laplace's distribution, up to a constant.
	t.criterion = 2*float64(n)*math.Log(max(t.misfit, quantumPrecision)) + 2*p + 2*p*(p+1)/left
	return t
}

// twoColumns are the weighted least squares of takes = a·padded + b·things with
// b ≥ 0, or b = 0.
func (d quantumData) twoColumns(weights []float64, constant bool) (a, b float64) {
	var xx, xk, kk, xy, ky float64
	for i, w := range weights {
		x, k, y := d.padded[i], d.things[i], d.takes[i]
		xx += w * x * x
		xk += w * x * k
		kk += w * k * k
		xy += w * x * y
		ky += w * k * y
	}
	if det := xx*kk - xk*xk; constant && det > 1e-12*xx*kk {
		a, b = (xy*kk-ky*xk)/det, (ky*xx-xy*xk)/det
		if b >= 0 {
			return a, b
		}
	}
	return xy / xx, 0
}

// searchQuantum tries units over the sizes: round ones, a logarithmic grid, and
// more about the best.
func searchQuantum(lots []Lot, z sizing, series bool, least, most float64) []quantumTry {
	least = max(least, most*1e-7, 8)
	var all []quantumTry
	try := func(q float64) {
		if q >= least && q <= most*1.5 {
			all = append(all, fitQuantum(lots, z, q, series))
		}
	}
	for _, q := range roundQuanta(least, most*1.5) {
		try(q)
	}
	for q := least; q <= most*1.5; q *= quantumStep {
		try(q)
	}
	if len(all) == 0 {
		return []quantumTry{fitQuantum(lots, z, most, series)}
	}
	best := bestOf(all)
	for k := -30; k <= 30; k++ {
		try(best.q * (1 + 0.001*float64(k)))
	}
	return all
}

// roundQuanta are sizes that people choose, the roundest first.
func roundQuanta(least, most float64) []float64 {
	var all []float64
	add := func(of, base float64) {
		for q := of; q <= most; q *= base {
			if q >= least {
				all = append(all, q)
			}
		}
	}
	add(1, 2)
	add(1, 10)
	for _, m := range []float64{5, 3, 7, 9, 11, 13, 15} {
		add(m, 2)
	}
	add(5, 10)
	add(2, 10)
	return all
}

// roundest is the best power of two that is not excluded and near the best, or the
// roundest quantum that is hardly worse than the best; of those that are as round, the
// best.
func roundest(all []quantumTry, best quantumTry) quantumTry {
	round := func(t quantumTry) int {
		switch {
		case t.q == math.Exp2(math.Round(math.Log2(t.q))):
			return 0
		case t.q == math.Pow(10, math.Round(math.Log10(t.q))):
			return 1
		case t.q == math.Trunc(t.q) && math.Mod(t.q, 1<<10) == 0 && t.q/math.Exp2(math.Floor(math.Log2(t.q))-3) == math.Trunc(t.q/math.Exp2(math.Floor(math.Log2(t.q))-3)):
			return 2 // at most four binary digits
		}
		return 3
	}
	chosen, how := best, round(best)
	for _, t := range all {
		k, near := round(t), max(t.q, best.q) < roundReach*min(t.q, best.q)
		if t.criterion > best.criterion+hardly && (k > 0 || !near || t.criterion > best.criterion+leastGain) {
			continue
		}
		if k < how || k == how && t.criterion < chosen.criterion {
			chosen, how = t, k
		}
	}
	return chosen
}
