package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/stats"
)

// levelModelName begins the name of a model of what levels of factors do.
const levelModelName = "levels of factors"

// besideLine ends the name of a model of the ratio to the load line.
const besideLine = ", beside the load line"

// levelPredictive predicts a metric of one system from what the levels of the
// factors do to it, in the cells of the run.
type levelPredictive struct {
	r        *Report
	e        *experiment.Experiment
	system   string
	metric   string
	name     string // of the metric, in words
	unit     string
	line     func(*Trial) float64 // the load line; the model is of the ratio to it. nil: of the metric itself
	ofMean   bool                 // the line bounds means: a median may go beyond it, so it is not shown
	factors  []syncFactor
	cells    []*Cell
	without  int // cells left out, since some of their trials never came to it
	model    *stats.LevelModel
	err      error // why there is none
	checked  *Calibration
	lines    []float64 // of each cell, medians over its trials; nil without a line
	nominal  func(c experiment.Cell) float64
	lineOver float64 // the line, over what the settings say it is
}

// levelModel fits what the levels do to a metric of a system's cells.
func (r *Report) levelModel(e *experiment.Experiment, system, metric, name string) *levelPredictive {
	m := &levelPredictive{r: r, e: e, system: system, metric: metric, name: name, factors: r.syncFactors()}
	if d, ok := r.metric(metric); ok {
		m.unit = d.Unit
	}
	m.fit()
	return m
}

// over makes the model one of the ratio to the load line, where every trial has
// that and it is known of any other cell: nominal computes it from settings.
func (m *levelPredictive) over(line func(*Trial) float64, nominal func(c experiment.Cell) float64) *levelPredictive {
	var lines, ratios []float64
	for _, c := range m.cells {
		var own []float64
		for i := range m.r.Trials {
			if t := &m.r.Trials[i]; t.Info == c && t.Valid() {
				if l := line(t); l > 0 {
					own = append(own, l)
				}
			}
		}
		want := nominal(c.plan)
		if len(own) < c.Metrics[m.metric].N || !(want > 0) {
			return m
		}
		lines, ratios = append(lines, middle(own)), append(ratios, middle(own)/want)
	}
	if len(lines) == 0 {
		return m
	}
	slices.Sort(ratios)
	if ratios[len(ratios)-1] > ratios[0]*(1+EffectFloor) {
		return m // the settings do not tell the line
	}
	m.line, m.nominal, m.lines, m.lineOver = line, nominal, lines, middle(ratios)
	m.fit()
	return m
}

func (m *levelPredictive) fit() {
	var factors []stats.LevelFactor
	for i := range m.factors {
		factors = append(factors, m.factors[i].levels())
	}
	m.cells, m.without = nil, 0
	var obs []stats.LevelObs
	for _, c := range m.r.cells() {
		if c.System != m.system || slices.ContainsFunc(m.factors, func(f syncFactor) bool { return f.level(c) < 0 }) {
			continue
		}
		own, whole := m.observed(c, len(m.cells))
		switch {
		case !whole:
			m.without++
		case len(own) > 0:
			m.cells, obs = append(m.cells, c), append(obs, own...)
		}
	}
	if m.model, m.err = stats.FitLevels(factors, obs); m.err != nil {
		m.err = fmt.Errorf("%s of %s: %w", m.name, m.system, m.err)
	}
}

// observed are a cell's valid trials; whole: all of them came to it.
func (m *levelPredictive) observed(c *Cell, id int) (obs []stats.LevelObs, whole bool) {
	var levels []int
	for i := range m.factors {
		levels = append(levels, m.factors[i].level(c))
	}
	for i := range m.r.Trials {
		t := &m.r.Trials[i]
		if t.Info != c || !t.Valid() {
			continue
		}
		v, ok := t.Metrics[m.metric]
		if !ok || !(v > 0) {
			if censoredAway(m.metric, t.Trial) {
				return nil, false
			}
			continue
		}
		if m.line != nil {
			line := m.line(t)
			if !(line > 0) {
				continue
			}
			v /= line
		}
		obs = append(obs, stats.LevelObs{Cell: id, Block: t.Block, Levels: levels, Value: v})
	}
	return obs, true
}

// levels is the factor as the model knows it.
func (f *syncFactor) levels() stats.LevelFactor {
	l := stats.LevelFactor{Name: f.Label}
	unit := ""
	for i := range f.Levels {
		l.Levels = append(l.Levels, f.Levels[i].Text())
		v, u, ok := f.number(i)
		if !ok || i > 0 && (l.Numbers == nil || u != unit) {
			l.Numbers = nil
			unit = "none"
			continue
		}
		unit, l.Numbers = u, append(l.Numbers, v)
	}
	return l
}

// place is what the model is asked: of each factor its number, or the index of
// its level, −1 where there is no such level.
func (m *levelPredictive) place(asked []Factor) []float64 {
	at := make([]float64, len(m.factors))
	for i := range m.factors {
		f, want := &m.factors[i], asking(asked, m.factors[i].Path)
		numbers := f.levels().Numbers
		at[i] = -1
		if want == nil {
			continue
		}
		k := slices.IndexFunc(f.Levels, func(l Factor) bool { return l.Value == want.Value })
		switch {
		case k >= 0 && numbers != nil:
			at[i] = numbers[k]
		case k >= 0 && numbers == nil:
			at[i] = float64(k)
		case numbers != nil:
			one := syncFactor{Levels: []Factor{*want}}
			if v, _, ok := one.number(0); ok {
				at[i] = v
			}
		}
	}
	return at
}

func (m *levelPredictive) what() string { return m.name }

func (m *levelPredictive) answer(asked []Factor) (Predicted, bool) {
	a := Predicted{System: m.system, What: m.name, Model: m.modelName(), Unit: m.unit, Trial: noEstimate, Single: noEstimate, Line: unknown}
	switch {
	case m.err != nil:
		a.Refused = m.err.Error()
	case m.model.Why != nil:
		a.Refused = m.model.Why.Error()
	default:
		m.ask(&a, asked)
	}
	a.measure(m.ran(asked), m.metric)
	if m.without > 0 {
		a.Note = joined([]string{a.Note, plural(int64(m.without), "cell is not in the model: some of its trials", "cells are not in the model: some of their trials") + " were cut off before this could be measured"})
	}
	return a, true
}

func (m *levelPredictive) modelName() string {
	name := levelModelName
	if m.model != nil && m.model.Smooth {
		name = "power laws of factors"
	}
	if m.line != nil {
		name += besideLine
	}
	return name
}

func (m *levelPredictive) ask(a *Predicted, asked []Factor) {
	if a.Refused = m.fixed(asked); a.Refused != "" {
		return
	}
	i := m.model.Predict(m.place(asked), 1, Confidence)
	if !i.Bounded() {
		a.Refused = i.Warn
		return
	}
	c := m.calibration()
	a.Cells, a.Inside = c.Cells, c.Inside
	if c.Refused != "" {
		a.Refused = c.Refused
		return
	}
	scale := 1.0
	if m.line != nil {
		if scale = m.lineAt(asked); !(scale > 0) {
			a.Refused = "it has no load line, which the model is a ratio to"
			return
		}
	}
	a.Trial = estimateOf(i).times(scale)
	if m.model.Misfit > 0.01 {
		a.Note = fmt.Sprintf("cells miss the model by %s beyond what their repetitions differ by; the interval has that in it", percent(m.model.Misfit))
	}
	if m.line != nil && !m.ofMean {
		a.Line = Num(scale)
		a.cut(m.unit != "s", linkMayBeOff(m.cells[0]))
	}
}

// ran are the cells of the run that were asked for, in the model or not.
func (m *levelPredictive) ran(asked []Factor) (found []*Cell) {
	if m.fixed(asked) != "" {
		return nil
	}
	for _, c := range m.r.cells() {
		if c.System == m.system && !slices.ContainsFunc(c.Factors, func(f Factor) bool {
			want := asking(asked, f.Path)
			return f.Path != "system" && (want == nil || want.Value != f.Value)
		}) {
			found = append(found, c)
		}
	}
	return found
}

// lineAt is the load line of what is asked for: its settings', with what the
// lines of the run's cells were found to be beside theirs.
func (m *levelPredictive) lineAt(asked []Factor) float64 {
	// A cell that has each level that is a word.
	best, most := m.cells[0], -1
	for _, c := range m.cells {
		same := 0
		for _, f := range c.Factors {
			if want := asking(asked, f.Path); want != nil && want.Value == f.Value {
				same++
			}
		}
		if same > most {
			best, most = c, same
		}
	}
	return m.nominal(withLevels(best.plan, asked)) * m.lineOver
}

// withLevels is a cell with other settings, as far as a load line depends on them.
func withLevels(c experiment.Cell, asked []Factor) experiment.Cell {
	if c.Disseminate != nil {
		d := *c.Disseminate
		c.Disseminate = &d
	}
	if c.Retrieve != nil {
		q := *c.Retrieve
		c.Retrieve = &q
	}
	for _, f := range asked {
		switch v := f.Number; f.Path {
		case "link.rate":
			c.Link.Rate = experiment.BitRate(v)
		case delayPath:
			c.Link.Delay = experiment.Duration(v * 1e9)
		case sizePath:
			c.Data.Size = experiment.Bytes(v)
		case nodesPath:
			c.Disseminate.Nodes = int(v)
		case seedersPath:
			c.Disseminate.Seeders = int(v)
		case "disseminate.up":
			c.Disseminate.Up = experiment.BitRate(v)
		case "disseminate.slow":
			c.Disseminate.Slow = experiment.Fraction(v)
		case "disseminate.slow_up":
			c.Disseminate.SlowUp = experiment.BitRate(v)
		case "disseminate.slow_down":
			c.Disseminate.SlowDown = experiment.BitRate(v)
		case concurrencyPath:
			c.Retrieve.Concurrency = int(v)
		case "retrieve.range":
			c.Retrieve.Range = experiment.RangeSize(v)
		}
	}
	return c
}

const concurrencyPath = "retrieve.concurrency"

func (m *levelPredictive) check() []Calibration { return []Calibration{m.calibration()} }

func (m *levelPredictive) calibration() Calibration {
	if m.checked != nil {
		return *m.checked
	}
	c := Calibration{System: m.system, What: m.name, Model: m.modelName(), Unit: m.unit, Distance: unknown, Held: []HeldOut{}}
	switch {
	case m.err != nil:
		c.Refused = m.err.Error()
	case m.model.Why != nil:
		c.Refused = m.model.Why.Error()
	default:
		for _, h := range m.model.HoldOut(Confidence) {
			cell, scale := m.cells[h.Cell], 1.0
			if m.line != nil {
				scale = m.lines[h.Cell]
				if s := cell.Metrics[m.metric]; s.Median.Known() { // the median that all else tells, and not that of ratios
					scale = float64(s.Median) / h.Value
				}
			}
			h.Median.Mid, h.Median.Lo, h.Median.Hi = h.Median.Mid*scale, h.Median.Lo*scale, h.Median.Hi*scale
			c.hold(HeldOut{Cell: cell.ID, Where: m.where(cell), Trials: h.Trials, Measured: Num(h.Value * scale), Within: h.Inside}, h.Median)
		}
		c.distance()
		c.believe()
	}
	m.checked = &c
	return c
}

// believe refuses a model whose held-out cells speak against it, or that has none.
func (c *Calibration) believe() {
	switch {
	case c.Cells == 0:
		c.Refused = "no cell can be predicted from the others, so nothing shows that the model can"
	case c.unbelievable():
		c.Refused = fmt.Sprintf("of the %d cells of the run, each predicted from the others, only %d lie in their intervals: the model cannot predict", c.Cells, c.Inside)
	}
}

// where is a cell in a few words.
func (m *levelPredictive) where(c *Cell) string {
	var words []string
	for _, f := range c.Factors {
		if f.Path != "system" {
			words = append(words, f.Label+" "+f.Text())
		}
	}
	return strings.Join(words, ", ")
}

// fixed says which level is asked for of a factor that is the same in all cells,
// at another level: no model has it. Empty: none.
func (m *levelPredictive) fixed(asked []Factor) string {
	for _, a := range asked {
		if slices.ContainsFunc(m.factors, func(f syncFactor) bool { return f.Path == a.Path }) {
			continue
		}
		levels := m.e.Levels(a.Path)
		if len(levels) == 1 && levels[0].Value == a.Value {
			continue
		}
		had := "its default"
		if len(levels) > 0 {
			had = levelWords(levels)
		}
		return fmt.Sprintf("%s did not vary in this run (it was %s), so nothing tells what %s does", a.Path, had, a.Text())
	}
	return ""
}
