package stats

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// negligible is the largest difference of logarithms that counts as rounding.
const negligible = 1e-9

// linearFit is a linear model of y whose columns may be linearly dependent: a column that
// depends on earlier ones is dropped.
//
// The variance of a weighted sum of y is estimated from each trial's own residual (HC2:
// MacKinnon and White 1985), so trials need not have the same noise. Its degrees of
// freedom are Satterthwaite's for equal noise (Bell and McCaffrey 2002; Imbens and Kolesár
// 2016). In a balanced design of factors with two levels that is exactly the textbook
// interval; otherwise it costs some degrees of freedom.
type linearFit struct {
	y        []float64
	columns  [][]float64 // as given
	kept     []int       // columns that do not depend on earlier ones
	q        [][]float64 // orthonormal, one for each kept column
	r        [][]float64 // column k is Σ r[k][j]·q[j]
	residual []float64
	leverage []float64
	squares  float64 // sum of the residuals'
	freedom  int
	sigma    float64
}

// dependent is the largest remaining share of a column, after projecting out the earlier ones,
// for which it counts as dependent on them.
const dependent = 1e-8

func fitLinear(columns [][]float64, y []float64) *linearFit {
	s := &linearFit{y: y, columns: columns, residual: append([]float64(nil), y...), leverage: make([]float64, len(y))}
	for c, column := range columns {
		rest := append([]float64(nil), column...)
		r := make([]float64, len(s.q), len(s.q)+1)
		for range 2 { // twice is enough (Giraud, Langou and Rozložník 2005)
			for j, q := range s.q {
				by := floats.Dot(q, rest)
				r[j] += by
				floats.AddScaled(rest, -by, q)
			}
		}
		length := math.Sqrt(floats.Dot(rest, rest))
		if length <= dependent*math.Sqrt(floats.Dot(column, column)) {
			continue
		}
		for i := range rest {
			rest[i] /= length
		}
		s.kept, s.q, s.r = append(s.kept, c), append(s.q, rest), append(s.r, append(r, length))
	}
	for _, q := range s.q {
		floats.AddScaled(s.residual, -floats.Dot(q, s.residual), q)
		for i, v := range q {
			s.leverage[i] += v * v
		}
	}
	s.squares = floats.Dot(s.residual, s.residual)
	s.freedom = len(y) - len(s.kept)
	if s.freedom > 0 {
		s.sigma = math.Sqrt(s.squares / float64(s.freedom))
	}
	return s
}

// determined reports whether no column nearly depends on others (up to a millionth).
func (s *linearFit) determined() bool {
	for k, c := range s.kept {
		if s.r[k][k] < 3e-6*math.Sqrt(floats.Dot(s.columns[c], s.columns[c])) {
			return false
		}
	}
	return len(s.kept) == len(s.columns)
}

// hat returns an element of the projection onto the columns.
func (s *linearFit) hat(i, k int) float64 {
	h := 0.0
	for _, q := range s.q {
		h += q[i] * q[k]
	}
	return h
}

// weights returns the weights of y in the estimate of Σ c·β, assuming that dropped columns have
// no effect.
func (s *linearFit) weights(c []float64) []float64 {
	w := make([]float64, len(s.y))
	z := make([]float64, len(s.q)) // Rᵀz = c
	for k := range s.q {
		z[k] = c[s.kept[k]]
		for j := range k {
			z[k] -= s.r[k][j] * z[j]
		}
		z[k] /= s.r[k][k]
		floats.AddScaled(w, z[k], s.q[k])
	}
	return w
}

// parameter returns the weights of y in the estimate of one β.
func (s *linearFit) parameter(j int) []float64 {
	unit := make([]float64, len(s.columns))
	unit[j] = 1
	return s.weights(unit)
}

// confounded reports whether other columns contribute to the estimate of Σ c·β with weights w if
// they have an effect.
func (s *linearFit) confounded(c, w []float64) bool {
	for j, column := range s.columns {
		if math.Abs(floats.Dot(w, column)-c[j]) > 1e-6*math.Sqrt(floats.Dot(c, c)) {
			return true
		}
	}
	return false
}

// manyTrials is the number of trials above which the correlation of residuals does not matter.
const manyTrials = 1000

// error returns the standard error of the sum with weights w, and its degrees of freedom; 0 of
// them if the trials do not determine it.
func (s *linearFit) error(w []float64) (se, freedom float64) {
	if s.freedom == 0 {
		return math.Inf(1), 0
	}
	n := len(s.y)
	a := make([]float64, n)
	variance, total := 0.0, 0.0
	for i, v := range w {
		free := 1 - s.leverage[i]
		if math.Abs(v) < 1e-12 {
			continue
		}
		if free < 1e-8 {
			// If the model fits a trial exactly, its residual contains no information
			// about its noise: use that of all trials.
			return max(s.sigma*math.Sqrt(floats.Dot(w, w)), negligible), float64(s.freedom)
		}
		a[i] = v * v / free
		variance += a[i] * s.residual[i] * s.residual[i]
		total += v * v
	}
	if total == 0 {
		return 0, float64(s.freedom)
	}
	spread := 0.0
	for i := range n {
		if a[i] == 0 {
			continue
		}
		spread += a[i] * a[i] * (1 - s.leverage[i]) * (1 - s.leverage[i])
		if n > manyTrials {
			continue
		}
		for j := range i {
			if a[j] == 0 {
				continue
			}
			spread += 2 * a[i] * a[j] * sq(s.hat(i, j))
		}
	}
	return max(math.Sqrt(variance), negligible), total * total / spread
}

// logRatio is the logarithm of a ratio with its standard error and the degrees of freedom of
// Student's t; 0 of them if the trials do not determine the error.
type logRatio struct {
	mid, se, freedom float64
	n                int
}

func (s *linearFit) ratio(w []float64) logRatio {
	r := logRatio{mid: floats.Dot(w, s.y), n: len(s.y)}
	r.se, r.freedom = s.error(w)
	return r
}

// interval cuts off a tail at each end.
func (r logRatio) interval(conf, tail float64) Interval {
	if r.freedom == 0 { // nothing was repeated
		return unbounded(math.Exp(r.mid), r.n)
	}
	reach := distuv.StudentsT{Sigma: 1, Nu: r.freedom}.Quantile(1-tail) * r.se
	return Interval{Mid: math.Exp(r.mid), Lo: math.Exp(r.mid - reach), Hi: math.Exp(r.mid + reach), Conf: conf, N: r.n}
}

// above returns the p-value of the hypothesis that the ratio is 1 or less; NaN if the trials do not
// determine it.
func (r logRatio) above() float64 {
	switch {
	case r.freedom == 0:
		return math.NaN()
	case r.mid == 0: // also without a standard error
		return 0.5
	}
	return distuv.StudentsT{Sigma: 1, Nu: r.freedom}.Survival(r.mid / r.se)
}

// differs returns the p-value of the hypothesis that the ratio is 1.
func (r logRatio) differs() float64 {
	return min(1, 2*logRatio{mid: math.Abs(r.mid), se: r.se, freedom: r.freedom}.above())
}

// test returns the ratio with its interval at conf, and the p-value that it is 1.
func (r logRatio) test(conf float64) (Interval, float64) {
	return r.interval(conf, (1-conf)/2), r.differs()
}
