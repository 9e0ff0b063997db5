package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// cellTrial is one trial in a [cellFit]: its terms are those of its cell.
type cellTrial struct {
	cell, block int
	row         []float64
	log         float64 // ln(value)
}

// cellFit is a linear model of ln(value), with blocks as constants, beside what
// repetitions of cells differ by: what the model misses of a cell is told from
// noise.
type cellFit struct {
	*linearFit
	first   int        // the first column after those of the blocks
	blocks  int        // how many
	pure    *linearFit // a number for each cell
	each    float64    // trials per cell, harmonic mean
	left    int        // degrees of freedom of the misfit
	p       float64    // of no misfit; NaN: not tested
	own     float64    // variance of the misfit
	scatter float64    // variance between blocks
}

func fitCells(trials []cellTrial) *cellFit {
	f := &cellFit{}
	cells, repeated, blocks := map[int]int{}, map[int]float64{}, map[int]int{}
	for _, t := range trials {
		if _, there := cells[t.cell]; !there {
			cells[t.cell] = len(cells)
		}
		repeated[t.cell]++
		if _, there := blocks[t.block]; !there {
			blocks[t.block] = len(blocks)
		}
	}
	f.blocks, f.first = len(blocks), max(len(blocks), 1)
	for _, n := range repeated {
		f.each += 1 / n
	}
	f.each = float64(len(cells)) / f.each
	y := make([]float64, len(trials))
	column := func(of func(t cellTrial) float64) []float64 {
		c := make([]float64, len(trials))
		for i, t := range trials {
			c[i] = of(t)
		}
		return c
	}
	common := [][]float64{column(func(cellTrial) float64 { return 1 })}
	for b := 1; b < f.blocks; b++ {
		common = append(common, column(func(t cellTrial) float64 { return deviation(blocks[t.block], b, f.blocks) }))
	}
	columns, each := common[:f.first:f.first], common[:f.first:f.first]
	for i, t := range trials {
		y[i] = t.log
	}
	for j := range trials[0].row {
		columns = append(columns, column(func(t cellTrial) float64 { return t.row[j] }))
	}
	for k := 1; k < len(cells); k++ {
		each = append(each, column(func(t cellTrial) float64 {
			if cells[t.cell] == k {
				return 1
			}
			return 0
		}))
	}
	f.linearFit, f.pure = fitLinear(columns, y), fitLinear(each, y)
	f.test()
	f.scatter = f.between()
	return f
}

// test compares the model with one number for each cell (the F test of lack of
// fit: Draper and Smith, Applied Regression Analysis, 3rd ed., 1998, §2.1).
func (f *cellFit) test() {
	f.p = math.NaN()
	f.left = f.freedom - f.pure.freedom
	if f.left <= 0 || f.pure.freedom == 0 {
		return
	}
	noise := max(f.noise(), negligible*negligible)
	more := max(f.squares-f.pure.squares, 0) / float64(f.left)
	f.p = distuv.F{D1: float64(f.left), D2: float64(f.pure.freedom)}.Survival(more / noise)
	f.own = max(more-noise, 0) / f.each
}

// noise is the variance of trials of a cell within their blocks.
func (f *cellFit) noise() float64 { return f.pure.squares / float64(f.pure.freedom) }

func (f *cellFit) rejected() bool { return f.p < rejectLevel }

// misfit is the standard deviation, as a share, of what cells miss the model by.
func (f *cellFit) misfit() float64 { return math.Expm1(math.Sqrt(f.own)) }

// between is the variance of what blocks differ by, that of the noise within
// them taken off.
func (f *cellFit) between() float64 {
	if f.blocks < 2 || f.pure.freedom == 0 {
		return 0
	}
	sum, squares, of := 0.0, 0.0, 0.0
	for b := range f.blocks {
		c := make([]float64, len(f.pure.columns))
		for j := 1; j < f.blocks; j++ {
			c[j] = deviation(b, j, f.blocks)
		}
		w := f.pure.weights(c)
		v := dot(w, f.y)
		sum += v
		squares += v * v
		of += dot(w, w) * f.noise()
	}
	n := float64(f.blocks)
	return max((squares-sum*sum/n-of)/(n-1), 0)
}

// reach is how far, on the logarithmic scale, the median of so many trials of a
// cell may lie from its place on the model; elsewhere tells whether they are of
// other blocks. NaN: the trials do not tell. Its variance is the sum of those of
// the parameters, of the misfit of the cell, of its trials and of their blocks,
// each known with degrees of freedom of its own (Satterthwaite 1946).
func (f *cellFit) reach(row []float64, trials int, elsewhere bool, conf float64) float64 {
	w := f.weights(row)
	se, freedom, ok := f.error(w)
	if !ok || f.pure.freedom == 0 {
		return math.NaN()
	}
	sum, spread := 0.0, 0.0
	add := func(variance, freedom float64) {
		sum += variance
		spread += variance * variance / freedom
	}
	pure := float64(f.pure.freedom)
	add(f.noise()*medianVariance(trials), pure)
	// Trials of one cell share its misfit, which does not shrink with their number.
	if f.own > 0 {
		if shared := dot(w, w) * (f.noise() + f.own*f.each); shared > se*se {
			se, freedom = math.Sqrt(shared), float64(f.left)
		}
		add(f.own, float64(f.left))
	}
	add(se*se, freedom)
	if elsewhere && f.blocks > 1 {
		add(f.scatter*(medianVariance(trials)+1/float64(f.blocks)), float64(f.blocks-1))
	}
	if sum == 0 {
		return 0
	}
	return distuv.StudentsT{Sigma: 1, Nu: max(sum*sum/spread, 1)}.Quantile((1+conf)/2) * math.Sqrt(sum)
}

// predict is the value at a row of the columns, blocks excluded from what it is at.
func (f *cellFit) predict(row []float64, trials int, elsewhere bool, conf float64) Interval {
	return f.around(dot(f.weights(row), f.y), f.reach(row, trials, elsewhere, conf), conf)
}

// around is the interval on both sides of a logarithm.
func (f *cellFit) around(mid, reach, conf float64) Interval {
	if math.IsNaN(reach) {
		return unknown(len(f.y), "no trial is left to tell the noise from")
	}
	if reach > math.Log(widest) {
		return unknown(len(f.y), fmt.Sprintf("the interval would reach beyond a factor of %d: the fit says next to nothing here", widest))
	}
	return Interval{Mid: math.Exp(mid), Lo: math.Exp(mid - reach), Hi: math.Exp(mid + reach), Conf: conf, N: len(f.y)}
}
