package stats

import (
	"fmt"
	"maps"
	"math"
	"slices"

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
	first  int // the first column after those of the blocks
	blocks int // how many
	pure   pureFit
	each   float64 // trials per cell, harmonic mean
	left   int     // degrees of freedom of the misfit
	p      float64 // of no misfit; NaN: not tested
	own    float64 // variance of the misfit
}

// pureFit has a number for each cell and each block: what is left is noise.
type pureFit struct {
	residual []float64 // of each trial
	squares  float64
	freedom  int
	scatter  float64 // variance between blocks, that of the noise taken off
}

// fitCells fits trials, given what is left of them beside their cells.
func fitCells(trials []cellTrial, pure pureFit) *cellFit {
	f := &cellFit{pure: pure}
	repeated, blocks := map[int]float64{}, map[int]int{}
	for _, t := range trials {
		repeated[t.cell]++
		if _, there := blocks[t.block]; !there {
			blocks[t.block] = len(blocks)
		}
	}
	f.blocks, f.first = len(blocks), max(len(blocks), 1)
	for _, c := range slices.Sorted(maps.Keys(repeated)) {
		f.each += 1 / repeated[c]
	}
	f.each = float64(len(repeated)) / f.each
	y := make([]float64, len(trials))
	column := func(of func(t cellTrial) float64) []float64 {
		c := make([]float64, len(trials))
		for i, t := range trials {
			c[i] = of(t)
		}
		return c
	}
	columns := [][]float64{column(func(cellTrial) float64 { return 1 })}
	for b := 1; b < f.blocks; b++ {
		columns = append(columns, column(func(t cellTrial) float64 { return deviation(blocks[t.block], b, f.blocks) }))
	}
	for i, t := range trials {
		y[i] = t.log
	}
	for j := range trials[0].row {
		columns = append(columns, column(func(t cellTrial) float64 { return t.row[j] }))
	}
	f.linearFit = fitLinear(columns, y)
	f.test()
	return f
}

// enoughRounds is how often the means of cells and of blocks are taken off each
// other at most; once is enough where each block has each cell.
const enoughRounds = 500

// fitPure takes off the means of cells and of blocks until none is left.
func fitPure(trials []cellTrial) pureFit {
	f := pureFit{residual: make([]float64, len(trials))}
	cells, blocks := map[int][]int{}, map[int][]int{}
	for i, t := range trials {
		f.residual[i] = t.log
		cells[t.cell], blocks[t.block] = append(cells[t.cell], i), append(blocks[t.block], i)
	}
	// In one order, so that sums are the same each time.
	cellIDs, blockIDs := slices.Sorted(maps.Keys(cells)), slices.Sorted(maps.Keys(blocks))
	effects := map[int]float64{}
	for range enoughRounds {
		most := 0.0
		for _, c := range cellIDs {
			f.level(cells[c])
		}
		for _, b := range blockIDs {
			by := f.level(blocks[b])
			effects[b] += by
			most = max(most, math.Abs(by))
		}
		if most < negligible {
			break
		}
	}
	for _, v := range f.residual {
		f.squares += v * v
	}
	f.freedom = len(trials) - len(cells) - len(blocks) + parts(trials)
	if len(blocks) > 1 && f.freedom > 0 {
		var all []float64
		of := 0.0
		for _, b := range blockIDs {
			all = append(all, effects[b])
			of += f.squares / float64(f.freedom) / float64(len(blocks[b])) / float64(len(blocks))
		}
		f.scatter = max(variance(all)-of, 0)
	}
	return f
}

// level takes the mean of some trials off them.
func (f *pureFit) level(own []int) float64 {
	by := 0.0
	for _, i := range own {
		by += f.residual[i] / float64(len(own))
	}
	for _, i := range own {
		f.residual[i] -= by
	}
	return by
}

// without is the noise of the trials that are not of a cell.
func (f pureFit) without(trials []cellTrial, cell int) pureFit {
	var rest pureFit
	n := 0
	for i, t := range trials {
		if t.cell == cell {
			n++
			continue
		}
		rest.residual = append(rest.residual, f.residual[i])
		rest.squares += f.residual[i] * f.residual[i]
	}
	rest.freedom, rest.scatter = max(f.freedom-max(n-1, 0), 0), f.scatter
	return rest
}

// parts is how many groups of cells there are that have no block in common.
func parts(trials []cellTrial) int {
	group := map[[2]int][2]int{}
	var root func(k [2]int) [2]int
	root = func(k [2]int) [2]int {
		up, there := group[k]
		if !there || up == k {
			group[k] = k
			return k
		}
		return root(up)
	}
	for _, t := range trials {
		group[root([2]int{0, t.cell})] = root([2]int{1, t.block})
	}
	n := 0
	for k, up := range group {
		if k == up {
			n++
		}
	}
	return n
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
		add(f.pure.scatter*(medianVariance(trials)+1/float64(f.blocks)), float64(f.blocks-1))
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
