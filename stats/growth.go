package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Growth classes: how y goes with x, counted from the least x (X0).
type GrowthClass string

const (
	Constant    GrowthClass = "constant"    // y = a
	Linear      GrowthClass = "linear"      // y = a + b·x
	Exponential GrowthClass = "exponential" // y = a·exp(b·x), b > 0
	Saturating  GrowthClass = "saturating"  // y = c − (c−a)·exp(−x/τ): towards a limit, from below or above, 63 % of the way or more
	Unclear     GrowthClass = "unclear"     // the data do not tell the best two apart, or none fits
)

// GrowthFit is the class of growth that the data support.
type GrowthFit struct {
	Class    GrowthClass             `json:"class"`
	Best     GrowthClass             `json:"best"`   // the class of Params and At, also when Class is unclear
	Second   GrowthClass             `json:"second"` // next best
	N        int                     `json:"n"`
	NEff     float64                 `json:"n_eff"`   // independent points that the residuals' autocorrelation leaves
	Weights  map[GrowthClass]float64 `json:"weights"` // Akaike weights of the classes, sum 1
	X0       float64                 `json:"x0"`      // the least x: where a is y
	Params   []GrowthParam           `json:"params"`  // of Best
	PerX     Interval                `json:"per_x"`   // relative change of y over the range of x: (y(end) − y(begin)) / y(begin)
	Residual float64                 `json:"residual"`
	Relative bool                    `json:"relative"` // Residual is a share of y, not in y's unit
	Fits     bool                    `json:"fits"`     // Best describes y as well as a free curve does
	Why      string                  `json:"why"`      // one sentence
}

// GrowthParam is one parameter of a class: "a", "b", "c", "tau".
type GrowthParam struct {
	Name     string   `json:"name"`
	Value    float64  `json:"value"`
	Interval Interval `json:"interval"` // 95 %
}

// At is the fitted y at x, NaN when nothing was fitted.
func (f GrowthFit) At(x float64) float64 {
	p := func(i int) float64 { return f.Params[i].Value }
	x -= f.X0
	switch {
	case len(f.Params) == 0:
		return math.NaN()
	case f.Best == Linear:
		return p(0) + p(1)*x
	case f.Best == Exponential:
		return p(0) * math.Exp(p(1)*x)
	case f.Best == Saturating:
		return p(1) - (p(1)-p(0))*math.Exp(-x/p(2))
	}
	return p(0)
}

const (
	growthConf = 0.95
	// minGrowthN is the number of points below which no class is told.
	minGrowthN = 10
	// minEffective is the same for what the points are worth.
	minEffective = 6
	// clearly is how many times as likely the class must be as the next best:
	// were one of the two true, the other would be called in less than one of
	// so many series.
	clearly = 20
	// SmallGrowth is the relative change over the range of x that has to be
	// excluded before y is called constant.
	SmallGrowth = 0.1
	// growthMisfit is how much smaller the criterion of a free curve must be before
	// no class is said to fit.
	growthMisfit = 10
)

// Growth chooses the class of growth of y with x. Points are in the order of
// time, since it is neighbours in time that depend on each other.
//
// Up to 200 medians of consecutive blocks are fitted robustly, in y's unit or
// relative to y, whichever the noise goes with; the classes are compared by
// AICc with as many points as the autocorrelation of the residuals leaves
// independent. A class is named when it is 20 times as likely as the next;
// "constant" when no growth is shown and PerX excludes more than
// [SmallGrowth]; otherwise the class is unclear, and Why says what is left.
// With an unclear class PerX holds for every class that is not excluded.
//
// It is an error when there is nothing to fit: lengths that differ, a value
// that is not finite, a single x.
func Growth(x, y []float64) (GrowthFit, error) {
	s, err := reduce(y, x)
	if err != nil {
		return GrowthFit{}, fmt.Errorf("growth: %w", err)
	}
	f := GrowthFit{Class: Unclear, N: len(y), PerX: unknown(len(y), "")}
	if len(s.y) < minGrowthN {
		f.Why = fmt.Sprintf("%d points: at least %d are needed to tell a class of growth", len(y), minGrowthN)
		f.PerX.Warn = f.Why
		return f, nil
	}
	g := growth{series: s}
	f.X0 = slices.Min(x)
	g.span = slices.Max(x) - f.X0
	if g.span == 0 {
		return GrowthFit{}, fmt.Errorf("growth: all %d points have the same x, %v", len(y), f.X0)
	}
	g.u = unit(s.x[0], f.X0, g.span)
	if err := g.fit(); err != nil {
		return GrowthFit{}, err
	}
	g.describe(&f)
	return f, nil
}

// growth is a series with the fits of all classes.
type growth struct {
	series
	u     []float64 // x over its range, 0…1
	span  float64   // that range
	noise noise
	free  float64 // criterion of the free curve
	fits  []classFit
}

// classFit is a fitted class: y = rows·beta with the rate inside rows.
type classFit struct {
	class GrowthClass
	*seriesFit
	rate float64 // of exponential and saturating growth, per range of x
	aicc float64
}

// rates that can be told: exponential growth below a millionfold; saturation
// that is 63 % done at least, with two blocks or more on the way.
func (g *growth) rates(class GrowthClass) (lo, hi float64) {
	if class == Exponential {
		return 0.01, 14
	}
	return 1, max(2, min(20, float64(len(g.u))/4))
}

func (g *growth) rows(class GrowthClass, rate float64) *mat.Dense {
	return growthRows(g.u, class, rate)
}

func growthRows(u []float64, class GrowthClass, rate float64) *mat.Dense {
	p := 2
	if class == Constant || class == Exponential {
		p = 1
	}
	rows := mat.NewDense(len(u), p, nil)
	for i, v := range u {
		row := rows.RawRowView(i)
		row[0] = 1
		switch class {
		case Linear:
			row[1] = v
		case Exponential:
			row[0] = math.Exp(rate * (v - 1))
		case Saturating:
			row[1] = -math.Expm1(-rate * v)
		}
	}
	return rows
}

// fit fits all classes, judged by the noise about a free curve; or about the
// best class, when that leaves less.
func (g *growth) fit() error {
	pilot := g.series
	if g.log {
		pilot.log, pilot.y = false, make([]float64, len(g.y))
		for i, y := range g.y {
			pilot.y[i] = math.Log(y)
		}
	}
	free, v, ok := pilot.fitPilot(hats(g.u))
	if !ok {
		return errors.New("growth: x has too few different values for a curve")
	}
	_, columns := free.rows.Dims()
	if smooth, w, ok := pilot.fitPilot(powers(g.u, columns)); ok && w.scale < v.scale {
		free, v = smooth, w
	}
	g.noise = v
	g.fitClasses()
	best, least := classFit{}, v.scale
	for _, c := range g.fits {
		p := c.parameters()
		if spread := robustSpread(c.residual) * math.Sqrt(float64(len(g.u))/float64(len(g.u)-p)); spread < least {
			best, least = c, spread
		}
	}
	if best.seriesFit != nil {
		g.noise = g.noiseOf(best.seriesFit, best.parameters(), max(least, g.leastScale()))
		g.fitClasses()
		// The free curve's loss is in the units of its own scale.
		free.loss = 0
		for _, r := range free.residual {
			free.loss += huberLoss(r / g.noise.scale)
		}
	}
	g.free = g.noise.aicc(free, columns)
	return nil
}

// powers are the columns of a polynomial.
func powers(u []float64, n int) *mat.Dense {
	rows := mat.NewDense(len(u), n, nil)
	for i, v := range u {
		// Chebyshev's, which can be told apart.
		row := rows.RawRowView(i)
		row[0], row[1] = 1, 2*v-1
		for j := 2; j < n; j++ {
			row[j] = 2*row[1]*row[j-1] - row[j-2]
		}
	}
	return rows
}

// hats are the columns of a line with corners: at evenly spaced quantiles of
// x, fewer where there are fewer points.
func hats(u []float64) *mat.Dense {
	sorted := slices.Sorted(slices.Values(u))
	n := 6
	if len(u) < 40 {
		n = 4
	}
	var knots []float64
	for k := range n {
		at := sorted[k*(len(sorted)-1)/(n-1)]
		if len(knots) == 0 || at > knots[len(knots)-1]+0.02 {
			knots = append(knots, at)
		}
	}
	if len(knots) < 2 {
		knots = []float64{0, 1}
	}
	rows := mat.NewDense(len(u), len(knots), nil)
	for i, v := range u {
		k := min(sortedBefore(knots, v), len(knots)-2)
		share := (v - knots[k]) / (knots[k+1] - knots[k])
		rows.Set(i, k, 1-share)
		rows.Set(i, k+1, share)
	}
	return rows
}

// sortedBefore is the index of the last knot at or below v.
func sortedBefore(knots []float64, v float64) int {
	k := 0
	for k+1 < len(knots) && knots[k+1] <= v {
		k++
	}
	return k
}

// fitClasses fits each class and sorts them, the best first.
func (g *growth) fitClasses() {
	g.fits = nil
	for _, class := range []GrowthClass{Constant, Linear, Exponential, Saturating} {
		f := classFit{class: class}
		if class == Exponential && slices.Min(g.y) <= 0 && Median(g.y) <= 0 {
			continue
		}
		var ok bool
		if class == Constant || class == Linear {
			f.seriesFit, ok = g.robustFit(g.rows(class, 0), g.noise.scale)
		} else {
			f.seriesFit, f.rate, ok = g.searchRate(class)
		}
		if !ok {
			continue
		}
		f.aicc = g.noise.aicc(f.seriesFit, f.parameters())
		g.fits = append(g.fits, f)
	}
	slices.SortStableFunc(g.fits, func(a, b classFit) int {
		switch {
		case a.aicc < b.aicc:
			return -1
		case a.aicc > b.aicc:
			return 1
		}
		return 0
	})
}

func (f classFit) parameters() int {
	switch f.class {
	case Constant:
		return 1
	case Saturating:
		return 3
	}
	return 2
}

// searchRate minimises the loss over the rate: a coarse search on a
// logarithmic grid, then golden sections about its best.
func (g *growth) searchRate(class GrowthClass) (*seriesFit, float64, bool) {
	lo, hi := g.rates(class)
	var best *seriesFit
	at := 0.0
	try := func(logRate float64) float64 {
		f, ok := g.robustFit(g.rows(class, math.Exp(logRate)), g.noise.scale)
		if !ok {
			return math.Inf(1)
		}
		if best == nil || f.loss < best.loss {
			best, at = f, math.Exp(logRate)
		}
		return f.loss
	}
	const steps = 16
	width := math.Log(hi/lo) / steps
	for k := range steps + 1 {
		try(math.Log(lo) + float64(k)*width)
	}
	if best == nil {
		return nil, 0, false
	}
	a, b := max(math.Log(lo), math.Log(at)-width), min(math.Log(hi), math.Log(at)+width)
	golden(a, b, 1e-6, 1e-4, try)
	return best, at, true
}

// golden narrows the bracket of a minimum to a width, or until the function
// has changed by less than slack three times.
func golden(a, b, width, slack float64, f func(float64) float64) {
	const share = 0.6180339887498949
	c, d := b-share*(b-a), a+share*(b-a)
	fc, fd := f(c), f(d)
	for same := 0; b-a > width && same < 3; same++ {
		if math.Abs(fc-fd) > slack {
			same = -1
		}
		if fc <= fd {
			b, d, fd = d, c, fc
			c = b - share*(b-a)
			fc = f(c)
		} else {
			a, c, fc = c, d, fd
			d = a + share*(b-a)
			fd = f(d)
		}
	}
}

// describe names the class, or says why none is named.
func (g *growth) describe(f *GrowthFit) {
	f.NEff = g.noise.effective
	f.Relative, f.Residual = g.log, g.noise.scale
	f.Weights = make(map[GrowthClass]float64)
	best := g.fits[0]
	if f.NEff < minEffective || math.IsInf(best.aicc, 0) {
		f.Why = fmt.Sprintf("the %d points are worth %.2g independent ones, since neighbours are alike (correlation %.2f): too few to tell a class of growth", f.N, f.NEff, g.noise.phi)
		f.PerX.Warn = f.Why
		return
	}
	sum := 0.0
	for _, c := range g.fits {
		f.Weights[c.class] = math.Exp((best.aicc - c.aicc) / 2)
		sum += f.Weights[c.class]
	}
	for class := range f.Weights {
		f.Weights[class] /= sum
	}
	if len(g.fits) > 1 {
		f.Second = g.fits[1].class
	}
	growing := sum*f.Weights[Constant] < 1.0/clearly // relative to the best
	plausible := g.fits[:1]
	for i, c := range g.fits {
		if c.aicc-best.aicc < 2*math.Log(clearly) {
			plausible = g.fits[:i+1]
		}
	}
	if !growing {
		// What a line would still allow.
		f.Best = Constant
		for _, c := range g.fits {
			switch c.class {
			case Constant:
				f.Params = g.params(c)
			case Linear:
				f.PerX = g.perX(c)
			}
		}
		f.Fits = g.of(Constant).aicc-g.free < growthMisfit
		switch {
		case !f.Fits:
			f.Why = "y changes, but as none of the classes: see its change-points"
		case f.PerX.Lo > -SmallGrowth && f.PerX.Hi < SmallGrowth:
			f.Class = Constant
			f.Why = fmt.Sprintf("no growth shown; a change over the range beyond %+.1f … %+.1f %% is excluded", 100*f.PerX.Lo, 100*f.PerX.Hi)
		case f.PerX.Bounded():
			f.Why = fmt.Sprintf("no growth shown, but %+.0f … %+.0f %% over the range are not excluded", 100*f.PerX.Lo, 100*f.PerX.Hi)
		default:
			f.Why = "no growth shown, but the data do not bound it"
		}
		if best.class != Constant {
			f.Second = best.class
		}
		return
	}
	simplest := best
	for _, c := range plausible {
		if c.parameters() < simplest.parameters() && c.class != Constant {
			simplest = c
		}
	}
	f.Best = simplest.class
	if simplest.class != best.class {
		f.Second = best.class
	}
	f.Params = g.params(simplest)
	f.PerX = g.perX(simplest)
	f.Fits = best.aicc-g.free < growthMisfit
	for _, c := range plausible {
		if i := g.perX(c); c.class != simplest.class && c.class != Constant {
			f.PerX.Lo, f.PerX.Hi = min(f.PerX.Lo, i.Lo), max(f.PerX.Hi, i.Hi)
		}
	}
	switch {
	case !f.Fits:
		f.Why = fmt.Sprintf("y changes, but not as one class: a free curve fits better than %s growth (AICc %.0f lower)", best.class, best.aicc-g.free)
	case len(plausible) > 1:
		f.Why = fmt.Sprintf("y changes, but %s (weight %.2f) and %s (%.2f) are not told apart", best.class, f.Weights[best.class], g.fits[1].class, f.Weights[g.fits[1].class])
	default:
		f.Class = best.class
		f.Why = fmt.Sprintf("%s is %.3g times as likely as %s", best.class, min(1e6, math.Exp((g.fits[1].aicc-best.aicc)/2)), f.Second)
	}
}

// of is the fit of a class.
func (g *growth) of(class GrowthClass) classFit {
	for _, c := range g.fits {
		if c.class == class {
			return c
		}
	}
	return classFit{aicc: math.Inf(1)}
}

// jacobian is the curve's derivative by its parameters on the scale of the
// noise; the rate, where there is one, is the last.
func (g *growth) jacobian(c classFit) *mat.Dense {
	m, p := c.rows.Dims()
	jacobian := mat.NewDense(m, c.parameters(), nil)
	for i, u := range g.u {
		row := jacobian.RawRowView(i)
		copy(row, c.rows.RawRowView(i))
		switch c.class {
		case Exponential:
			row[p] = c.beta[0] * (u - 1) * math.Exp(c.rate*(u-1))
		case Saturating:
			row[p] = c.beta[1] * u * math.Exp(-c.rate*u)
		}
		if g.log {
			for j := range row {
				row[j] /= c.fitted[i]
			}
		}
	}
	return jacobian
}

// estimate gives the interval of a function of the parameters from its
// gradient (the delta method).
type estimate struct {
	cov     *mat.Dense
	freedom float64
	n       int
}

func (g *growth) estimate(c classFit) (estimate, bool) {
	cov, ok := g.noise.covariance(g.jacobian(c))
	return estimate{cov, g.noise.effective - float64(c.parameters()), g.n}, ok
}

func (e estimate) interval(mid float64, gradient ...float64) Interval {
	variance := 0.0
	for j, a := range gradient {
		for k, b := range gradient {
			variance += a * b * e.cov.At(j, k)
		}
	}
	return studentInterval(mid, math.Sqrt(max(variance, 0)), e.freedom, growthConf, e.n)
}

// params are a class's parameters, in the units of x and y.
func (g *growth) params(c classFit) []GrowthParam {
	e, ok := g.estimate(c)
	of := func(name string, mid float64, gradient ...float64) GrowthParam {
		i := unknown(g.n, "the data do not bound it")
		if ok {
			i = e.interval(mid, gradient...)
		}
		i.Mid = mid
		return GrowthParam{name, mid, i}
	}
	switch c.class {
	case Linear:
		return []GrowthParam{of("a", c.beta[0], 1, 0), of("b", c.beta[1]/g.span, 0, 1/g.span)}
	case Exponential:
		// beta is y at the end. The interval of a is taken on its logarithm.
		end, shrink := c.beta[0], math.Exp(-c.rate)
		a := positive(of("a", math.Log(end)-c.rate, 1/end, -1))
		a.Value = end * shrink
		return []GrowthParam{a, of("b", c.rate/g.span, 0, 1/g.span)}
	case Saturating:
		tau := positive(of("tau", math.Log(g.span/c.rate), 0, 0, -1/c.rate))
		return []GrowthParam{of("a", c.beta[0], 1, 0, 0), of("c", c.beta[0]+c.beta[1], 1, 1, 0), tau}
	}
	return []GrowthParam{of("a", c.beta[0], 1)}
}

// positive takes an estimate of a logarithm back to what it is of.
func positive(p GrowthParam) GrowthParam {
	p.Value = math.Exp(p.Value)
	p.Interval.Mid, p.Interval.Lo, p.Interval.Hi = p.Value, math.Exp(p.Interval.Lo), math.Exp(p.Interval.Hi)
	return p
}

// perX is the relative change over the range of x, from the logarithm of the
// ratio of both ends.
func (g *growth) perX(c classFit) Interval {
	e, ok := g.estimate(c)
	begin, end := 0.0, 0.0
	var gradient []float64
	ends := growthRows([]float64{0, 1}, c.class, c.rate)
	for j, b := range c.beta {
		begin += b * ends.At(0, j)
		end += b * ends.At(1, j)
	}
	if c.class == Constant || g.flat() {
		return Interval{Conf: growthConf, N: g.n}
	}
	i := unknown(g.n, "")
	if begin != 0 {
		i.Mid = (end - begin) / begin
	}
	if !ok {
		i.Warn = "the data do not bound it"
		return i
	}
	if begin <= 0 || end <= 0 {
		i.Warn = fmt.Sprintf("no relative change: the fit goes from %.4g to %.4g", begin, end)
		return i
	}
	for j := range c.beta {
		gradient = append(gradient, ends.At(1, j)/end-ends.At(0, j)/begin)
	}
	switch c.class {
	case Exponential:
		gradient = []float64{0, 1}
	case Saturating:
		gradient = append(gradient, c.beta[1]*math.Exp(-c.rate)/end)
	}
	i = e.interval(math.Log(end/begin), gradient...)
	i.Mid, i.Lo, i.Hi = (end-begin)/begin, math.Expm1(i.Lo), math.Expm1(i.Hi)
	return i
}

// flat: every value is the same, 0 perhaps.
func (g *growth) flat() bool { return slices.Min(g.y) == slices.Max(g.y) }
