package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// costPredictor predicts from the fits of the scenario overhead.
type costPredictor struct{}

func (costPredictor) whole(_ *Report, e *experiment.Experiment, asked []Factor) ([]Factor, error) {
	return asked, mustSay(e, asked, sizePath, delayPath)
}

// mustSay is an error where one of these factors varies in the run and is not
// asked for.
func mustSay(e *experiment.Experiment, asked []Factor, paths ...string) error {
	for _, path := range paths {
		if levels := e.Levels(path); len(levels) > 1 && asking(asked, path) == nil {
			return fmt.Errorf("%s varies in this run (%s): say with --set which to predict for", path, levelWords(levels))
		}
	}
	return nil
}

func (costPredictor) models(r *Report, in *input, e *experiment.Experiment) []predictive {
	var all []predictive
	for i := range r.Fits {
		all = append(all, &costPredictive{r: r, f: &r.Fits[i], in: in, e: e})
	}
	return all
}

// costPredictive is the fit of one operation of one system.
type costPredictive struct {
	r       *Report
	f       *Fit
	in      *input
	e       *experiment.Experiment
	checked *Calibration
}

func (m *costPredictive) what() string { return m.f.task().String() }

func (m *costPredictive) answer(asked []Factor) (Predicted, bool) {
	f := m.f
	if !f.isAsked(asked) {
		return Predicted{}, false
	}
	a := Predicted{System: f.System, What: f.task().String(), Model: costModelName, Unit: "s", Trial: noEstimate, Single: noEstimate, Line: unknown}
	if a.Refused = f.unfit(); a.Refused == "" {
		a.Refused = f.unlike(m.e, asked)
	}
	if a.Refused == "" {
		m.ask(&a, asked)
	}
	a.measure(m.ran(asked), "duration_p50")
	return a, true
}

const costModelName = "A + R·RTT + B·size"

func (m *costPredictive) check() []Calibration { return []Calibration{m.calibration()} }

// calibration is computed once.
func (m *costPredictive) calibration() Calibration {
	if m.checked == nil {
		c := m.r.calibration(m.f)
		m.checked = &c
	}
	return *m.checked
}

func asking(asked []Factor, path string) *Factor {
	for i := range asked {
		if asked[i].Path == path {
			return &asked[i]
		}
	}
	return nil
}

func levelWords(levels []experiment.Factor) string {
	var words []string
	for _, l := range levels {
		words = append(words, Factor(l).Text())
	}
	return list(words)
}

// isAsked reports whether a fit is of the operation and of the connections that
// were asked for, if any were.
func (f *Fit) isAsked(asked []Factor) bool {
	for path, is := range map[string]string{"overhead.operation": f.Operation, "overhead.connections": f.Connections} {
		if want := asking(asked, path); want != nil && want.Value != is {
			return false
		}
	}
	return true
}

// unfit says why a fit must not be used to predict; empty: it may.
func (f *Fit) unfit() string {
	switch {
	case f.model == nil:
		return f.Why
	case !f.tested:
		return "nothing tells whether the model holds: " + f.Why
	case !f.Holds && !f.near():
		return "the model does not hold: " + f.Why
	}
	return ""
}

// unlike says which level that was asked for the fit has nothing about; empty:
// none. Of size and delay the model itself says it.
func (f *Fit) unlike(e *experiment.Experiment, asked []Factor) string {
	for _, a := range asked {
		switch a.Path {
		case sizePath, delayPath, "overhead.operation", "overhead.connections":
			continue
		case "overhead.concurrency":
			if a.Number > 1 {
				return "the fit is of one operation under way at a time"
			}
			continue
		}
		var run []string
		for _, p := range f.residual {
			level, ok := p.trial.Info.Factor(a.Path)
			if all := e.Levels(a.Path); !ok && len(all) > 0 {
				level = Factor(all[0])
			}
			if !slices.Contains(run, level.Text()) {
				run = append(run, level.Text())
			}
		}
		if !slices.Contains(run, a.Text()) {
			return fmt.Sprintf("the model has no term for %s: it can only be what was run, %s", a.Path, list(run))
		}
	}
	return ""
}

// ask asks a fit.
func (m *costPredictive) ask(a *Predicted, asked []Factor) {
	r, f, e := m.r, m.f, m.e
	size, rtt := r.askedSize(e, asked), r.askedRTT(f, e, asked)
	if f.Inline != nil && !f.Inline.whole() && Num(size) < f.From {
		a.Refused = f.Inline.words(f.Operation) + fmt.Sprintf("; the fit is of %s and more", sizeWords(float64(f.From)))
		return
	}
	i := f.model.PredictInterval(rtt, size, 1, Confidence)
	if !i.Bounded() {
		a.Refused = i.Warn
		return
	}
	c := m.calibration()
	if a.Cells, a.Inside = c.Cells, c.Inside; c.unbelievable() {
		a.Refused = fmt.Sprintf("of the %d cells of the run, each predicted from the others, only %d lie in their intervals: the model cannot predict", c.Cells, c.Inside)
		return
	}
	a.Trial = estimateOf(i)
	if one := f.model.PredictSingle(rtt, size, f.singles(m.in), Confidence); one.Bounded() {
		a.Single = estimateOf(one)
	}
	if f.near() {
		a.Note = fmt.Sprintf("the model misses a cell by up to %s, more than trials differ by; the interval has that in it", percent(float64(f.Misfit)))
	}
	a.Line = m.line(asked, size)
	a.cut(false, linkMayBeOff(f.residual[0].trial.Info))
}

// line is the least time that the link allows, as the scenario has it of each trial: the
// round trips before an answer can come, and the bytes at the link's rate, those of a
// write times the expansion at the largest size. Unknown where a trial of the fit has
// none though its link limits it, since it is not known what crossed the link; and where
// the trials were over links of several rates: the middle of these is the rate of none.
func (m *costPredictive) line(asked []Factor, size float64) Num {
	delay, rate := asking(asked, delayPath), asking(asked, "link.rate")
	carries := carriesObject(m.f.Operation)
	var trips, rtts, rates, expansions []float64
	of := map[experiment.BitRate]bool{}
	for _, p := range m.f.residual {
		t := p.trial
		c, link := t.Info, m.r.checks[t.ID]
		if rate != nil && float64(c.plan.Link.Rate) != rate.Number {
			continue
		}
		if of[c.plan.Link.Rate] = true; carries && len(of) > 1 {
			return unknown
		}
		line, ok := t.Metrics["line"]
		if !ok {
			if link.WantRTT > 0 || carries && link.WantRate > 0 {
				return unknown
			}
			continue // its link takes no time for such an operation, and so has no line
		}
		moved, x := 0.0, 1.0
		if carries {
			if e := t.Metrics["expansion"]; e > 1 && t.Metrics["wire_bytes"] >= e*c.size() {
				x = e
			}
			moved = x * c.size()
		}
		bytes := 0.0
		if link.WantRate > 0 && link.Rate > 0 {
			rates, bytes = append(rates, link.Rate/8), moved*8/link.Rate
		}
		if link.WantRTT > 0 && link.RTT > 0 {
			trips, rtts = append(trips, (line-bytes)/link.RTT), append(rtts, link.RTT-2*c.plan.Link.Delay.Seconds())
		}
		if Num(c.size()) == m.f.To {
			expansions = append(expansions, x)
		}
	}
	line := 0.0
	if len(rates) > 0 && carries {
		line = size / middle(rates)
		if len(expansions) > 0 {
			line *= middle(expansions)
		}
	}
	one := float64(0)
	if delay != nil {
		one = delay.Number
	} else if levels := m.e.Levels(delayPath); len(levels) > 0 {
		one = levels[0].Number
	}
	if len(trips) > 0 && one > 0 { // what an answer takes without a delay is the machine's doing
		line += math.Round(middle(trips)) * max(0, 2*one+middle(rtts))
	}
	if !(line > 0) {
		return unknown
	}
	return Num(line)
}

// carriesObject reports whether an operation moves an object, for its load line.
func carriesObject(operation string) bool { return operation != "stat" && operation != "delete" }

// ran are the cells of the run that were asked for, in the fit or not: several where what
// was not asked for tells them apart.
func (m *costPredictive) ran(asked []Factor) []*Cell {
	var found []*Cell
	for _, c := range m.r.cells() {
		if c.overhead() == nil || c.task() != m.f.task() || !c.sequential() && asking(asked, "overhead.concurrency") == nil {
			continue
		}
		if slices.ContainsFunc(asked, func(a Factor) bool {
			have, varies := c.Factor(a.Path)
			if levels := m.e.Levels(a.Path); !varies && len(levels) == 1 {
				have = Factor(levels[0])
			}
			return have.Value != a.Value
		}) {
			continue
		}
		found = append(found, c)
	}
	return found
}

func (r *Report) askedSize(e *experiment.Experiment, asked []Factor) float64 {
	if f := asking(asked, sizePath); f != nil {
		return f.Number
	}
	return e.Levels(sizePath)[0].Number
}

// askedRTT is the round trip as it would be measured: that of the trials with
// this delay, or twice the delay with what the machine was found to add.
func (r *Report) askedRTT(f *Fit, e *experiment.Experiment, asked []Factor) float64 {
	delay := asking(asked, delayPath)
	if delay == nil {
		level := Factor(e.Levels(delayPath)[0])
		delay = &level
	}
	var same, more []float64
	for i, p := range f.residual {
		if p.trial.Info.plan.Link.Delay.Seconds() == delay.Number {
			same = append(same, f.points[i].RTT)
		}
		more = append(more, f.points[i].RTT-2*p.trial.Info.plan.Link.Delay.Seconds())
	}
	if len(same) > 0 {
		return middle(same)
	}
	return max(0, 2*delay.Number+middle(more))
}

const (
	// fewOps is how many operations of a trial are read to learn how single ones
	// differ from its median: enough, and a bound on memory.
	fewOps = 1000
	// sameMedian is how far the median of a trial's operations may lie from what
	// was fitted for them to be the operations that were timed.
	sameMedian = 0.05
)

// singles are the operations of the trials that were fitted, beside what stands
// for them in the fit.
func (f *Fit) singles(in *input) []stats.CostSingle {
	var all []stats.CostSingle
	if in.ops == nil {
		return nil
	}
	for i, p := range f.residual {
		var times []float64
		for op, err := range in.ops(p.trial.ID) {
			if err != nil {
				in.err = err
				return nil
			}
			if op.Outcome == record.OK {
				times = append(times, float64(op.LastByte-op.Start)/1e9)
			}
			if len(times) == fewOps {
				break
			}
		}
		trial := f.points[i].Time
		if len(times) == 0 || math.Abs(middle(times)/trial-1) > sameMedian {
			continue
		}
		for _, t := range times {
			all = append(all, stats.CostSingle{Time: t, Trial: trial})
		}
	}
	return all
}

func (r *Report) calibration(f *Fit) Calibration {
	c := Calibration{System: f.System, What: f.task().String(), Model: costModelName, Unit: "s", Distance: unknown, Held: []HeldOut{}, Refused: f.unfit()}
	if f.model != nil {
		r.holdOut(&c, f)
	}
	if c.Refused == "" && c.unbelievable() {
		c.Refused = "too few of the cells lie in their intervals"
	}
	return c
}

// unbelievable reports whether so few held-out cells lie in their intervals that
// chance does it once in a hundred times.
func (c Calibration) unbelievable() bool {
	return c.Cells > 0 && distuv.Binomial{N: float64(c.Cells), P: Confidence}.CDF(float64(c.Inside)) < 0.01
}

func (r *Report) holdOut(c *Calibration, f *Fit) {
	held, err := stats.HoldOutCost(f.points, Confidence)
	if err != nil {
		c.Refused = strings.TrimPrefix(err.Error(), "cost: ")
		return
	}
	cells := map[int]*Cell{}
	for i, p := range f.residual {
		cells[f.points[i].Cell] = p.trial.Info
	}
	for _, h := range held {
		cell := cells[h.Cell]
		c.hold(HeldOut{Cell: cell.ID, Where: r.placeOf(cell), Trials: h.Trials, Measured: Num(h.Time), Within: h.Inside}, h.Median)
	}
	c.distance()
}

// hold adds a cell with what was predicted for the median over its trials.
func (c *Calibration) hold(x HeldOut, predicted stats.Interval) {
	x.Time = estimateOf(predicted)
	if !predicted.Bounded() {
		x.Time, x.Refused = noEstimate, predicted.Warn
		c.Unasked++
		c.Held = append(c.Held, x)
		return
	}
	c.Cells++
	c.Trials += x.Trials
	c.Within += x.Within
	if x.inside() {
		c.Inside++
	}
	c.Held = append(c.Held, x)
}

// distance is the median over the cells that were predicted.
func (c *Calibration) distance() {
	var all []float64
	for _, h := range c.Held {
		if h.Refused == "" {
			all = append(all, math.Abs(h.off()))
		}
	}
	if len(all) > 0 {
		c.Distance = Num(middle(all))
	}
}
