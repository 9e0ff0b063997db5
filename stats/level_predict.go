package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// LevelFactor is one thing that the cells of a [LevelModel] differ in.
type LevelFactor struct {
	Name   string
	Levels []string // what they are called
	// Numbers are the levels as numbers above 0. With three or more, what lies
	// between them may be asked for; nil: they are words.
	Numbers []float64
}

// LevelObs is the result of one trial.
type LevelObs struct {
	Cell   int   // trials of the same cell have the same levels
	Block  int   // trials of the same block were run close to each other in time
	Levels []int // of each factor, by its index
	Value  float64
}

// LevelModel is a multiplicative model of what levels of factors do,
//
//	ln(value) = block + main effects + interactions of two factors + cell + noise,
//
// to ask for combinations that have no trial. A factor whose levels are three or
// more numbers enters by its logarithm (a power law, with a curve from four
// levels on) as long as the cells agree with that, else as levels.
type LevelModel struct {
	Cells, Trials int
	// Why a prediction must not be made at all; nil: it may.
	Why error
	// Smooth reports whether numbers are in the model by their logarithms.
	Smooth bool
	Misfit float64 // standard deviation, as a share, by which cells miss it beyond their noise

	factors []LevelFactor
	obs     []LevelObs
	form    levelForm
	fit     *levelFit
	pure    pureFit
	pairs   *levelFit // with all interactions of two: what can be told at all
}

// levelForm is which terms a model has.
type levelForm struct{ smooth, curved, pairs bool }

const (
	// leastLevels is how many numbers a factor needs for one between them to be
	// asked for: with two, nothing tells a curve from a line.
	leastLevels = 3
	// curveLevels is from how many on a curve is in the model: with three it would
	// go through all of them, and nothing would test it.
	curveLevels = 4
	// leastLeft is how many cells must be left beyond the numbers of a model for it
	// to count as tested.
	leastLeft = 2
	// rejectLevel is the p-value of the test of lack of fit below which a model is
	// taken not to hold.
	rejectLevel = 0.01
	// nearLevelMisfit is the misfit below which a model that is rejected still is a
	// fair description; the misfit is in the interval then.
	nearLevelMisfit = 0.1
)

// FitLevels fits the model. An error: there are no trials, or values without a
// logarithm; that the trials do not support a prediction is in Why.
func FitLevels(factors []LevelFactor, obs []LevelObs) (*LevelModel, error) {
	if len(obs) == 0 {
		return nil, errors.New("no trials")
	}
	cells := map[int]bool{}
	for _, o := range obs {
		if !(o.Value > 0) || math.IsInf(o.Value, 0) {
			return nil, fmt.Errorf("the value %v has no logarithm", o.Value)
		}
		if len(o.Levels) != len(factors) {
			return nil, fmt.Errorf("a trial has %d levels for %d factors", len(o.Levels), len(factors))
		}
		cells[o.Cell] = true
	}
	m := &LevelModel{Cells: len(cells), Trials: len(obs), factors: factors, obs: obs}
	m.pure = fitPure(trialsOf(obs))
	m.pairs = m.fitAs(levelForm{smooth: true, pairs: true}, obs)
	m.Why = m.choose()
	return m, nil
}

// choose takes the first form that is tested and holds, those with more terms
// first: what a term that is not needed costs is some width, what one that is
// needed and missing costs is the truth.
func (m *LevelModel) choose() error {
	if m.Trials == m.Cells {
		return errors.New("no cell has a second trial, so nothing tells how far trials of one differ: repeat")
	}
	var tested *levelFit
	full := false // a form with interactions has a number for each cell
	numbers := slices.ContainsFunc(m.factors, func(f LevelFactor) bool { return len(f.Numbers) >= leastLevels })
	for _, form := range []levelForm{{true, true, true}, {true, false, true}, {true, true, false}, {true, false, false}, {false, false, true}, {false, false, false}} {
		if form.smooth && !numbers {
			continue
		}
		f := m.fitAs(form, m.obs)
		if f.left < leastLeft {
			full = full || form.pairs && len(m.factors) > 1
			continue
		}
		if tested == nil || !form.pairs && tested.rejected() && f.misfit() < tested.misfit() {
			tested = f
		}
		if !f.rejected() || f.misfit() < nearLevelMisfit {
			m.form, m.fit, m.Smooth, m.Misfit = form, f, form.smooth, f.misfit()
			return nil
		}
	}
	if tested == nil {
		of := fmt.Sprintf("%d factors", len(m.factors))
		if len(m.factors) == 1 {
			of = m.factors[0].Name
		}
		return fmt.Errorf("%d cells are too few for a model of %s: none is left to test it with", m.Cells, of)
	}
	m.Misfit = tested.misfit()
	miss := fmt.Sprintf("cells miss it by %.0f %% beyond what their repetitions differ by (%s)", 100*m.Misfit, formatP(tested.p))
	if full {
		return fmt.Errorf("a model without interactions does not hold (%s), and for one with them %d cells are too few: none is left to test it with", miss, m.Cells)
	}
	if len(m.factors) == 1 {
		return fmt.Errorf("no smooth law of %s holds: %s", m.factors[0].Name, miss)
	}
	return fmt.Errorf("no model of these factors holds: %s, so more than two act together or one does not follow a smooth law", miss)
}

// Supports says why the model must not be asked for a place, the value of each
// factor: a number, or the index of a level where a factor has no numbers. nil:
// it may be.
func (m *LevelModel) Supports(at []float64) error {
	if m.Why != nil {
		return m.Why
	}
	for f := range m.factors {
		if err := m.fit.inside(f, at[f]); err != nil {
			return err
		}
	}
	// Interactions that the trials cannot tell may be anything, whether or not the
	// model has them.
	if m.form.smooth || !m.pairs.rowed(at) {
		return m.told(m.pairs, at)
	}
	return m.told(m.fitAs(levelForm{pairs: true}, m.obs), at)
}

func (m *LevelModel) told(f *levelFit, at []float64) error {
	row := f.row(at)
	foreign := f.foreign(row, f.weights(row))
	var names []string
	for _, j := range foreign {
		if name := f.name(j); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("the answer depends on %s, which these trials cannot tell from other effects", strings.Join(names, " and on "))
	}
	return nil
}

// Predict is the value at a place (see [LevelModel.Supports]): the median of so
// many trials, run at another time, lies within the interval at conf. Its parts
// are independent: the error of the parameters, with which cells' misfit comes
// in; the misfit of that cell itself; what trials of one block differ by; and
// what blocks differ by. Where it must not be asked there is no interval, and a
// reason.
func (m *LevelModel) Predict(at []float64, trials int, conf float64) Interval {
	if err := m.Supports(at); err != nil {
		return unknown(m.Trials, err.Error())
	}
	return m.fit.predict(m.fit.row(at), trials, true, conf)
}

// mostHeldOut is how many cells are held out at most: as many as show within a
// few percent how often intervals hold what they should.
const mostHeldOut = 60

// evenly leaves n of some, evenly spread.
func evenly(all []int, n int) []int {
	if len(all) <= n {
		return all
	}
	some := make([]int, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	return some
}

// LevelHeldOut is a cell beside what the model of all others gives for it.
type LevelHeldOut struct {
	Cell   int
	Trials int
	Value  float64  // the median over its trials
	Median Interval // predicted for that; unknown, with the reason, where the others do not support it
	Trial  Interval // predicted for a single trial
	Inside int      // trials that lie in that
}

// HoldOut leaves each cell out in turn, fits the others with the same terms and
// predicts it, in the cells' order; of more than 60 cells, 60 that are evenly spread. Its trials are of the blocks that the others
// are of, so what blocks differ by is not in these intervals.
func (m *LevelModel) HoldOut(conf float64) []LevelHeldOut {
	if m.Why != nil {
		return nil
	}
	byCell := map[int][]LevelObs{}
	var order []int
	for _, o := range m.obs {
		if byCell[o.Cell] == nil {
			order = append(order, o.Cell)
		}
		byCell[o.Cell] = append(byCell[o.Cell], o)
	}
	slices.Sort(order)
	order = evenly(order, mostHeldOut)
	var held []LevelHeldOut
	for _, id := range order {
		own := byCell[id]
		var values []float64
		for _, o := range own {
			values = append(values, o.Value)
		}
		h := LevelHeldOut{Cell: id, Trials: len(own), Value: Median(values)}
		at := m.place(own[0].Levels)
		others := &LevelModel{pure: m.pure.without(trialsOf(m.obs), id), factors: m.factors, form: m.form, obs: slices.DeleteFunc(slices.Clone(m.obs), func(o LevelObs) bool { return o.Cell == id })}
		others.Cells, others.Trials = m.Cells-1, len(others.obs)
		others.fit = others.fitAs(m.form, others.obs)
		// Which terms there are was settled with all cells.
		others.pairs = others.fit
		if err := others.Supports(at); err != nil || others.fit.pure.freedom == 0 {
			reason := "no repetitions are left"
			if err != nil {
				reason = err.Error()
			}
			h.Median = unknown(len(others.obs), reason)
			h.Trial = h.Median
		} else {
			h.Median, h.Trial = others.fit.predict(others.fit.row(at), h.Trials, false, conf), others.fit.predict(others.fit.row(at), 1, false, conf)
		}
		for _, v := range values {
			if h.Trial.Bounded() && h.Trial.Contains(v) {
				h.Inside++
			}
		}
		held = append(held, h)
	}
	return held
}

// levelFit is a form fitted to trials.
type levelFit struct {
	*cellFit
	factors []LevelFactor
	form    levelForm
	seen    [][]int     // levels of each factor that have trials
	middle  []float64   // of the logarithms of each factor's numbers
	terms   []levelTerm // of each column after those of the blocks
}

// levelTerm is a product of one or two parts.
type levelTerm []levelPart

// levelPart is a power of the logarithm of a number, or being at a level.
type levelPart struct{ factor, power, level int }

func (m *LevelModel) fitAs(form levelForm, obs []LevelObs) *levelFit {
	f := &levelFit{factors: m.factors, form: form, seen: make([][]int, len(m.factors)), middle: make([]float64, len(m.factors))}
	for _, o := range obs {
		for k, l := range o.Levels {
			if at, there := slices.BinarySearch(f.seen[k], l); !there {
				f.seen[k] = slices.Insert(f.seen[k], at, l)
			}
		}
	}
	for k := range m.factors {
		if f.smooth(k) {
			for _, l := range f.seen[k] {
				f.middle[k] += math.Log(m.factors[k].Numbers[l]) / float64(len(f.seen[k]))
			}
		}
	}
	f.build()
	trials := trialsOf(obs)
	for i, o := range obs {
		at := m.place(o.Levels)
		for _, t := range f.terms {
			trials[i].row = append(trials[i].row, f.value(t, at))
		}
	}
	f.cellFit = fitCells(trials, m.pure)
	return f
}

func trialsOf(obs []LevelObs) []cellTrial {
	trials := make([]cellTrial, len(obs))
	for i, o := range obs {
		trials[i] = cellTrial{cell: o.Cell, block: o.Block, log: math.Log(o.Value)}
	}
	return trials
}

// place is what a cell's levels are in the terms.
func (m *LevelModel) place(levels []int) []float64 {
	at := make([]float64, len(levels))
	for k, l := range levels {
		at[k] = float64(l)
		if m.factors[k].Numbers != nil {
			at[k] = m.factors[k].Numbers[l]
		}
	}
	return at
}

// smooth reports whether a factor is in the model by its logarithm.
func (f *levelFit) smooth(k int) bool {
	return f.form.smooth && len(f.factors[k].Numbers) >= leastLevels
}

// build makes the terms: those of single factors, then of two.
func (f *levelFit) build() {
	parts := make([][]levelPart, len(f.factors))
	for k := range f.factors {
		if f.smooth(k) {
			parts[k] = []levelPart{{factor: k, power: 1}}
			f.terms = append(f.terms, levelTerm{parts[k][0]})
			if f.form.curved && len(f.seen[k]) >= curveLevels {
				f.terms = append(f.terms, levelTerm{{factor: k, power: 2}})
			}
			continue
		}
		for _, l := range f.seen[k][1:] {
			part := levelPart{factor: k, level: l}
			parts[k] = append(parts[k], part)
			f.terms = append(f.terms, levelTerm{part})
		}
	}
	if !f.form.pairs {
		return
	}
	for k := range parts {
		for l := k + 1; l < len(parts); l++ {
			for _, a := range parts[k] {
				for _, b := range parts[l] {
					f.terms = append(f.terms, levelTerm{a, b})
				}
			}
		}
	}
}

// value of a term at a place.
func (f *levelFit) value(t levelTerm, at []float64) float64 {
	v := 1.0
	for _, p := range t {
		switch {
		case p.power > 0:
			v *= math.Pow(math.Log(at[p.factor])-f.middle[p.factor], float64(p.power))
		case f.level(p.factor, at[p.factor]) != p.level:
			return 0
		}
	}
	return v
}

// level is the index of a factor's level; −1: it is none of them.
func (f *levelFit) level(k int, at float64) int {
	numbers := f.factors[k].Numbers
	if numbers == nil {
		return int(at)
	}
	return slices.IndexFunc(numbers, func(v float64) bool { return sameNumber(v, at) })
}

// sameNumber reports whether two numbers differ by rounding only.
func sameNumber(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// rowed reports whether each factor has a value here that the columns know.
func (f *levelFit) rowed(at []float64) bool {
	for k := range f.factors {
		if !f.smooth(k) && !slices.Contains(f.seen[k], f.level(k, at[k])) {
			return false
		}
	}
	return true
}

// inside says why a factor must not have this value; nil: it may.
func (f *levelFit) inside(k int, at float64) error {
	if slices.Contains(f.seen[k], f.level(k, at)) {
		return nil
	}
	var names []string
	least, most := f.seen[k][0], f.seen[k][0]
	for _, l := range f.seen[k] {
		names = append(names, f.factors[k].Levels[l])
		if f.factors[k].Numbers != nil {
			if f.factors[k].Numbers[l] < f.factors[k].Numbers[least] {
				least = l
			}
			if f.factors[k].Numbers[l] > f.factors[k].Numbers[most] {
				most = l
			}
		}
	}
	numbers := f.factors[k].Numbers
	switch {
	case numbers == nil:
		return fmt.Errorf("a level of %s that has no trial: there are %s", f.factors[k].Name, strings.Join(names, ", "))
	case at < numbers[least] || at > numbers[most]:
		return fmt.Errorf("%s is outside of what was run, %s to %s", f.factors[k].Name, f.factors[k].Levels[least], f.factors[k].Levels[most])
	case len(f.seen[k]) < leastLevels:
		return fmt.Errorf("%s has %d levels (%s): it takes three to tell what lies between them", f.factors[k].Name, len(f.seen[k]), strings.Join(names, ", "))
	case !f.smooth(k):
		return fmt.Errorf("the cells do not follow a smooth law of %s, so only its levels can be asked for: %s", f.factors[k].Name, strings.Join(names, ", "))
	}
	return nil
}

// row is a place in each column, in the mean of all blocks.
func (f *levelFit) row(at []float64) []float64 {
	row := make([]float64, len(f.columns))
	row[0] = 1
	for j, t := range f.terms {
		row[f.first+j] = f.value(t, at)
	}
	return row
}

// name says what a column is of.
func (f *levelFit) name(column int) string {
	switch {
	case column == 0:
		return "the mean of all"
	case column < f.first:
		return "the blocks"
	}
	var names []string
	for _, p := range f.terms[column-f.first] {
		names = append(names, f.factors[p.factor].Name)
	}
	return strings.Join(names, " × ")
}
