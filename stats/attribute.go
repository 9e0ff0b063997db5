package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Attribution says which of several quantities explains the growth of y.
type Attribution struct {
	Effects []Effect `json:"effects"`
	By      []string `json:"by"` // names of those that explain it; empty: none, or it cannot be told
	Told    bool     `json:"told"`
	Why     string   `json:"why"` // one sentence, with figures
}

// Effect is what one quantity does to y, the others held.
type Effect struct {
	Name     string   `json:"name"`
	Shape    string   `json:"shape"` // how y goes with it: "linear", "accelerating", "flattening"; empty: not shown
	Slope    float64  `json:"slope"` // of y per unit of the quantity, on average over its range
	Interval Interval `json:"interval"`
	Moves    Interval `json:"moves"` // change of y over the quantity's range
	VIF      float64  `json:"vif"`   // variance inflation: how much smooth functions of the others blur it
	P        float64  `json:"p"`     // Holm over the effects
}

const (
	// maxVIF is from where on an effect is not told from the others'. The
	// customary limit for straight lines is 10 (Kutner et al. 2005, §10.5); but
	// files, bytes and time can only rise, so the best of sequences that vary
	// them in turn has 15 to 270. An ordinary load test has thousands.
	maxVIF = 300
	// attributeLevel is the level of each statement.
	attributeLevel = 0.01
	// maxBeside is what quantities that are not shown may at most move y by,
	// relative to those that are, before these are said to be all.
	maxBeside = 0.5
)

// bends are the shapes in which y may go with a quantity over its range:
// (exp(k·u)−1)/k, from a late rise to an early one; 0 is a straight line.
var bends = [...]float64{0, 1.5, 3, 4.5, 6, -1.5, -3, -4.5, -6}

// Attribute explains y (in the order of time) by the quantities x[name][i].
//
// The model is a sum over the quantities, each with a shape of its own: a
// straight line, or one that bends up or down. All shapes of all subsets are
// tried, so growth that is exponential in one quantity is not passed on to
// another that happens to bend as a straight line in the first would have to.
// A quantity explains y when the best model without it is worse than the best
// one with it by more than the noise allows, which respects the correlation of
// neighbours, at 1 % after Holm's correction; and when this is so beside
// smoother curves in the others, too. It is told only when the design
// tells it: when it is far enough from any smooth function of the others (a
// variance inflation of 300 or less), and nothing is left that quantities which
// cannot be told apart explain together. That none explains y is told when y,
// against each of them alone, is shown to move by less than [SmallGrowth].
//
// It is an error when there is nothing to explain by, a value is not finite,
// or no quantity varies.
func Attribute(y []float64, names []string, x [][]float64) (Attribution, error) {
	if len(names) == 0 || len(names) != len(x) {
		return Attribution{}, fmt.Errorf("attribute: %d names for %d quantities", len(names), len(x))
	}
	if len(names) > 4 {
		return Attribution{}, fmt.Errorf("attribute: %d quantities: 4 at most", len(names))
	}
	s, err := reduce(y, x...)
	if err != nil {
		return Attribution{}, fmt.Errorf("attribute: %w", err)
	}
	a := attribution{series: s, names: names}
	for q := range x {
		from := slices.Min(x[q])
		a.span = append(a.span, slices.Max(x[q])-from)
		if a.span[q] == 0 {
			a.u = append(a.u, make([]float64, len(s.y)))
			continue
		}
		a.varies = append(a.varies, q)
		a.u = append(a.u, unit(s.x[q], from, a.span[q]))
	}
	if len(a.varies) == 0 {
		return Attribution{}, errors.New("attribute: none of the quantities varies")
	}
	if need := 6 * (len(a.varies) + 1); len(s.y) < need {
		why := fmt.Sprintf("%d points: at least %d are needed for %d quantities", len(y), need, len(a.varies))
		return Attribution{Why: why, Effects: a.nothing(why)}, nil
	}
	return a.attribute(), nil
}

type attribution struct {
	series
	names  []string
	span   []float64   // of each quantity
	u      [][]float64 // each over its span
	varies []int       // quantities that do
	all    int         // these, as bits
	noise  noise
	best   map[int]model // by the set of quantities in it, as bits
}

// model is the best fit with some quantities.
type model struct {
	*seriesFit
	of   []int     // quantities
	bend []float64 // of each
}

func (a *attribution) nothing(why string) []Effect {
	var effects []Effect
	for _, name := range a.names {
		nothing := unknown(a.n, why)
		effects = append(effects, Effect{Name: name, Slope: math.NaN(), Interval: nothing, Moves: nothing, VIF: math.Inf(1), P: 1})
	}
	return effects
}

func (a *attribution) rows(of []int, bend []float64) *mat.Dense {
	rows := mat.NewDense(len(a.y), len(of)+1, nil)
	for i := range a.y {
		row := rows.RawRowView(i)
		row[0] = 1
		for j, q := range of {
			row[j+1] = bent(a.u[q][i], bend[j])
		}
	}
	return rows
}

// bent goes from 0 to 1 as u does.
func bent(u, k float64) float64 {
	if k == 0 {
		return u
	}
	return math.Expm1(k*u) / math.Expm1(k)
}

func (a *attribution) attribute() Attribution {
	for _, q := range a.varies {
		a.all |= 1 << q
	}
	all := a.all
	if !a.fit(all) {
		why := "the quantities rise in exact proportion to each other: nothing tells them apart"
		return Attribution{Why: why + a.correlations(), Effects: a.nothing(why)}
	}
	out := Attribution{Effects: a.effects(all)}
	var shown, blurred []int
	told := 0
	for _, q := range a.varies {
		switch e := out.Effects[q]; {
		case e.VIF > maxVIF:
			blurred = append(blurred, q)
		case e.P <= attributeLevel:
			shown = append(shown, q)
			told |= 1 << q
			out.By = append(out.By, e.Name)
		}
	}
	a.conclude(&out, all, told, shown, blurred)
	return out
}

// fit finds the best model of every subset of the quantities, judged by the
// noise about the best one of all.
func (a *attribution) fit(all int) bool {
	pilot := a.series
	if a.log {
		pilot.log, pilot.y = false, make([]float64, len(a.y))
		for i, y := range a.y {
			pilot.y[i] = math.Log(y)
		}
	}
	straight := a.rows(a.varies, make([]float64, len(a.varies)))
	_, v, ok := pilot.fitPilot(straight)
	if !ok {
		return false
	}
	a.noise = v
	full, ok := a.search(all, nil)
	if !ok {
		return false
	}
	// The noise is taken about smooth curves, so that what the shapes leave of
	// a curve is not taken for correlation. They follow the noise, too, which
	// leaves less of its correlation than there is: hence wary.
	a.best = map[int]model{all: full}
	about := full.seriesFit
	if f, ok := a.robustFit(a.curves(all), a.noise.scale); ok {
		about = f
	}
	_, p := about.rows.Dims()
	p = max(p, 1+2*len(full.of))
	spread := robustSpread(about.residual) * math.Sqrt(float64(len(a.y))/float64(len(a.y)-p))
	a.noise = a.noiseOf(about, p, max(spread, a.leastScale())).wary(len(a.y))
	a.best = make(map[int]model)
	for set := all; ; set = (set - 1) & all {
		if m, ok := a.search(set, full.bend); ok {
			a.best[set] = m
		}
		if set == 0 {
			break
		}
	}
	_, ok = a.best[all]
	return ok
}

// search finds the best shapes for a set of quantities, one quantity at a time
// until none changes: from straight lines, from each bent all alike, and from
// shapes that were found before.
func (a *attribution) search(set int, found []float64) (model, bool) {
	var of []int
	var begin []float64
	for j, q := range a.varies {
		if set&(1<<q) != 0 {
			of = append(of, q)
			if found != nil {
				begin = append(begin, found[j])
			}
		}
	}
	var best model
	try := func(bend []float64) {
		f, ok := a.robustFit(a.rows(of, bend), a.noise.scale)
		if ok && (best.seriesFit == nil || f.loss < best.loss) {
			best = model{seriesFit: f, of: of, bend: slices.Clone(bend)}
		}
	}
	for _, k := range []float64{0, 3, -3} {
		bend := make([]float64, len(of))
		for j := range bend {
			bend[j] = k
		}
		try(bend)
	}
	if found != nil {
		try(begin)
	}
	for range 4 {
		if best.seriesFit == nil {
			break
		}
		before := best.loss
		for j := range of {
			bend := slices.Clone(best.bend)
			for _, k := range bends {
				if bend[j] = k; k != best.bend[j] {
					try(bend)
				}
			}
		}
		if best.loss == before {
			break
		}
	}
	if best.seriesFit == nil {
		return best, false
	}
	return best, true
}

// pValue is that of the hypothesis that the larger set explains no more than
// the smaller: a bend counts as a parameter.
func (a *attribution) pValue(larger, smaller int) float64 {
	l, okL := a.best[larger]
	s, okS := a.best[smaller]
	if !okL || !okS {
		return 1
	}
	extra := float64(2 * (len(l.of) - len(s.of)))
	freedom := a.noise.effective - float64(1+2*len(l.of))
	if extra == 0 || freedom <= 0 {
		return 1
	}
	gain := max(0, a.noise.deviance(s.seriesFit)-a.noise.deviance(l.seriesFit))
	return distuv.F{D1: extra, D2: freedom}.Survival(gain / extra)
}

func (a *attribution) effects(all int) []Effect {
	effects := a.nothing("it does not vary")
	full := a.best[all]
	jacobian := a.jacobian(full)
	cov, ok := a.noise.covariance(jacobian)
	e := estimate{cov, a.noise.effective - float64(1+2*len(full.of)), a.n}
	var ps []float64
	for j, q := range full.of {
		effect := &effects[q]
		effect.VIF = a.vif(q)
		effect.Moves = unknown(a.n, "the data do not bound it")
		effect.Moves.Mid = full.beta[j+1]
		if ok {
			gradient := make([]float64, 1+2*len(full.of))
			gradient[j+1] = 1
			effect.Moves = e.interval(full.beta[j+1], gradient...)
		}
		effect.Interval = effect.Moves
		effect.Interval.Mid /= a.span[q]
		effect.Interval.Lo /= a.span[q]
		effect.Interval.Hi /= a.span[q]
		effect.Slope = effect.Interval.Mid
		ps = append(ps, max(a.pValue(all, all&^(1<<q)), a.besideCurves(q)))
	}
	for j, p := range Holm(ps) {
		effect := &effects[full.of[j]]
		effect.P = p
		if p > attributeLevel {
			continue
		}
		switch k := full.bend[j]; {
		case k == 0:
			effect.Shape = "linear"
		case k > 0:
			effect.Shape = "accelerating"
		default:
			effect.Shape = "flattening"
		}
	}
	return effects
}

// jacobian has the columns of the model, and for each quantity one by which it
// might bend a little more: what is not known of the shapes is then in the
// intervals. It vanishes at both ends of the range, so the moves stay what
// they are.
func (a *attribution) jacobian(m model) *mat.Dense {
	k := len(m.of)
	jacobian := mat.NewDense(len(a.y), 1+2*k, nil)
	for i := range a.y {
		row := jacobian.RawRowView(i)
		copy(row, m.rows.RawRowView(i))
		for j, q := range m.of {
			const little = 0.1
			row[1+k+j] = bent(a.u[q][i], m.bend[j]+little) - bent(a.u[q][i], m.bend[j]-little)
		}
		if a.log {
			for j := range row {
				row[j] /= m.fitted[i]
			}
		}
	}
	return jacobian
}

// vif is the variance inflation of a quantity by smooth functions (of third
// degree) of all others: 1/(1−R²). A quantity that is a curve of another is no
// more told apart from it than one that is a multiple of it.
func (a *attribution) vif(q int) float64 {
	rows := mat.NewDense(len(a.y), 1+3*(len(a.varies)-1), nil)
	for i := range a.y {
		row := append(rows.RawRowView(i)[:0], 1)
		for _, o := range a.varies {
			if v := 2*a.u[o][i] - 1; o != q {
				row = append(row, v, v*v, v*v*v)
			}
		}
	}
	basis := orthonormal(rows)
	left, whole := slices.Clone(a.u[q]), 0.0
	mid := 0.0
	for _, v := range left {
		mid += v / float64(len(left))
	}
	_, p := basis.Dims()
	for j := range p {
		product := 0.0
		for i, v := range left {
			product += basis.At(i, j) * v
		}
		for i := range left {
			left[i] -= product * basis.At(i, j)
		}
	}
	rest := 0.0
	for i, v := range left {
		whole += (a.u[q][i] - mid) * (a.u[q][i] - mid)
		rest += v * v
	}
	if rest <= 1e-12*whole {
		return math.Inf(1)
	}
	return whole / rest
}

// correlations are the closest pairs, in words.
func (a *attribution) correlations() string {
	var text []string
	for i, p := range a.varies {
		for _, q := range a.varies[:i] {
			text = append(text, fmt.Sprintf("%s and %s: correlation %.4f", a.names[q], a.names[p], pearson(a.u[p], a.u[q])))
		}
	}
	if len(text) == 0 {
		return ""
	}
	return " (" + strings.Join(text, ", ") + ")"
}

func pearson(x, y []float64) float64 {
	mx, my := 0.0, 0.0
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	xx, xy, yy := 0.0, 0.0, 0.0
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}

// conclude says whether it is told, and why.
func (a *attribution) conclude(out *Attribution, all, told int, shown, blurred []int) {
	together := a.pValue(all, told) // what the others explain beyond those shown
	switch {
	case a.noise.effective < float64(4+4*len(a.varies)):
		out.By = nil
		out.Why = fmt.Sprintf("the %d points are worth %.2g independent ones: too few for %d quantities", a.n, a.noise.effective, len(a.varies))
	case len(blurred) > 0 && together <= attributeLevel:
		var text []string
		for _, q := range blurred {
			text = append(text, fmt.Sprintf("%s ×%s", a.names[q], formatVIF(out.Effects[q].VIF)))
		}
		out.By = nil
		out.Why = fmt.Sprintf("y changes with quantities that rise together: variance inflation %s (at most %d can be told)%s; vary them separately", strings.Join(text, ", "), maxVIF, a.correlations())
	case len(shown) > 0:
		var text []string
		most := 0.0
		for _, q := range shown {
			e := out.Effects[q]
			most = max(most, math.Abs(e.Moves.Mid))
			text = append(text, fmt.Sprintf("%s (%s, %s, moves y by %.3g … %.3g)", e.Name, e.Shape, formatP(e.P), e.Moves.Lo, e.Moves.Hi))
		}
		out.Why = "y goes with " + strings.Join(text, " and with ")
		// Not shown is not excluded.
		out.Told = true
		for _, q := range a.varies {
			if slices.Contains(shown, q) {
				continue
			}
			m := a.beside(told, q)
			if reach := max(math.Abs(m.Lo), math.Abs(m.Hi)); !(reach <= maxBeside*most) {
				out.Told = false
				out.Why += fmt.Sprintf(", but %s may move it by up to %.3g too", a.names[q], reach)
			}
		}
	case together <= attributeLevel:
		out.Why = fmt.Sprintf("y changes (%s for all together), but no single quantity is shown to be why", formatP(together))
	default:
		most, name := 0.0, ""
		for _, q := range a.varies {
			m := a.beside(0, q)
			if reach := max(math.Abs(m.Lo), math.Abs(m.Hi)); !(reach <= most) {
				most, name = reach, a.names[q]
			}
		}
		share := most / math.Abs(Median(a.y))
		out.Told = share <= SmallGrowth
		if out.Told {
			out.Why = fmt.Sprintf("none of the quantities is shown to move y; a change of more than %s over the range of %s is excluded", shareText(share), name)
		} else {
			out.Why = fmt.Sprintf("nothing is shown, but a change of y by %s over the range of %s is not excluded", shareText(share), name)
		}
	}
}

// curves has a constant and, for each quantity of a set, columns with which y
// can follow it along a smooth curve: of second degree where it was found
// straight, else of third degree and the bend that was found.
func (a *attribution) curves(set int, more ...[]float64) *mat.Dense {
	var columns [][]float64
	full := a.best[a.all]
	for i, q := range full.of {
		if set&(1<<q) == 0 {
			continue
		}
		degree := 2
		if k := full.bend[i]; k != 0 {
			degree = 3
			columns = append(columns, a.column(q, k))
		}
		p := powers(a.u[q], degree+1)
		for j := 1; j <= degree; j++ {
			columns = append(columns, mat.Col(nil, j, p))
		}
	}
	columns = append(columns, more...)
	rows := mat.NewDense(len(a.y), 1+len(columns), nil)
	for i := range a.y {
		row := rows.RawRowView(i)
		row[0] = 1
		for j, c := range columns {
			row[j+1] = c[i]
		}
	}
	return rows
}

func (a *attribution) column(q int, bend float64) []float64 {
	column := make([]float64, len(a.y))
	for i, u := range a.u[q] {
		column[i] = bent(u, bend)
	}
	return column
}

// besideCurves is the p-value of the hypothesis that a quantity explains
// nothing beside smooth curves in all others: what a bend of the few
// shapes leaves of another quantity's curve is not passed on to this one.
func (a *attribution) besideCurves(q int) float64 {
	others := a.all &^ (1 << q)
	rows := a.curves(others)
	without, ok := a.robustFit(rows, a.noise.scale)
	if !ok {
		return 1
	}
	best := without.loss
	for _, k := range bends {
		if with, ok := a.robustFit(a.curves(others, a.column(q, k)), a.noise.scale); ok {
			best = min(best, with.loss)
		}
	}
	_, p := rows.Dims()
	freedom := a.noise.effective - float64(p+2)
	if freedom <= 0 {
		return 1
	}
	gain := a.noise.deviance(without) * (1 - best/without.loss)
	if !(gain > 0) {
		return 1
	}
	return distuv.F{D1: 2, D2: freedom}.Survival(gain / 2)
}

// beside is what a quantity moves y by, in a straight line, beside smooth
// curves in a set of others.
func (a *attribution) beside(set, q int) Interval {
	rows := a.curves(set, a.u[q])
	nothing := unknown(a.n, "the data do not bound it")
	f, ok := a.robustFit(rows, a.noise.scale)
	if !ok {
		return nothing
	}
	jacobian := rows
	if a.log {
		jacobian = mat.DenseCopyOf(rows)
		for i, v := range f.fitted {
			row := jacobian.RawRowView(i)
			for j := range row {
				row[j] /= v
			}
		}
	}
	cov, ok := a.noise.covariance(jacobian)
	if !ok {
		return nothing
	}
	_, p := rows.Dims()
	gradient := make([]float64, p)
	gradient[p-1] = 1
	return estimate{cov, a.noise.effective - float64(p), a.n}.interval(f.beta[p-1], gradient...)
}

func formatVIF(v float64) string {
	if v > 1e6 {
		return "10^6 and more"
	}
	return fmt.Sprintf("%.3g", v)
}

// shareText is a share in percent with two digits, and all before the point.
func shareText(share float64) string {
	if p := 100 * share; p >= 100 {
		return fmt.Sprintf("%.0f %%", p)
	}
	return fmt.Sprintf("%.2g %%", 100*share)
}
