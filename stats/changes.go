package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Change is a moment at which a series changes its level or its slope.
type Change struct {
	Index    int      `json:"index"`    // first point of the new regime
	X        float64  `json:"x"`        //
	Interval Interval `json:"interval"` // of X, 95 %
	Kind     string   `json:"kind"`     // "level" or "slope"
	Before   float64  `json:"before"`   // level just before, or slope before
	After    float64  `json:"after"`
}

// Kinds of [Change].
const (
	LevelChange = "level"
	SlopeChange = "slope"
)

const (
	// maxChanges is how many changes are looked for.
	maxChanges = 8
	// changeReach is the rise of the sum of squares within which a position is
	// plausible at 95 % (Hansen 2000, Sample splitting and threshold
	// estimation, table 1).
	changeReach = 7.35
	// minSegment is the number of blocks between two changes.
	minSegment = 6
)

// changePenalty is what a change has to lower the sum of squares by, in
// long-run variances of the noise: found by simulation, so that less than one
// series in a hundred without a change is said to have one. The fewer the
// independent blocks, the less is known of their correlation.
func changePenalty(effective float64) float64 { return 18 + 400/effective }

// Changes finds where y changes its level or its slope, in the order of time;
// none when nothing is shown, and for fewer than 20 points. Between changes y
// is taken for a straight line in x, so growth that bends is found as changes
// of slope: ask [Growth] first.
//
// The best positions of 1 to 8 changes are found exactly (dynamic programming:
// Bai and Perron 2003) over medians of blocks with outliers cut off. Each must
// lower the sum of squares by 20 times the long-run variance of the noise or
// more (the fewer independent blocks, the more), which respects the correlation of neighbours.
func Changes(x, y []float64) []Change {
	s, err := reduce(y, x)
	if err != nil || len(s.y) < 20 {
		return nil
	}
	from := slices.Min(x)
	span := slices.Max(x) - from
	if span == 0 {
		return nil
	}
	l := newLines(s, unit(s.x[0], from, span))
	k, variance := l.choose()
	if k == 0 {
		return nil
	}
	breaks := l.breaks(k)
	var changes []Change
	for j, at := range breaks {
		first, end := 0, len(s.y)
		if j > 0 {
			first = breaks[j-1]
		}
		if j+1 < len(breaks) {
			end = breaks[j+1]
		}
		c := l.describe(first, at, end, variance)
		if c.Kind == SlopeChange {
			c.Before /= span
			c.After /= span
		}
		c.Index, c.X = s.locate(c, x, y)
		lo, hi := int(c.Interval.Lo), int(c.Interval.Hi)
		c.Interval = Interval{
			Mid: c.X, Conf: 0.95, N: len(y),
			Lo: x[s.from[max(lo-1, 0)]],
			Hi: x[s.end(min(hi, len(s.y)-1))-1],
		}
		c.Interval.Lo, c.Interval.Hi = min(c.Interval.Lo, c.X), max(c.Interval.Hi, c.X)
		changes = append(changes, c)
	}
	return changes
}

// end is the point after a block's last.
func (s *series) end(block int) int {
	if block+1 < len(s.from) {
		return s.from[block+1]
	}
	return s.n
}

// locate finds the first point of the new regime: for a level, the split of
// the two blocks beside the change that leaves the least absolute deviations.
func (s *series) locate(c Change, x, y []float64) (int, float64) {
	index := s.from[c.Index]
	if c.Kind == LevelChange && s.size > 1 {
		first, end := s.from[max(c.Index-1, 0)], s.end(c.Index)
		gain, best := 0.0, 0.0
		index = first
		for i := first; i < end; i++ {
			gain += math.Abs(y[i]-c.After) - math.Abs(y[i]-c.Before)
			if gain > best {
				index, best = i+1, gain
			}
		}
	}
	index = min(index, len(x)-1)
	return index, x[index]
}

// lines fits straight lines to runs of blocks.
type lines struct {
	u, y, weight []float64
	sums         [][6]float64 // before each block: of w, wu, wy, wuu, wuy, wyy
	best         [][]float64  // best[k][t]: least squares of the first t blocks with k changes
	last         [][]int      // where the last of them is
	phi          float64      // correlation of neighbours, as their differences tell it
}

// newLines cuts outliers off and weighs by the noise.
func newLines(s series, u []float64) *lines {
	m := len(s.y)
	l := &lines{u: u, y: make([]float64, m), weight: make([]float64, m), sums: make([][6]float64, m+1)}
	level := runningMedian(s.y, max(3, m/20))
	apart := make([]float64, m)
	for i, v := range level {
		l.weight[i] = 1
		if s.log {
			l.weight[i] = 1 / v
		}
		apart[i] = (s.y[i] - v) * l.weight[i]
	}
	cut := 3 * robustSpread(apart)
	mid := Median(s.y)
	for i, v := range level {
		if cut > 0 {
			apart[i] = max(-cut, min(cut, apart[i]))
		}
		l.y[i] = v + apart[i]/l.weight[i]
		w := l.weight[i] * l.weight[i]
		a, b := u[i]-0.5, l.y[i]-mid
		l.sums[i+1] = l.sums[i]
		for j, v := range [6]float64{w, w * a, w * b, w * a * a, w * a * b, w * b * b} {
			l.sums[i+1][j] += v
		}
	}
	l.phi = l.differences()
	l.partition()
	return l
}

// differences estimates the correlation of neighbours from differences: those
// over two steps have 1+phi times the variance of those over one, whatever the
// level (Chakar, Lebarbier, Lévy-Leduc and Robin 2017). Lines that follow the
// noise leave residuals with less correlation than the noise has; this is what
// tells then.
func (l *lines) differences() float64 {
	var spread [2]float64
	for step := range spread {
		d := make([]float64, 0, len(l.y))
		for i := step + 1; i < len(l.y); i++ {
			d = append(d, (l.y[i]-l.y[i-step-1])*l.weight[i])
		}
		spread[step] = winsorisedSpread(d)
	}
	if spread[0] == 0 {
		return 0
	}
	ratio := spread[1] / spread[0]
	return max(0, min(maxPhi, ratio*ratio-1))
}

// runningMedian is the median of the values up to half before and after.
func runningMedian(y []float64, half int) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = Median(y[max(0, i-half):min(len(y), i+half+1)])
	}
	return out
}

// cost is the sum of squares about the line through blocks from…to−1.
func (l *lines) cost(from, to int) float64 {
	var d [6]float64
	for j := range d {
		d[j] = l.sums[to][j] - l.sums[from][j]
	}
	uu, uy, yy := d[3]-d[1]*d[1]/d[0], d[4]-d[1]*d[2]/d[0], d[5]-d[2]*d[2]/d[0]
	if uu > 1e-9*d[3] {
		yy -= uy * uy / uu
	}
	return max(yy, 0)
}

// partition finds the best positions of each number of changes.
func (l *lines) partition() {
	m := len(l.y)
	shortest := max(minSegment, m/25)
	costs := make([]float64, (m+1)*(m+1))
	for a := range m {
		for b := a + shortest; b <= m; b++ {
			costs[a*(m+1)+b] = l.cost(a, b)
		}
	}
	for k := 0; k <= maxChanges && (k+1)*shortest <= m; k++ {
		best, last := make([]float64, m+1), make([]int, m+1)
		for t := range best {
			best[t] = math.Inf(1)
			if k == 0 && t >= shortest {
				best[t] = costs[t]
			}
			for a := k * shortest; k > 0 && a+shortest <= t; a++ {
				if c := l.best[k-1][a] + costs[a*(m+1)+t]; c < best[t] {
					best[t], last[t] = c, a
				}
			}
		}
		l.best, l.last = append(l.best, best), append(l.last, last)
	}
}

// breaks are the first blocks after each of k changes.
func (l *lines) breaks(k int) []int {
	at := make([]int, k)
	t := len(l.y)
	for ; k > 0; k-- {
		t = l.last[k][t]
		at[k-1] = t
	}
	return at
}

// choose is the number of changes that are shown, and the long-run variance of
// the noise. The variance is taken from the residuals about as many changes as
// are in question, not about none: a change would hide itself otherwise.
func (l *lines) choose() (int, float64) {
	m := len(l.y)
	none := l.best[0][m]
	for k := 1; k < len(l.best); k++ {
		variance, effective := l.variance(k)
		penalty := changePenalty(effective) * variance
		if none-l.best[k][m] <= penalty*float64(k) {
			continue
		}
		most := k
		for j := range l.best {
			if l.best[j][m]+penalty*float64(j) < l.best[most][m]+penalty*float64(most) {
				most = j
			}
		}
		return most, variance
	}
	return 0, 0
}

// variance is the long-run variance of the noise about lines with k changes,
// and how many blocks are independent of each other.
func (l *lines) variance(k int) (variance, effective float64) {
	m := len(l.y)
	borders := append(append([]int{0}, l.breaks(k)...), m)
	rows := mat.NewDense(m, 2*(k+1), nil)
	target, ones := make([]float64, m), make([]float64, m)
	for j := range k + 1 {
		for i := borders[j]; i < borders[j+1]; i++ {
			rows.Set(i, 2*j, l.weight[i])
			rows.Set(i, 2*j+1, l.weight[i]*(l.u[i]-l.u[borders[j]]))
			target[i], ones[i] = l.weight[i]*l.y[i], 1
		}
	}
	left := float64(m - 3*k - 2)
	if left < 4 {
		return math.Inf(1), 0
	}
	variance = l.best[k][m] / left
	least := 1e-18 * (l.sums[m][5] + l.sums[m][0])
	basis := orthonormal(rows)
	residual := slices.Clone(target)
	_, p := basis.Dims()
	for j := range p {
		product := 0.0
		for i := range m {
			product += basis.At(i, j) * target[i]
		}
		for i := range m {
			residual[i] -= product * basis.At(i, j)
		}
	}
	phi := max(correlation(residual, basis), l.phi)
	phi = wary(phi, m, 2)
	return max(variance*(1+phi)/(1-phi), least), float64(m) * (1 - phi) / (1 + phi)
}

// describe tells what kind of change there is between two others, and where it
// may be: Index and Interval are in blocks.
func (l *lines) describe(first, at, end int, variance float64) Change {
	jump, kink := l.around(first, end, false), l.around(first, end, true)
	c := Change{Kind: LevelChange, Index: at}
	best := jump(at)
	for t := first + 2; t < end-1; t++ {
		// A kink may be some way from the best jump.
		if f := kink(t); f.squares < best.squares {
			c.Kind, c.Index, best = SlopeChange, t, f
		}
	}
	lo, hi := c.Index, c.Index
	for t := first + 2; t < end-1; t++ {
		plausible := false
		if c.Kind == SlopeChange {
			plausible = kink(t).squares-best.squares <= changeReach*variance
		} else {
			plausible = l.cost(first, t)+l.cost(t, end)-l.cost(first, at)-l.cost(at, end) <= changeReach*variance
		}
		if plausible {
			lo, hi = min(lo, t), max(hi, t)
		}
	}
	c.Interval.Lo, c.Interval.Hi = float64(lo), float64(hi)
	c.Before, c.After = best.before, best.after
	return c
}

type changeFit struct{ squares, before, after float64 }

// around fits a line that jumps, or bends, at a block.
func (l *lines) around(first, end int, bends bool) func(at int) changeFit {
	rows := mat.NewDense(end-first, 3, nil)
	weights := make([]float64, end-first)
	for i := range weights {
		weights[i] = l.weight[first+i] * l.weight[first+i]
	}
	return func(at int) changeFit {
		for i := range weights {
			u, after := l.u[first+i]-l.u[at], 0.0
			if first+i >= at {
				after = 1
				if bends {
					after = u
				}
			}
			rows.SetRow(i, []float64{1, u, after})
		}
		beta, ok := leastSquares(rows, l.y[first:end], weights)
		if !ok {
			return changeFit{squares: math.Inf(1)}
		}
		f := changeFit{before: beta[0], after: beta[0] + beta[2]}
		if bends {
			f.before, f.after = beta[1], beta[1]+beta[2]
		}
		for i := range weights {
			row := rows.RawRowView(i)
			r := l.y[first+i] - beta[0] - beta[1]*row[1] - beta[2]*row[2]
			f.squares += weights[i] * r * r
		}
		return f
	}
}
