package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// cellModel has one parameter for each combination of levels that has trials and, with
// blocks, one for each block: a randomised block design (Montgomery §4.1). If each block
// has each combination, the ratio of two combinations is that of the pairs within blocks.
type cellModel struct {
	*linearFit
	cells [][]int // levels in order, the default first if it has trials
}

func (d *design) cellModel(blocked bool) *cellModel {
	m := &cellModel{cells: d.cells()}
	columns := make([][]float64, len(m.cells))
	for k := range columns {
		columns[k] = make([]float64, len(d.obs))
	}
	for i, o := range d.obs {
		k, _ := m.index(o.Levels)
		columns[k][i] = 1
	}
	if blocked {
		columns = append(columns, d.blockColumns()...)
	}
	m.linearFit = fitLinear(columns, d.logs)
	return m
}

// index returns the index of a combination among the cells; false: it has no trial.
func (m *cellModel) index(levels []int) (int, bool) {
	return slices.BinarySearchFunc(m.cells, levels, slices.Compare)
}

// paired returns the model with blocks if all combinations can be compared within blocks, and
// otherwise the one without.
func (d *design) paired() *cellModel {
	if len(d.blocks) > 1 {
		if with := d.cellModel(true); len(with.kept) == len(with.columns) && with.freedom > 0 {
			return with
		}
	}
	return d.cellModel(false)
}

// cell returns the weights of the trials in ln(value) of a combination, averaged over all
// blocks; nil if it has no trial.
func (m *cellModel) cell(levels []int) []float64 {
	k, ok := m.index(levels)
	if !ok {
		return nil
	}
	return m.parameter(k)
}

// lowest returns the combination with the lowest value, the first of equal ones.
func (m *cellModel) lowest() (best []int) {
	least := math.Inf(1)
	for _, levels := range m.cells {
		if v := floats.Dot(m.cell(levels), m.y); v < least-negligible {
			best, least = levels, v
		}
	}
	return best
}

// difference returns the difference of two weights.
func difference(a, b []float64) []float64 {
	return floats.SubTo(make([]float64, len(a)), a, b)
}
