package stats

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// seriesFit is a curve through a series that is linear in beta: y = X·beta.
type seriesFit struct {
	rows     *mat.Dense
	beta     []float64
	fitted   []float64 // y, not its logarithm
	residual []float64 // on the scale of the noise
	loss     float64   // Σ Huber's function of residual/scale
}

// robustFit minimises Huber's function of the residuals on the scale of the
// noise, in units of scale, by reweighted Gauss–Newton steps. On the
// logarithmic scale the curve has to be above 0 at every point. False: the
// columns cannot be told apart, or no such curve was found.
func (s *series) robustFit(rows *mat.Dense, scale float64) (*seriesFit, bool) {
	m, p := rows.Dims()
	f := &seriesFit{rows: rows, fitted: make([]float64, m), residual: make([]float64, m)}
	weights := make([]float64, m)
	for i, y := range s.y {
		weights[i] = 1
		if s.log {
			weights[i] = 1 / (y * y)
		}
	}
	beta, ok := leastSquares(rows, s.y, weights)
	if !ok {
		return nil, false
	}
	if !f.evaluate(s, beta, scale) {
		// A constant is above 0; it lies in the span of the columns or near it.
		ones, mid := make([]float64, m), Median(s.y)
		for i := range ones {
			weights[i], ones[i] = 1, mid
		}
		if beta, ok = leastSquares(rows, ones, weights); !ok || !f.evaluate(s, beta, scale) {
			return nil, false
		}
	}
	jacobian := rows
	if s.log {
		jacobian = mat.NewDense(m, p, nil)
	}
	next := &seriesFit{rows: rows, fitted: make([]float64, m), residual: make([]float64, m)}
	trial := make([]float64, p)
	for range 50 {
		for i, r := range f.residual {
			weights[i] = huberWeight(r / scale)
			if s.log {
				row, of := jacobian.RawRowView(i), rows.RawRowView(i)
				for j := range row {
					row[j] = of[j] / f.fitted[i]
				}
			}
		}
		step, ok := leastSquares(jacobian, f.residual, weights)
		if !ok {
			return nil, false
		}
		better := false
		for length := 1.0; length > 1e-4; length /= 2 {
			for j := range trial {
				trial[j] = f.beta[j] + length*step[j]
			}
			if next.evaluate(s, trial, scale) && next.loss <= f.loss {
				better = true
				break
			}
		}
		if !better {
			break
		}
		gain := f.loss - next.loss
		f, next = next, f
		if gain <= 1e-7*(1+f.loss) {
			break
		}
	}
	return f, true
}

func (f *seriesFit) evaluate(s *series, beta []float64, scale float64) bool {
	f.beta = append(f.beta[:0], beta...)
	f.loss = 0
	for i, y := range s.y {
		v := 0.0
		for j, x := range f.rows.RawRowView(i) {
			v += x * beta[j]
		}
		if s.log && !(v > 0) {
			return false
		}
		f.fitted[i] = v
		if s.log {
			f.residual[i] = math.Log(y / v)
		} else {
			f.residual[i] = y - v
		}
		f.loss += huberLoss(f.residual[i] / scale)
	}
	return !math.IsNaN(f.loss)
}

// noise is what all curves through a series are judged by.
type noise struct {
	scale float64 // robust standard deviation of the residuals
	// Huber's psi of the residuals, in units of scale: its mean square per
	// degree of freedom over its mean slope, and over the slope's square.
	ratio, variance float64
	phi             float64 // correlation of neighbours
	effective       float64 // independent points
}

// fitPilot fits a curve that follows whatever is there, and takes the noise
// from its residuals: no class of growth that does not fit can then pass its
// misfit off as noise, or as correlation.
func (s *series) fitPilot(rows *mat.Dense) (*seriesFit, noise, bool) {
	m, p := rows.Dims()
	scale := s.leastScale()
	var f *seriesFit
	for range 6 {
		start := scale
		if f == nil {
			start = math.Inf(1) // least squares
		}
		var ok bool
		if f, ok = s.robustFit(rows, start); !ok {
			return nil, noise{}, false
		}
		before := scale
		scale = max(robustSpread(f.residual)*math.Sqrt(float64(m)/float64(m-p)), s.leastScale())
		if math.Abs(scale-before) < 0.01*before {
			break
		}
	}
	f, ok := s.robustFit(rows, scale)
	if !ok {
		return nil, noise{}, false
	}
	return f, s.noiseOf(f, p, scale), true
}

// precision, relative, beyond which no noise is looked for.
const precision = 1e-5

// leastScale is the precision that numbers have: a curve may be exact.
func (s *series) leastScale() float64 {
	most := 0.0
	for _, y := range s.y {
		most = max(most, math.Abs(y))
	}
	if s.log || most == 0 {
		return precision
	}
	return precision * most
}

func (s *series) noiseOf(f *seriesFit, p int, scale float64) noise {
	m := len(s.y)
	psi := make([]float64, m)
	squares, slope := 0.0, 0.0
	for i, r := range f.residual {
		u := r / scale
		psi[i] = u * huberWeight(u)
		squares += psi[i] * psi[i]
		if math.Abs(u) <= huberCut {
			slope++
		}
	}
	squares /= float64(m - p)
	slope = max(slope/float64(m), 0.1)
	v := noise{scale: scale, ratio: squares / slope, variance: squares / (slope * slope)}
	if scale <= s.leastScale() && squares < 1 { // exact
		v.ratio, v.variance, v.effective = 1, 1, float64(m)
		return v
	}
	// One standard error more than was found: noise that is taken for growth
	// misleads, a class that is not told does not.
	v.phi = correlation(psi, orthonormal(f.rows))
	return v.wary(m)
}

// wary is a noise with a correlation one standard error larger.
func (v noise) wary(m int) noise {
	v.phi = wary(v.phi, m, 1)
	v.effective = float64(m) * (1 - v.phi) / (1 + v.phi)
	return v
}

func wary(phi float64, m int, errors float64) float64 {
	return min(maxPhi, phi+errors*math.Sqrt((1-phi*phi)/float64(m)))
}

// deviance is −2·log likelihood of a fit up to a constant, for as many
// independent points as there are: Huber's function takes the place of the
// square (Ronchetti 1985), scaled so that a needless parameter lowers it by a
// χ² of one degree of freedom.
func (v noise) deviance(f *seriesFit) float64 {
	return 2 * f.loss / v.ratio * v.effective / float64(len(f.residual))
}

// aicc is Akaike's criterion with the correction for few points (Hurvich and
// Tsai 1989; Burnham and Anderson 2002, §2.4), with k parameters of the curve.
func (v noise) aicc(f *seriesFit, k int) float64 {
	p := float64(k + 1) // and the noise's variance
	left := v.effective - p - 1
	if left <= 0 {
		return math.Inf(1)
	}
	return v.deviance(f) + 2*p + 2*p*(p+1)/left
}

// covariance is that of the parameters of a curve with this Jacobian (of the
// curve on the scale of the noise): (JᵀJ)⁻¹ JᵀΩJ (JᵀJ)⁻¹ where Ω is that of an
// autoregression of first order.
func (v noise) covariance(jacobian *mat.Dense) (*mat.Dense, bool) {
	m, p := jacobian.Dims()
	ones := make([]float64, m)
	for i := range ones {
		ones[i] = 1
	}
	chol, norms, ok := factorise(jacobian, ones)
	if !ok {
		return nil, false
	}
	var inner, half, cov mat.Dense
	inner.Mul(jacobian.T(), decay(jacobian, v.phi))
	inverse := mat.NewSymDense(p, nil)
	if chol.InverseTo(inverse) != nil {
		return nil, false
	}
	for j := range p {
		for k := range j + 1 {
			inverse.SetSym(j, k, inverse.At(j, k)/norms[j]/norms[k])
		}
	}
	half.Mul(inverse, &inner)
	cov.Mul(&half, inverse)
	cov.Scale(v.scale*v.scale*v.variance, &cov)
	return &cov, true
}

// decay is ΩX, Ω_ij = phi^|i−j|.
func decay(x *mat.Dense, phi float64) *mat.Dense {
	m, p := x.Dims()
	out := mat.NewDense(m, p, nil)
	before, after := make([]float64, p), make([]float64, p)
	for i := range m {
		row, back := x.RawRowView(i), x.RawRowView(m-1-i)
		for j := range p {
			before[j] = phi*before[j] + row[j]
			out.Set(i, j, out.At(i, j)+before[j])
			out.Set(m-1-i, j, out.At(m-1-i, j)+after[j])
			after[j] = phi * (after[j] + back[j])
		}
	}
	return out
}

// orthonormal is a basis of what the columns span.
func orthonormal(rows *mat.Dense) *mat.Dense {
	m, p := rows.Dims()
	var qr mat.QR
	qr.Factorize(rows)
	var q mat.Dense
	qr.QTo(&q)
	return mat.DenseCopyOf(q.Slice(0, m, 0, p))
}

// maxPhi bounds the correlation that is believed: beyond it a series of some
// hundred points says nothing about a trend anyway.
const maxPhi = 0.97

// correlation is the first-order autocorrelation of noise of which residuals
// from a fit with this basis are left: the larger of what neighbours say and of
// what all points up to a twentieth of the series apart say, since a slow
// drift under fast noise hardly shows between neighbours.
func correlation(residual []float64, basis *mat.Dense) float64 {
	near := correlationWithin(residual, basis, 1)
	if far := len(residual) / 20; far > 1 {
		return max(near, correlationWithin(residual, basis, far))
	}
	return near
}

// correlationWithin tells it from the products over up to so many steps. A fit
// takes some of the correlation with it, the more the more it bends; so that
// phi is taken with which the residuals would have, in expectation, the
// products that they have. Negative ones are taken for 0.
func correlationWithin(residual []float64, basis *mat.Dense, steps int) float64 {
	m := len(residual)
	product, square := 0.0, 0.0
	for i, r := range residual {
		square += r * r
		for step := 1; step <= min(steps, i); step++ {
			product += r * residual[i-step]
		}
	}
	if !(square > 0) {
		return 0
	}
	seen := product / square
	shifted := shift(basis, steps)
	var inner mat.Dense // QᵀLQ
	inner.Mul(basis.T(), shifted)
	expected := func(phi float64) float64 {
		spread := decay(basis, phi)
		var c mat.Dense // QᵀΩQ
		c.Mul(basis.T(), spread)
		_, p := basis.Dims()
		squares := float64(m) - mat.Trace(&c)
		// tr(L(I−QQᵀ)Ω(I−QQᵀ))
		cross, power := 0.0, 1.0
		for step := 1; step <= steps; step++ {
			power *= phi
			cross += float64(m-step) * power
		}
		for j := range p {
			for i := range m {
				cross -= 2 * shifted.At(i, j) * spread.At(i, j)
			}
			for k := range p {
				cross += inner.At(j, k) * c.At(k, j)
			}
		}
		return cross / squares
	}
	lo, hi := 0.0, maxPhi
	if seen <= expected(lo) {
		return lo
	}
	if seen >= expected(hi) {
		return hi
	}
	for range 20 {
		mid := (lo + hi) / 2
		if expected(mid) < seen {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// shift is LX where L takes the means of both neighbours at each distance up
// to so many steps, together.
func shift(x *mat.Dense, steps int) *mat.Dense {
	m, p := x.Dims()
	out := mat.NewDense(m, p, nil)
	for i := range m {
		row := out.RawRowView(i)
		for step := 1; step <= steps; step++ {
			for j := range p {
				if i >= step {
					row[j] += x.At(i-step, j) / 2
				}
				if i+step < m {
					row[j] += x.At(i+step, j) / 2
				}
			}
		}
	}
	return out
}
