package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
)

// retrievePredictor predicts the throughput over the concurrency by the universal
// scalability law, the time of single requests by their cost, and both, where
// these do not apply, by what the levels of the factors do.
type retrievePredictor struct{}

func (retrievePredictor) whole(r *Report, e *experiment.Experiment, asked []Factor) ([]Factor, error) {
	return asked, allSaid(r, e, asked)
}

func (retrievePredictor) models(r *Report, in *input, e *experiment.Experiment) []predictive {
	nominal := r.requestLine()
	line := func(t *Trial) float64 { return t.Metrics["load_line"] }
	// As many requests as are under way are answered in the mean time that they take
	// (Little's law): a median may well be shorter.
	waits := func(c experiment.Cell, line float64) float64 {
		if !(line > 0) {
			return 0
		}
		return float64(c.Retrieve.Concurrency) * requestSize(c) / line
	}
	var all []predictive
	for _, s := range r.Systems {
		if !in.plan.OpenLoop { // else what is offered decides
			levels := r.levelModel(e, s.Name, "throughput", "throughput").over(line, nominal)
			all = append(all, &eitherOf{r.scalingModel(e, s.Name, levels), levels})
		}
		times := r.levelModel(e, s.Name, "duration_p50", "duration").over(
			func(t *Trial) float64 { return waits(t.Info.plan, line(t)) },
			func(c experiment.Cell) float64 { return waits(c, nominal(c)) })
		times.ofMean = true
		all = append(all, &eitherOf{r.requestModel(e, s.Name, times), times})
	}
	return all
}

// requestLine computes the load line of a cell from its settings, with what links
// of this run were found to carry, and to add to a round trip.
func (r *Report) requestLine() func(c experiment.Cell) float64 {
	var carried, added []float64
	for i := range r.Trials {
		l, ok := r.checks[r.Trials[i].ID]
		if !ok {
			continue
		}
		link := r.Trials[i].Info.plan.Link
		added = append(added, l.RTT-2*link.Delay.Seconds())
		if link.Rate > 0 {
			carried = append(carried, l.Rate/float64(link.Rate))
		}
	}
	share, extra := middle(carried), middle(added)
	return func(c experiment.Cell) float64 {
		q := c.Retrieve
		if q == nil || q.Arrivals != nil || !(share > 0) || c.Link.Rate == 0 {
			return 0
		}
		return scenario.LoadLine(q.Concurrency, requestSize(c), float64(c.Link.Rate)*share/8, 2*c.Link.Delay.Seconds()+extra, q.Connections == "fresh")
	}
}

// requestSize is how many bytes a request of a cell asks for.
func requestSize(c experiment.Cell) float64 {
	if c.Retrieve.Range > 0 {
		return float64(c.Retrieve.Range)
	}
	return float64(c.Data.Size)
}

// eitherOf asks one model, and another where that must not answer.
type eitherOf struct{ first, second predictive }

func (m *eitherOf) what() string { return m.second.what() }

func (m *eitherOf) answer(asked []Factor) (Predicted, bool) {
	a, ok := m.first.answer(asked)
	if ok && a.Refused == "" {
		return a, true
	}
	b, _ := m.second.answer(asked) // which has what was measured, even where it refuses
	if b.Refused != "" && ok && a.Refused != b.Refused {
		b.Refused = a.Model + ": " + a.Refused + "; " + b.Model + ": " + b.Refused
	}
	return b, true
}

func (m *eitherOf) check() []Calibration { return append(m.first.check(), m.second.check()...) }

// group is the cells of one system that differ in some factors only.
type group struct {
	cells []*Cell
	words string // what they have in common
}

// groups are the cells of a model by the factors that are not among these.
func (m *levelPredictive) groups(keep func(c *Cell) bool, free ...string) []group {
	var all []group
	at := map[string]int{}
	for _, c := range m.cells {
		if !keep(c) {
			continue
		}
		var words []string
		for _, f := range c.Factors {
			if f.Path != "system" && !slices.Contains(free, f.Path) {
				words = append(words, f.Label+" "+f.Text())
			}
		}
		key := strings.Join(words, ", ")
		i, ok := at[key]
		if !ok {
			i, at[key] = len(all), len(all)
			all = append(all, group{words: key})
		}
		all[i].cells = append(all[i].cells, c)
	}
	return all
}

// isOf reports whether what is asked for differs from the group's cells in the
// free factors only.
func (g *group) isOf(asked []Factor, free ...string) bool {
	for _, f := range g.cells[0].Factors {
		if f.Path == "system" || slices.Contains(free, f.Path) {
			continue
		}
		if want := asking(asked, f.Path); want == nil || want.Value != f.Value {
			return false
		}
	}
	return true
}

// scalingPredictive predicts the throughput over the concurrency, everything else
// being as in cells that were run.
type scalingPredictive struct {
	*levelPredictive // whose cells they are
	groups           []group
	models           []*stats.ThroughputModel
	checked          []Calibration
}

const scalingModelName = "universal scalability law"

func (r *Report) scalingModel(e *experiment.Experiment, system string, all *levelPredictive) *scalingPredictive {
	m := &scalingPredictive{levelPredictive: all}
	m.groups = all.groups(func(*Cell) bool { return true }, concurrencyPath)
	for _, g := range m.groups {
		var loads []stats.Load
		for _, c := range g.cells {
			for i := range r.Trials {
				if t := &r.Trials[i]; t.Info == c && t.Valid() && t.Metrics["throughput"] > 0 {
					loads = append(loads, stats.Load{N: float64(c.plan.Retrieve.Concurrency), X: t.Metrics["throughput"], Block: t.Block})
				}
			}
		}
		model := stats.FitThroughput(loads)
		m.models = append(m.models, model)
		c := Calibration{System: system, What: m.name, Model: scalingModelName, Unit: m.unit, Distance: unknown, Held: []HeldOut{}}
		if g.words != "" {
			c.What += ", " + g.words
		}
		if model.Why != nil {
			c.Refused = strings.TrimPrefix(model.Why.Error(), "scaling: ")
		} else {
			for _, h := range model.HoldOut(Confidence) {
				k := slices.IndexFunc(g.cells, func(c *Cell) bool { return c.plan.Retrieve.Concurrency == h.Cell })
				c.hold(HeldOut{Cell: g.cells[k].ID, Where: m.where(g.cells[k]), Trials: h.Trials, Measured: Num(h.Value), Within: h.Inside}, h.Median)
			}
			c.distance()
			c.believe()
		}
		m.checked = append(m.checked, c)
	}
	return m
}

func (m *scalingPredictive) answer(asked []Factor) (Predicted, bool) {
	a := Predicted{System: m.system, What: m.name, Model: scalingModelName, Unit: m.unit, Trial: noEstimate, Single: noEstimate, Line: unknown}
	if a.Refused = m.fixed(asked); a.Refused != "" {
		return a, true
	}
	for i, g := range m.groups {
		if !g.isOf(asked, concurrencyPath) {
			continue
		}
		c := m.checked[i]
		n := float64(g.cells[0].plan.Retrieve.Concurrency)
		if want := asking(asked, concurrencyPath); want != nil {
			n = want.Number
		}
		a.Cells, a.Inside, a.Refused = c.Cells, c.Inside, c.Refused
		if a.Refused != "" {
			return a, true
		}
		p := m.models[i].Predict(n, 1, Confidence)
		if !p.Bounded() {
			a.Refused = p.Warn
			return a, true
		}
		a.Trial = estimateOf(p)
		if x := m.models[i].Misfit; x > 0.01 {
			a.Note = fmt.Sprintf("levels of concurrency miss the law by %s beyond what their repetitions differ by; the interval has that in it", percent(x))
		}
		if m.nominal != nil {
			a.Line = Num(m.lineAt(asked))
			a.cut(true, linkMayBeOff(g.cells[0]))
		}
		a.measure(m.ran(asked), m.metric)
		return a, true
	}
	a.Refused = "it is of the concurrency alone, everything else as in cells that were run"
	return a, true
}

func (m *scalingPredictive) check() []Calibration { return m.checked }

// requestPredictive predicts the time of a request, one under way at a time, by
// its cost, as the scenario overhead has it.
type requestPredictive struct {
	*levelPredictive
	groups  []group
	models  []*stats.CostModel
	points  [][]stats.CostPoint
	checked []Calibration
}

var requestFree = []string{sizePath, delayPath, "retrieve.range", concurrencyPath}

func (r *Report) requestModel(e *experiment.Experiment, system string, all *levelPredictive) *requestPredictive {
	m := &requestPredictive{levelPredictive: all}
	m.groups = all.groups(func(c *Cell) bool { return c.plan.Retrieve.Concurrency == 1 }, requestFree...)
	for _, g := range m.groups {
		var points []stats.CostPoint
		for k, c := range g.cells {
			for i := range r.Trials {
				t := &r.Trials[i]
				check, ok := r.checks[t.ID]
				if t.Info == c && t.Valid() && ok && t.Metrics[all.metric] > 0 {
					points = append(points, stats.CostPoint{RTT: check.RTT, Size: requestSize(c.plan), Time: t.Metrics[all.metric], Cell: k})
				}
			}
		}
		c := Calibration{System: system, What: m.name + " of one at a time", Model: costModelName, Unit: m.unit, Distance: unknown, Held: []HeldOut{}}
		if g.words != "" {
			c.What += ", " + g.words
		}
		model, why := requestCost(points, len(g.cells))
		if c.Refused = why; why == "" {
			held, err := stats.HoldOutCost(points, Confidence)
			if err != nil {
				c.Refused = err.Error()
			}
			for _, h := range held {
				cell := g.cells[h.Cell]
				c.hold(HeldOut{Cell: cell.ID, Where: m.where(cell), Trials: h.Trials, Measured: Num(h.Time), Within: h.Inside}, h.Median)
			}
			c.distance()
			if c.Refused == "" {
				c.believe()
			}
		}
		m.models, m.points, m.checked = append(m.models, model), append(m.points, points), append(m.checked, c)
	}
	return m
}

// requestCost fits the cost of requests, or says why it must not be asked.
func requestCost(points []stats.CostPoint, cells int) (*stats.CostModel, string) {
	model, err := stats.FitCost(points, Confidence)
	if err != nil {
		return nil, strings.TrimPrefix(err.Error(), "cost: ")
	}
	parameters := 1 + len(model.Segments)
	if len(points) <= cells || cells <= parameters {
		return nil, fmt.Sprintf("%s at a concurrency of 1 for %d numbers: nothing tests the model", plural(int64(cells), "cell", "cells"), parameters)
	}
	if !model.Holds {
		return nil, "the model does not hold: " + model.Why
	}
	return &model, ""
}

func (m *requestPredictive) answer(asked []Factor) (Predicted, bool) {
	a := Predicted{System: m.system, What: m.name, Model: costModelName, Unit: m.unit, Trial: noEstimate, Single: noEstimate, Line: unknown}
	if a.Refused = m.fixed(asked); a.Refused != "" {
		return a, true
	}
	for i, g := range m.groups {
		n := asking(asked, concurrencyPath)
		if !g.isOf(asked, requestFree...) || n != nil && n.Number != 1 {
			continue
		}
		c := m.checked[i]
		if a.Cells, a.Inside, a.Refused = c.Cells, c.Inside, c.Refused; a.Refused != "" {
			return a, true
		}
		cell := withLevels(g.cells[0].plan, asked)
		var extra []float64
		for _, p := range m.points[i] {
			extra = append(extra, p.RTT-2*g.cells[p.Cell].plan.Link.Delay.Seconds())
		}
		p := m.models[i].PredictInterval(max(0, 2*cell.Link.Delay.Seconds()+middle(extra)), requestSize(cell), 1, Confidence)
		if !p.Bounded() {
			a.Refused = p.Warn
			return a, true
		}
		a.Trial = estimateOf(p)
		a.measure(m.ran(asked), m.metric)
		return a, true
	}
	a.Refused = "it is of one request at a time, everything but size and delay as in cells that were run"
	return a, true
}

func (m *requestPredictive) check() []Calibration { return m.checked }
