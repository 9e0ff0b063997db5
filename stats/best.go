package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// BestCell is one combination of levels.
type BestCell struct {
	Levels []int
	Ratio  Interval // to the lowest; its lower end is above 1 if Tied is false
	Tied   bool     // it is not significantly higher than the lowest
}

// Best finds the combination with the lowest value and those that are tied with it: all that are
// not significantly higher than the lowest observed, each tested at 1−conf divided by the number
// of comparisons. The truly lowest is missing from the set only if one of its own comparisons
// errs, so the set contains it with confidence conf, whichever was observed as the lowest
// (multiple comparisons with the best: Gupta 1965; Hsu, Multiple Comparisons, 1996, ch. 4; with
// Bonferroni's correction, because combinations need not have the same noise).
//
// A combination with a single trial is tied with every other. Combinations without trials are
// ignored. The lowest comes first, then the tied ones.
//
// gain compares the lowest with the default: the ratio of their geometric means, within blocks.
// Because the lowest was chosen from the same trials, its interval is at 1−gainConf divided by
// the number of combinations; the estimate is still slightly too optimistic if combinations are
// close to each other. A default without trials has no gain: its N is 0.
//
// It fails like [Factorial].
func Best(factors []FactorialFactor, obs []FactorialObs, conf, gainConf float64) (
	all []BestCell, gain Interval, err error,
) {
	d, err := newDesign(factors, obs)
	if err != nil {
		return nil, gain, err
	}
	m := d.paired()
	lowest := m.lowest()
	others := max(1, len(m.cells)-1)
	trials := map[string]int{}
	for _, o := range d.obs {
		trials[cellKey(o.Levels)]++
	}
	for _, levels := range m.cells {
		c := BestCell{Levels: levels, Ratio: Interval{Mid: 1, Lo: 1, Hi: 1, Conf: conf, N: len(d.obs)}, Tied: true}
		if cellKey(levels) != cellKey(lowest) {
			r := m.ratio(difference(m.cell(levels), m.cell(lowest)))
			c.Ratio = r.interval(conf, (1-conf)/float64(others))
			// This includes the case that nothing was repeated: a single trial contains no
			// information about its noise.
			p := min(1, r.above()*float64(others))
			c.Tied = !(p <= 1-conf) || min(trials[cellKey(levels)], trials[cellKey(lowest)]) < 2
		}
		all = append(all, c)
	}
	// Tied combinations come first, although one with few trials may be higher than one with
	// many that is not tied.
	order := map[bool]int{true: 0, false: 1}
	slices.SortStableFunc(all, func(a, b BestCell) int {
		return cmp.Or(order[a.Tied]-order[b.Tied], cmp.Compare(a.Ratio.Mid, b.Ratio.Mid))
	})
	if from := m.cell(make([]int, len(factors))); from != nil {
		by := m.linearFit
		if by.freedom == 0 { // nothing was repeated: use the model's misfit
			by = d.model().linearFit
		}
		gain = by.ratio(difference(m.cell(lowest), from)).interval(gainConf, (1-gainConf)/2/float64(others))
	}
	return all, gain, nil
}

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
