package stats

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// CostPoint is the time that one trial's operations took.
type CostPoint struct {
	RTT  float64 // seconds, measured
	Size float64 // file bytes of one operation
	Time float64 // seconds of one operation: the trial's median
	Cell int     // equal for trials of the same cell: replicates
	// Block is equal for trials that were run together. A disturbance then affects all cells
	// of a system alike, so the intervals are over blocks.
	Block int
}

// CostModel is t = A + R·RTT + B·size.
type CostModel struct {
	A Interval // seconds
	R Interval // round trips
	B Interval // seconds per byte
	// p-value that cells deviate from the model by chance only; NaN: nothing was repeated, or
	// there are no cells left for a test
	P        float64
	Holds    bool      // P is not significant at 1 %
	Why      string    // why it does not hold, or what limits the fit; may be empty
	Residual []float64 // of each point, relative: time / predicted − 1
	Points   int
}

// Predict returns the model's time in seconds for one operation. A parameter that the
// data did not identify (no interval, NaN) counts as 0: it is included in A, for the
// round trip or size of all measurements. NaN if nothing was fitted.
func (m CostModel) Predict(rtt, size float64) float64 {
	if m.Points == 0 {
		return math.NaN()
	}
	return m.A.Mid + identified(m.R.Mid)*rtt + identified(m.B.Mid)*size
}

func identified(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// FitCost fits t = A + R·RTT + B·size to the times of trials; conf is the
// confidence of the intervals of A, R and B.
//
// Times span six decades and their noise is mostly proportional, so residuals are
// taken relative to the spread of replicates with such a time (see
// docs/methodology.md), and no size dominates. Trials are summarised by cell with an
// M-estimate, and the model is fitted to the cells with an MM-estimate. The intervals
// reflect the misfit between cells (see intervals) and the differences between blocks
// (see blockSpread), so they are wide if the model is wrong. A, R and B may be
// negative: they are not truncated, as the interval must include the truth.
//
// A parameter that is not identifiable has no interval: R if all round trips are the same,
// B if all sizes are; A then includes its part. Times are positive, and a cell has one size.
// It fails for a point without a valid round trip, fewer points than parameters, or sizes that
// vary together with round trips.
func FitCost(points []CostPoint, conf float64) (CostModel, error) {
	if len(points) == 0 {
		return CostModel{}, errors.New("cost: no points to fit")
	}
	cells, noise, err := gatherCells(points)
	if err != nil {
		return CostModel{}, err
	}
	form := costForm{hasR: rttsVary(cells), hasB: cells[0].size != cells[len(cells)-1].size}
	if p := form.parameters(); len(points) < p {
		return CostModel{},
			fmt.Errorf("cost: %d points for the %d parameters of t = A + R·RTT + B·size; more trials are needed",
				len(points), p)
	}
	fit, err := fitForm(form, noise, cells)
	if err != nil {
		return CostModel{}, err
	}
	return fit.model(points, conf), nil
}

// Round trips that differ by no more than this are the same round trip, measured with
// an error: links are accepted within 5 %, and an idle machine's own round trip varies
// by some 10 µs.
const (
	sameRTT         = 0.05   // of the larger
	sameRTTAbsolute = 200e-6 // seconds
)

func rttsVary(cells []costCell) bool {
	least, most := math.Inf(1), 0.0
	for _, c := range cells {
		least, most = min(least, c.rtt), max(most, c.rtt)
	}
	return most-least > max(sameRTT*most, sameRTTAbsolute)
}

// model converts a fit into the result for callers.
func (f *costFit) model(points []CostPoint, conf float64) CostModel {
	m := CostModel{Points: len(points)}
	intervals := f.intervals(conf, points)
	m.A, m.R, m.B = intervals[0], unbounded(math.NaN(), len(points)), unbounded(math.NaN(), len(points))
	if f.form.hasB {
		m.B = intervals[len(intervals)-1]
	}
	if f.form.hasR {
		m.R = intervals[1]
	}
	m.Residual = make([]float64, len(points))
	for i, p := range points {
		m.Residual[i] = p.Time/m.Predict(p.RTT, p.Size) - 1
	}
	m.P = f.lackOfFitP()
	m.Holds, m.Why = f.holds(m.P)
	return m
}

// robustSpread returns the median absolute deviation from 0, as a standard deviation.
func robustSpread(xs []float64) float64 {
	absolute := make([]float64, len(xs))
	for i, x := range xs {
		absolute[i] = math.Abs(x)
	}
	return Median(absolute) / normalQuartile
}

// lackOfFit is the level of the test whether a model holds: one correct model in a
// hundred is rejected.
const lackOfFit = 0.01

// lackOfFitP returns the p-value of the hypothesis that cells deviate from the model by no
// more than replicates differ: the F test of lack of fit against pure error (Draper
// and Smith, Applied Regression Analysis, 3rd ed., 1998, §2.1), with robust locations
// and their robust variance. NaN if nothing was repeated or there are no cells left.
func (f *costFit) lackOfFitP() float64 {
	left := len(f.cells) - len(f.beta)
	if left <= 0 || f.noise.freedom == 0 {
		return math.NaN()
	}
	// If cells have their own variances, a squared residual is not χ² but F with one
	// and ν degrees of freedom: larger, and more variable.
	larger, freedom := 1.0, float64(left)
	if f.noise.unsure > 0 {
		nu := max(2/f.noise.unsure+1, 4.5)
		larger = nu / (nu - 2)
		freedom *= max((nu-4)/(nu-1), 0.125)
	}
	return distuv.F{D1: freedom, D2: float64(f.noise.freedom)}.Survival(f.misfit() * f.misfit() / larger)
}

// misfit returns the root of the residuals' mean square per degree of freedom, in standard
// errors of the cells' locations; 0 without degrees of freedom.
func (f *costFit) misfit() float64 {
	left := len(f.cells) - len(f.beta)
	if left <= 0 {
		return 0
	}
	return math.Sqrt(floats.Dot(f.residual, f.residual) / float64(left))
}

// holds reports whether the model holds, and what the reader must know.
func (f *costFit) holds(p float64) (bool, string) {
	switch {
	case f.noise.freedom == 0:
		return false, "no cell was repeated, so nothing says how far trials may differ from the model"
	case math.IsNaN(p):
		return false, fmt.Sprintf("%d cells for %d parameters: none is left to test the model with", len(f.cells),
			len(f.beta))
	case p >= lackOfFit:
		return true, ""
	}
	size, order := make([]float64, len(f.cells)), make([]int, len(f.cells))
	for g, r := range f.residual {
		size[g] = -math.Abs(r)
	}
	floats.Argsort(size, order)
	var worst []string
	for _, g := range order[:min(3, len(order))] {
		c, relative := f.cells[g], f.noise.time(f.cells[g].at)/f.expectation(g, f.beta)-1
		worst = append(worst, fmt.Sprintf("%s at %.3g ms: %+.1f %%", words.Bytes(c.size), 1e3*c.rtt, 100*relative))
	}
	return false, fmt.Sprintf("cells miss the model by %.2g times as much as repeated trials allow (%s); worst: %s",
		f.misfit(), formatP(p), strings.Join(worst, ", "))
}

func formatP(p float64) string {
	if p < 1e-4 {
		return "p < 0.0001"
	}
	return fmt.Sprintf("p = %.2g", p)
}
