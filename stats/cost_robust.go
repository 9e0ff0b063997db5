package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// costForm specifies which parameters a model has besides A, in the order R, B.
type costForm struct{ hasR, hasB bool }

// factors returns the factor of each parameter in a time.
func (f costForm) factors(rtt, size float64) []float64 {
	all := append(make([]float64, 0, 3), 1)
	if f.hasR {
		all = append(all, rtt)
	}
	if f.hasB {
		all = append(all, size)
	}
	return all
}

func (f costForm) parameters() int { return len(f.factors(0, 0)) }

// columns returns the columns of the linear model of cell times, multiplied by a scale
// for each cell.
func (f costForm) columns(cells []costCell, scale []float64) [][]float64 {
	all := make([][]float64, f.parameters())
	for g, cell := range cells {
		for j, factor := range f.factors(cell.rtt, cell.size) {
			all[j] = append(all[j], factor*scale[g])
		}
	}
	return all
}

// time returns the model's time, which may be negative.
func (f costForm) time(beta []float64, rtt, size float64) float64 {
	return floats.Dot(beta, f.factors(rtt, size))
}

// costFit is a fitted form.
type costFit struct {
	form  costForm
	noise costNoise
	cells []costCell
	beta  []float64
	// Of each cell: residual in standard errors of the cell's location, and
	// the columns of the linearised design in the same unit.
	residual []float64
	columns  [][]float64
	sigma    float64 // the residuals' robust spread, in those units; at least 1 if trials were repeated
}

var errCollinear = errors.New("cost: the parameters are not identifiable: sizes and round trips change together; " +
	"measure each size at two round trips or more")

// fitForm minimises a robust function of the residuals on the scale of the
// noise by iteratively reweighted Gauss–Newton steps: Huber's function first,
// then Tukey's with the resulting spread (MM-estimation: Yohai 1987;
// Maronna, Martin, Yohai and Salibián-Barrera, Robust Statistics, 2nd ed.,
// 2019, §5.5).
func fitForm(form costForm, noise costNoise, cells []costCell) (*costFit, error) {
	p := form.parameters()
	f := &costFit{form: form, noise: noise, cells: cells, residual: make([]float64, len(cells)), sigma: 1}
	if len(cells) < p {
		return nil, fmt.Errorf("cost: %d cells for %d parameters; measure more sizes or round trips", len(cells), p)
	}
	// Start with relative least squares, which is linear in the parameters.
	target, scale, weights := make([]float64, len(cells)), make([]float64, len(cells)), make([]float64, len(cells))
	for g, cell := range cells {
		t := noise.time(cell.at)
		scale[g], weights[g] = noise.slope(t)*f.precision(g), 1
		target[g] = t * scale[g]
	}
	var ok bool
	if f.beta, ok = leastSquares(form.columns(cells, scale), target, weights); !ok {
		return nil, errCollinear
	}
	f.linearise()
	for range 5 {
		before := f.sigma
		f.sigma = f.spread()
		if !f.improve(huberWeight, huberLoss) {
			return nil, errCollinear
		}
		if math.Abs(f.sigma-before) < 0.01*before {
			break
		}
	}
	f.sigma = f.spread()
	if !f.improve(tukeyWeight, tukeyLoss) {
		return nil, errCollinear
	}
	return f, nil
}

// expectation returns the model's time for a cell.
func (f *costFit) expectation(g int, beta []float64) float64 {
	return f.form.time(beta, f.cells[g].rtt, f.cells[g].size)
}

// precision returns one over the standard error of a cell's location.
func (f *costFit) precision(g int) float64 {
	return 1 / math.Sqrt(f.cells[g].variance)
}

func (f *costFit) residualAt(g int, beta []float64) float64 {
	return (f.cells[g].at - f.noise.scale(f.expectation(g, beta))) * f.precision(g)
}

func (f *costFit) linearise() {
	scale := make([]float64, len(f.cells))
	for g := range f.cells {
		f.residual[g] = f.residualAt(g, f.beta)
		scale[g] = f.noise.slope(f.expectation(g, f.beta)) * f.precision(g)
	}
	f.columns = f.form.columns(f.cells, scale)
}

func (f *costFit) loss(beta []float64, loss func(float64) float64) float64 {
	sum := 0.0
	for g := range f.cells {
		sum += loss(f.residualAt(g, beta) / f.sigma)
	}
	return sum
}

// improve iterates to the minimum for this sigma; false if the design is singular.
func (f *costFit) improve(weight, loss func(float64) float64) bool {
	weights, trial := make([]float64, len(f.cells)), make([]float64, len(f.beta))
	at := f.loss(f.beta, loss)
	for range 50 {
		for g, r := range f.residual {
			weights[g] = weight(r / f.sigma)
		}
		step, ok := leastSquares(f.columns, f.residual, weights)
		if !ok {
			return false
		}
		next, share := math.Inf(1), 1.0
		for range 12 { // halve steps that overshoot
			for j := range trial {
				trial[j] = f.beta[j] + share*step[j]
			}
			if next = f.loss(trial, loss); next <= at {
				break
			}
			share /= 2
		}
		if !(next <= at) {
			return true
		}
		copy(f.beta, trial)
		f.linearise()
		done := at-next < 1e-9*(1+at)
		at = next
		if done {
			return true
		}
	}
	return true
}

// spread returns the robust spread of the residuals in standard errors of the cells'
// locations, but at least what replicates show.
func (f *costFit) spread() float64 {
	left := len(f.cells) - len(f.beta)
	if left == 0 {
		return 1
	}
	s := robustSpread(f.residual) * math.Sqrt(float64(len(f.cells))/float64(left))
	if f.noise.freedom == 0 {
		return max(s, 1e-9)
	}
	if f.noise.unsure > 0 { // a cell whose own variance was estimated too small is not an outlier
		s *= 1.5
	}
	return max(s, 1)
}

// leastSquares solves a weighted linear problem; false if it is singular.
func leastSquares(columns [][]float64, target, weights []float64) ([]float64, bool) {
	scaled := make([][]float64, len(columns)+1)
	for j, column := range append(slices.Clone(columns), target) {
		for i, v := range column {
			scaled[j] = append(scaled[j], v*math.Sqrt(weights[i]))
		}
	}
	s := fitLinear(scaled[:len(columns)], scaled[len(columns)])
	if !s.determined() {
		return nil, false
	}
	beta := make([]float64, len(columns))
	for j := range beta {
		beta[j] = floats.Dot(s.parameter(j), s.y)
	}
	return beta, true
}

// huberCut makes Huber's estimate 95 % as precise as the mean for normal errors.
const huberCut = 1.345

func huberWeight(u float64) float64 {
	if a := math.Abs(u); a > huberCut {
		return huberCut / a
	}
	return 1
}

func huberLoss(u float64) float64 {
	if a := math.Abs(u); a > huberCut {
		return huberCut * (a - huberCut/2)
	}
	return u * u / 2
}

func tukeyLoss(u float64) float64 {
	if math.Abs(u) >= tukeyCut {
		return tukeyCut * tukeyCut / 6
	}
	v := 1 - u*u/(tukeyCut*tukeyCut)
	return tukeyCut * tukeyCut / 6 * (1 - v*v*v)
}

// ownShare is the share of each cell's variance that is taken from its own residual;
// the rest is the mean of all cells (weighted as for the parameter). With own
// residuals only, a parameter that depends on few cells has hardly a degree of
// freedom, and an interval twice as wide as necessary; with the mean only, cells that
// scatter more than others are missed. In simulations, half of each has the right
// coverage in both cases. If replicates show that the cells' spreads differ, only own
// residuals are used.
const ownShare = 0.5

// blockSpread returns the standard error of the mean over blocks of the logarithm of the
// factor by which a block's trials take longer than the fit: the median of its trials,
// minus the noise of that median. freedom is 0 for a single block.
func (f *costFit) blockSpread(points []CostPoint) (standardError, freedom float64) {
	blocks := map[int][]float64{}
	for _, p := range points {
		if want := f.form.time(f.beta, p.RTT, p.Size); want > 0 {
			blocks[p.Block] = append(blocks[p.Block], math.Log(p.Time/want))
		}
	}
	var each []float64
	n, noise := float64(len(blocks)), 0.0
	for _, of := range blocks {
		mid := Median(of)
		each = append(each, mid)
		for i := range of {
			of[i] -= mid
		}
		noise += math.Pi / 2 * sq(robustSpread(of)) / float64(len(of)) / n
	}
	if n < 2 {
		return 0, 0
	}
	return math.Sqrt(max(0, stat.Variance(each, nil)-noise) / n), n - 1
}

// intervals returns the interval of each parameter at conf, from the deviations of
// cells (standardError) and from what affects all cells of a block (blockSpread).
func (f *costFit) intervals(conf float64, points []CostPoint) []Interval {
	spread, blocks := f.blockSpread(points)
	result := make([]Interval, len(f.beta))
	s := fitLinear(f.columns, f.residual)
	for j := range result {
		if !s.determined() {
			result[j] = unbounded(math.NaN(), len(points)) // not identifiable from these cells
			continue
		}
		standardError, freedom := f.standardError(s, j)
		if blocks > 0 { // Satterthwaite 1946
			own, more := standardError*standardError, sq(f.beta[j]*spread)
			standardError, freedom = math.Sqrt(own+more), sq(own+more)/(own*own/freedom+more*more/blocks)
		}
		result[j] = studentInterval(f.beta[j], standardError, freedom, conf, len(points))
	}
	return result
}

// standardError returns the standard error of a parameter and its degrees of freedom, or
// 0 of them if it is unknown. It is the sandwich estimate with each cell's own squared
// residual, corrected for leverage (HC2: MacKinnon and White 1985) and shrunk towards
// the mean of all cells (see ownShare); intervals use Student's t with the degrees of
// freedom of this quadratic form (Bell and McCaffrey 2002; Imbens and Kolesár 2016). It
// assumes only that cells are independent: a misfit common to the replicates of a cell
// widens it. With as many cells as parameters there are no residuals, and the
// differences between replicates are used.
func (f *costFit) standardError(s *linearFit, parameter int) (standardError, freedom float64) {
	w := s.parameter(parameter)
	if s.freedom == 0 {
		return math.Sqrt(floats.Dot(w, w)), float64(f.noise.freedom)
	}
	share, mean, pseudo := ownShare, floats.Dot(w, w)/float64(s.freedom), f.pseudoResiduals()
	if f.noise.unsure > 0 {
		share = 1
	}
	c := make([]float64, len(w)) // of the variance's quadratic form
	variance, trace, squares := 0.0, 0.0, 0.0
	for i, v := range w {
		c[i] = share*v*v/max(1-s.leverage[i], 1e-6) + (1-share)*mean
		variance += c[i] * sq(pseudo[i])
		trace += c[i] * (1 - s.leverage[i])
		for k := range i {
			squares += 2 * c[i] * c[k] * sq(s.hat(i, k))
		}
		squares += sq(c[i] * (1 - s.leverage[i]))
	}
	return math.Sqrt(variance), trace * trace / squares
}

// pseudoResiduals returns the residuals of a least-squares fit with the same estimate
// and precision as the robust one: σ·ψ(r/σ) divided by the mean of ψ' (Huber 1981,
// §7.10).
func (f *costFit) pseudoResiduals() []float64 {
	slopes := 0.0
	for _, r := range f.residual {
		slopes += tukeySlope(r / f.sigma)
	}
	slopes = max(slopes/float64(len(f.residual)), 0.1)
	pseudo := make([]float64, len(f.residual))
	for g, r := range f.residual {
		pseudo[g] = r * tukeyWeight(r/f.sigma) / slopes
	}
	return pseudo
}

func studentInterval(mid, standardError, freedom, conf float64, n int) Interval {
	if !(freedom > 0) {
		return unbounded(mid, n)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: max(freedom, 1)}.Quantile((1 + conf) / 2)
	return Interval{Mid: mid, Lo: mid - t*standardError, Hi: mid + t*standardError, Conf: conf, N: n}
}
