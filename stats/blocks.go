package stats

import (
	"math"
	"math/rand/v2"
)

// Blocks is what repeated measurements of several cells have in common, block by
// block: whether they go up or down from the first block to the last, and whether
// some blocks differ from the others.
type Blocks struct {
	Level []float64 // mean over the cells of the deviations from their own mean; NaN: no cell has the block
	// Change is from the first block to the last by the straight line of least squares
	// through the levels, in the unit of the values.
	Change float64
	// PChange and PDiffer are permutation tests: how often the values of each cell in
	// another order give as large a change, or levels that are as far apart. NaN: there
	// is too little to tell. Levels of a single cell cannot be told from its noise, so
	// PDiffer needs two.
	PChange, PDiffer float64
}

const (
	blockDraws  = 9999 // permutations at most, beside the one that was seen
	enoughDraws = 200  // as many that are as large settle that p is not small (Besag and Clifford 1991)
	leastBlocks = 5    // 2 of 120 orders are monotone: fewer blocks cannot show a change
)

// AskBlocks compares blocks. cells[i][b] is the value of cell i in block b, in
// order of time; NaN: it has none. The seed makes the permutations repeatable.
func AskBlocks(cells [][]float64, seed uint64) Blocks {
	var rows [][]float64 // of cells with two values or more, without their means
	width := 0
	for _, c := range cells {
		sum, n := 0.0, 0
		for _, v := range c {
			if !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		if n < 2 {
			continue
		}
		row := make([]float64, len(c))
		for b, v := range c {
			row[b] = v - sum/float64(n)
		}
		rows, width = append(rows, row), max(width, len(c))
	}
	q := Blocks{Level: levels(rows, width), PChange: math.NaN(), PDiffer: math.NaN()}
	known := 0
	for _, v := range q.Level {
		if !math.IsNaN(v) {
			known++
		}
	}
	q.Change = changeOf(q.Level)
	if known < leastBlocks {
		return q
	}
	change, differ := math.Abs(q.Change)*(1-1e-12), apartOf(q.Level)*(1-1e-12)
	rng := rand.New(rand.NewPCG(seed, 0x626c6f636b))
	changes, differs, draws := 1, 1, 1
	for draws <= blockDraws && min(changes, differs) < enoughDraws {
		draws++
		for _, row := range rows {
			shuffleKnown(row, rng)
		}
		l := levels(rows, width)
		if math.Abs(changeOf(l)) >= change {
			changes++
		}
		if len(rows) == 1 || apartOf(l) >= differ {
			differs++
		}
	}
	q.PChange = float64(changes) / float64(draws)
	if len(rows) > 1 {
		q.PDiffer = float64(differs) / float64(draws)
	}
	return q
}

// levels are the means over rows.
func levels(rows [][]float64, width int) []float64 {
	l := make([]float64, width)
	for b := range l {
		sum, n := 0.0, 0
		for _, row := range rows {
			if b < len(row) && !math.IsNaN(row[b]) {
				sum, n = sum+row[b], n+1
			}
		}
		l[b] = sum / float64(n) // NaN: none
	}
	return l
}

// changeOf is the change along a straight line from the first level to the last.
func changeOf(l []float64) float64 {
	var sx, sy, n float64
	first, last := -1, 0
	for b, v := range l {
		if math.IsNaN(v) {
			continue
		}
		if first < 0 {
			first = b
		}
		last = b
		sx, sy, n = sx+float64(b), sy+v, n+1
	}
	var xy, xx float64
	for b, v := range l {
		if !math.IsNaN(v) {
			d := float64(b) - sx/n
			xy, xx = xy+d*(v-sy/n), xx+d*d
		}
	}
	if xx == 0 {
		return 0
	}
	return xy / xx * float64(last-first)
}

// apartOf is how far levels lie apart: the sum of their squares.
func apartOf(l []float64) float64 {
	sum := 0.0
	for _, v := range l {
		if !math.IsNaN(v) {
			sum += v * v
		}
	}
	return sum
}

// shuffleKnown puts the values of a row in another order, each in a block that has
// one.
func shuffleKnown(row []float64, rng *rand.Rand) {
	for i := len(row) - 1; i > 0; i-- {
		if math.IsNaN(row[i]) {
			continue
		}
		// Draw among the known up to i.
		j := rng.IntN(i + 1)
		for math.IsNaN(row[j]) {
			j = rng.IntN(i + 1)
		}
		row[i], row[j] = row[j], row[i]
	}
}
