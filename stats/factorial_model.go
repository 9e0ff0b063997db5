package stats

import (
	"math"
	"slices"
)

// factorModel is the model of [Factorial]. Its columns sum to 0 over the levels of each
// factor, so that a main effect is an average over all combinations of the others.
type factorModel struct {
	*linearFit
	*design
	blocked bool
	at      map[string]int // first column of a term
}

// model returns a model with blocks, unless they would cost a main effect or all degrees
// of freedom.
func (d *design) model() *factorModel {
	if len(d.blocks) > 1 {
		with, without := d.modelWith(true), d.modelWith(false)
		if with.estimated() == without.estimated() && (with.freedom > 0 || without.freedom == 0) {
			return with
		}
		return without
	}
	return d.modelWith(false)
}

// estimated counts the main effects that are not confounded with others.
func (m *factorModel) estimated() int {
	n := 0
	for _, e := range m.effects() {
		c := m.combine(e.Factors, e.Levels)
		if len(e.Factors) == 1 && c != nil && !m.confounded(c, m.weights(c)) {
			n++
		}
	}
	return n
}

func (d *design) modelWith(blocked bool) *factorModel {
	m := &factorModel{design: d, blocked: blocked, at: map[string]int{}}
	var columns [][]float64
	for _, t := range d.terms() {
		m.at[cellKey(t)] = len(columns)
		for _, levels := range t.combinations(d.levels) {
			columns = append(columns, d.column(func(trial int) float64 {
				coded := 1.0
				for i, f := range t {
					coded *= deviation(slices.Index(d.seen[f], d.obs[trial].Levels[f]), levels[i])
				}
				return coded
			}))
		}
		if len(t) == 0 && blocked {
			columns = append(columns, d.blockColumns()...)
		}
	}
	m.linearFit = fitLinear(columns, d.logs)
	return m
}

// levels returns how many levels of a factor have trials.
func (d *design) levels(factor int) int { return len(d.seen[factor]) }

// column returns a column of a model, with a value for each trial.
func (d *design) column(value func(trial int) float64) []float64 {
	column := make([]float64, len(d.obs))
	for i := range column {
		column[i] = value(i)
	}
	return column
}

// blockColumns returns the columns of the blocks.
func (d *design) blockColumns() (all [][]float64) {
	for b := 1; b < len(d.blocks); b++ {
		all = append(all, d.column(func(i int) float64 { return deviation(d.block[i], b) }))
	}
	return all
}

// deviation returns column k of levels in deviation coding, where the levels sum to 0: 1 at
// level k, −1 at the first, 0 at all others.
func deviation(level, k int) float64 {
	switch level {
	case k:
		return 1
	case 0:
		return -1
	}
	return 0
}

// combine returns the linear combination of coefficients that is the effect of levels of one
// factor or two against their levels 0; nil if one of them has no trial.
func (m *factorModel) combine(factors, levels []int) []float64 {
	c := make([]float64, len(m.columns))
	step := make([][]float64, len(factors)) // coded columns of the level minus those of level 0
	for i, f := range factors {
		at := slices.Index(m.seen[f], levels[i])
		if at < 0 || m.seen[f][0] != 0 {
			return nil
		}
		for k := 1; k < len(m.seen[f]); k++ {
			step[i] = append(step[i], deviation(at, k)-deviation(0, k))
		}
	}
	first := m.at[cellKey(factors)]
	for n, columns := range term(factors).combinations(m.levels) {
		c[first+n] = 1
		for i, k := range columns {
			c[first+n] *= step[i][k-1]
		}
	}
	return c
}

// effect estimates an effect.
func (m *factorModel) effect(e FactorialEffect, conf float64) FactorialEffect {
	e.P = math.NaN()
	c := m.combine(e.Factors, e.Levels)
	if c == nil {
		e.Ratio = unbounded(math.NaN(), 0)
		return e
	}
	w := m.weights(c)
	if m.confounded(c, w) {
		e.Ratio = unbounded(math.NaN(), len(m.y))
		return e
	}
	e.Ratio, e.P = m.ratio(w).test(conf)
	return e
}
