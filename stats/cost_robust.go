package stats

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// costForm is a model: which parameters it has beside A, in this order: R, B.
type costForm struct{ hasR, hasB bool }

func (f costForm) parameters() int {
	p := 1
	if f.hasR {
		p++
	}
	if f.hasB {
		p++
	}
	return p
}

func (f costForm) row(cell costCell, x []float64) {
	x[0] = 1
	if f.hasR {
		x[1] = cell.rtt
	}
	if f.hasB {
		x[len(x)-1] = cell.size
	}
}

// costFit is a fitted form.
type costFit struct {
	form  costForm
	noise costNoise
	cells []costCell
	beta  []float64
	// Of each cell: residual in standard errors of the cell's location, and
	// the row of the linearised design in the same unit.
	residual []float64
	rows     *mat.Dense
	sigma    float64 // the residuals' robust spread, in those units; at least 1 when trials were repeated
}

var errCollinear = errors.New("cost: the parameters are not identifiable: sizes and round trips change together; " +
	"measure each size at two round trips or more")

// fitForm minimises a robust function of the residuals on the scale of the
// noise by iteratively reweighted Gauss–Newton steps: Huber's function first,
// then Tukey's with the spread that this has found (MM-estimation: Yohai 1987;
// Maronna, Martin, Yohai and Salibián-Barrera, Robust Statistics, 2nd ed.,
// 2019, §5.5).
func fitForm(form costForm, noise costNoise, cells []costCell) (*costFit, error) {
	p := form.parameters()
	f := &costFit{form: form, noise: noise, cells: cells, beta: make([]float64, p),
		residual: make([]float64, len(cells)), rows: mat.NewDense(len(cells), p, nil), sigma: 1}
	if len(cells) < p {
		return nil, fmt.Errorf("cost: %d cells for %d parameters; measure more sizes or round trips", len(cells), p)
	}
	// Relative least squares, linear in the parameters, is where to begin.
	x, target, weights := mat.NewDense(len(cells), p, nil), make([]float64, len(cells)), make([]float64, len(cells))
	for g, cell := range cells {
		form.row(cell, x.RawRowView(g))
		t := noise.time(cell.at)
		s := noise.slope(t) / math.Sqrt(cell.variance)
		for j := range p {
			x.RawRowView(g)[j] *= s
		}
		target[g], weights[g] = t*s, 1
	}
	beta, ok := leastSquares(x, target, weights)
	if !ok {
		return nil, errCollinear
	}
	copy(f.beta, beta)
	f.linearise()
	huber := func(u float64) float64 { return huberWeight(u) }
	for range 5 {
		before := f.sigma
		f.sigma = f.spread()
		if !f.improve(huber, huberLoss) {
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

// expectation is the model's time for a cell, which a step may take below 0.
func (f *costFit) expectation(g int, beta []float64) float64 {
	t := beta[0]
	if f.form.hasR {
		t += beta[1] * f.cells[g].rtt
	}
	if f.form.hasB {
		t += beta[len(beta)-1] * f.cells[g].size
	}
	return t
}

// precision is one over the standard error of a cell's location.
func (f *costFit) precision(g int) float64 {
	return 1 / math.Sqrt(f.cells[g].variance)
}

func (f *costFit) residualAt(g int, beta []float64) float64 {
	return (f.cells[g].at - f.noise.scale(f.expectation(g, beta))) * f.precision(g)
}

func (f *costFit) linearise() {
	for g := range f.cells {
		f.residual[g] = f.residualAt(g, f.beta)
		s := f.noise.slope(f.expectation(g, f.beta)) * f.precision(g)
		row := f.rows.RawRowView(g)
		f.form.row(f.cells[g], row)
		for j := range row {
			row[j] *= s
		}
	}
}

func (f *costFit) loss(beta []float64, loss func(float64) float64) float64 {
	sum := 0.0
	for g := range f.cells {
		sum += loss(f.residualAt(g, beta) / f.sigma)
	}
	return sum
}

// improve iterates to the minimum for this sigma; false when the design is
// singular.
func (f *costFit) improve(weight, loss func(float64) float64) bool {
	weights, trial := make([]float64, len(f.cells)), make([]float64, len(f.beta))
	at := f.loss(f.beta, loss)
	for range 50 {
		for g, r := range f.residual {
			weights[g] = weight(r / f.sigma)
		}
		step, ok := leastSquares(f.rows, f.residual, weights)
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

// spread is the robust spread of the residuals in standard errors of the
// cells' locations. What replicates show is its least value.
func (f *costFit) spread() float64 {
	left := len(f.cells) - len(f.beta)
	if left == 0 {
		return 1
	}
	absolute := make([]float64, len(f.residual))
	for g, r := range f.residual {
		absolute[g] = math.Abs(r)
	}
	s := Median(absolute) / normalQuartile * math.Sqrt(float64(len(f.cells))/float64(left))
	if f.noise.freedom == 0 {
		return max(s, 1e-9)
	}
	if f.noise.unsure > 0 { // a cell's own variance may be taken too small: that makes no outlier of it
		s *= 1.5
	}
	return max(s, 1)
}

// leastSquares solves a weighted linear problem; false when it is singular.
func leastSquares(x *mat.Dense, target, weights []float64) ([]float64, bool) {
	chol, norms, ok := factorise(x, weights)
	if !ok {
		return nil, false
	}
	n, p := x.Dims()
	right := mat.NewVecDense(p, nil)
	for i := range n {
		row := x.RawRowView(i)
		for j, v := range row {
			right.SetVec(j, right.AtVec(j)+weights[i]*target[i]*v/norms[j])
		}
	}
	var solution mat.VecDense
	if chol.SolveVecTo(&solution, right) != nil {
		return nil, false
	}
	beta := make([]float64, p)
	for j := range beta {
		beta[j] = solution.AtVec(j) / norms[j]
	}
	return beta, true
}

// factorise gives the Cholesky factors of XᵀWX with its columns scaled to
// norm 1: sizes are about 10^7 and round trips about 10^-2.
func factorise(x *mat.Dense, weights []float64) (*mat.Cholesky, []float64, bool) {
	n, p := x.Dims()
	sums := make([]float64, p*p)
	for i := range n {
		row := x.RawRowView(i)
		for j := range row {
			for k := range j + 1 {
				sums[j*p+k] += weights[i] * row[j] * row[k]
			}
		}
	}
	norms := make([]float64, p)
	for j := range norms {
		norms[j] = math.Sqrt(sums[j*p+j])
		if !(norms[j] > 0) || math.IsInf(norms[j], 0) {
			return nil, nil, false
		}
	}
	gram := mat.NewSymDense(p, nil)
	for j := range p {
		for k := range j + 1 {
			gram.SetSym(j, k, sums[j*p+k]/norms[j]/norms[k])
		}
	}
	chol := new(mat.Cholesky)
	if !chol.Factorize(gram) || chol.Cond() > 1e11 {
		return nil, nil, false
	}
	return chol, norms, true
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

// ownShare is how much of each cell's variance is taken from that cell's own
// residual, the rest being the mean of all cells (with the weights that the
// parameter gives them): with own residuals only, a parameter that few cells
// decide has hardly a degree of freedom, and an interval twice as wide as it
// need be; with the mean only, cells that scatter more than others are not
// seen. Half each covers in simulations of both, unless the cells' spreads
// differ so much that replicates show it: then it is all own.
const ownShare = 0.5

// blockSpread is the standard error of the mean of blocks: of the logarithm of a factor by
// which a block's trials all take longer than the fit: their median, whose own noise is
// taken off. freedom is 0 for a single block.
func (f *costFit) blockSpread(points []CostPoint) (standardError, freedom float64) {
	blocks := map[int][]float64{}
	for _, p := range points {
		want := f.beta[0]
		if f.form.hasR {
			want += f.beta[1] * p.RTT
		}
		if f.form.hasB {
			want += f.beta[len(f.beta)-1] * p.Size
		}
		if want > 0 {
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

// intervals gives each parameter its interval at conf: what cells are off by (costSandwich),
// and what disturbs all cells of a block alike (blockSpread).
func (f *costFit) intervals(conf float64, points []CostPoint) []Interval {
	spread, blocks := f.blockSpread(points)
	result := make([]Interval, len(f.beta))
	s, ok := f.sandwich()
	x := make([]float64, len(f.beta))
	for j := range result {
		if !ok {
			result[j] = unknown(len(points), "not identifiable from these cells")
			continue
		}
		clear(x)
		x[j] = 1
		standardError, freedom := s.of(x)
		if blocks > 0 { // Satterthwaite 1946
			own, more := standardError*standardError, sq(f.beta[j]*spread)
			standardError, freedom = math.Sqrt(own+more), sq(own+more)/(own*own/freedom+more*more/blocks)
		}
		result[j] = studentInterval(f.beta[j], standardError, freedom, conf, len(points))
	}
	return result
}

// costSandwich is the covariance of the parameters: the sandwich estimate with
// each cell's own squared residual, corrected for leverage (HC2: MacKinnon and
// White 1985) and drawn towards the mean of all cells (see ownShare); intervals
// take Student's t with the degrees of freedom that this quadratic form has
// (Bell and McCaffrey 2002; Imbens and Kolesár 2016). It asks for independence
// of cells only: a misfit that the replicates of a cell share widens it. With
// as many cells as parameters no residual is left, and the differences between
// replicates must do.
type costSandwich struct {
	fit       *costFit
	projected [][]float64                // (XᵀX)⁻¹xᵢ of each cell
	leverage  []float64                  // of each cell
	pseudo    []float64                  // see pseudoResiduals
	inverse   func(j, k int) float64     // (XᵀX)⁻¹
	hat       func(cell, of int) float64 // X(XᵀX)⁻¹Xᵀ
	share     float64                    // of a cell's variance that is its own
}

// sandwich is false when the parameters are not identifiable.
func (f *costFit) sandwich() (*costSandwich, bool) {
	n, p := f.rows.Dims()
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	chol, norms, ok := factorise(f.rows, ones)
	if !ok {
		return nil, false
	}
	var inverse mat.SymDense
	if chol.InverseTo(&inverse) != nil {
		return nil, false
	}
	s := &costSandwich{fit: f, projected: make([][]float64, n), leverage: make([]float64, n),
		pseudo: f.pseudoResiduals(), share: ownShare}
	s.inverse = func(j, k int) float64 { return inverse.At(j, k) / norms[j] / norms[k] }
	if f.noise.unsure > 0 {
		s.share = 1
	}
	for i := range n {
		row := f.rows.RawRowView(i)
		s.projected[i] = make([]float64, p)
		for j := range p {
			for k := range p {
				s.projected[i][j] += s.inverse(j, k) * row[k]
			}
			s.leverage[i] += s.projected[i][j] * row[j]
		}
	}
	s.hat = func(i, j int) float64 {
		h := 0.0
		for k, v := range f.rows.RawRowView(j) {
			h += s.projected[i][k] * v
		}
		return h
	}
	return s, true
}

// of is the standard error of a linear combination of the parameters, with its
// degrees of freedom; 0 of them when it is unknown.
func (s *costSandwich) of(x []float64) (standardError, freedom float64) {
	n, p := s.fit.rows.Dims()
	variance := 0.0
	if n == p {
		for j := range p {
			for k := range p {
				variance += x[j] * s.inverse(j, k) * x[k]
			}
		}
		return math.Sqrt(variance), float64(s.fit.noise.freedom)
	}
	c := make([]float64, n) // of the variance's quadratic form
	mean := 0.0
	for i := range n {
		along := 0.0
		for j := range p {
			along += s.projected[i][j] * x[j]
		}
		mean += along * along / float64(n-p)
		c[i] = s.share * along * along / max(1-s.leverage[i], 1e-6)
	}
	trace, squares := 0.0, 0.0
	for i := range n {
		c[i] += (1 - s.share) * mean
		variance += c[i] * s.pseudo[i] * s.pseudo[i]
		trace += c[i] * (1 - s.leverage[i])
	}
	for i := range n {
		for k := range n {
			h := -s.hat(i, k)
			if i == k {
				h++
			}
			squares += c[i] * c[k] * h * h
		}
	}
	return math.Sqrt(variance), trace * trace / squares
}

// pseudoResiduals are the residuals of a least-squares fit that has the
// estimate and the precision of the robust one: σ·ψ(r/σ) over the mean of ψ'
// (Huber 1981, §7.10).
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
	i := Interval{Mid: mid, Lo: math.Inf(-1), Hi: math.Inf(1), Conf: conf, N: n}
	if !(freedom > 0) {
		i.Conf, i.Warn = 1, "no interval: as many cells as parameters, and no cell was repeated"
		return i
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: max(freedom, 1)}.Quantile((1 + conf) / 2)
	i.Lo, i.Hi = mid-t*standardError, mid+t*standardError
	return i
}
