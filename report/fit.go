package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Fit is what an operation of a system costs, t = A + R·RTT + B·size, over the
// valid trials of its cells with one operation under way at a time. Numbers that
// the data do not tell are unknown; Why says why.
type Fit struct {
	System      string   `json:"system"`
	Operation   string   `json:"operation"`
	Connections string   `json:"connections"`
	Points      int      `json:"points"` // valid trials
	Cells       int      `json:"cells"`
	From        Num      `json:"from"`   // file bytes: the smallest size fitted
	To          Num      `json:"to"`     // the largest
	A           Estimate `json:"a"`      // seconds; round trips included where Rounds is unknown
	Rounds      Estimate `json:"rounds"` // sequential round trips; unknown: the round trip did not vary
	B           Estimate `json:"b"`      // seconds per file byte
	Rate        Estimate `json:"rate"`   // 1/B, bytes per second
	Spread      Num      `json:"spread"` // of the residuals, relative
	Misfit      Num      `json:"misfit"` // the largest median residual of a cell, without its sign
	Holds       bool     `json:"holds"`
	Why         string   `json:"why,omitempty"`
	LineShare   Estimate `json:"line_share"` // 1/B as a share of what the link carries of the file
	Against     *Against `json:"against,omitempty"`
	Inline      *Inline  `json:"inline,omitempty"`

	model    *stats.CostModel // nil: there is none
	tested   bool             // there was something to test the model with
	residual []residual
	points   []stats.CostPoint // what was fitted, in the order of residual
}

// Estimate is a number with its interval at the report's confidence.
type Estimate struct {
	Value Num `json:"value"`
	Lo    Num `json:"lo"`
	Hi    Num `json:"hi"`
}

// residual is a trial's place in a figure of residuals.
type residual struct {
	trial *Trial
	value float64 // time / model − 1
}

var noEstimate = Estimate{unknown, unknown, unknown}

func estimateOf(i stats.Interval) Estimate {
	e := Estimate{Num(i.Mid), Num(i.Lo), Num(i.Hi)}
	if !i.Bounded() {
		e.Lo, e.Hi = unknown, unknown
	}
	return e
}

// task is what is fitted: one operation of one system.
type task struct{ system, operation, connections string }

func (k task) String() string { return k.operation + ", connections " + k.connections }

// overhead are the settings of a cell, nil in a plan of another scenario.
func (c *Cell) overhead() *experiment.ResolvedOverhead { return c.plan.Overhead }

func (c *Cell) size() float64 { return float64(c.plan.Data.Size) }

func (c *Cell) task() task {
	return task{c.System, c.overhead().Operation, c.overhead().Connections}
}

// sequential reports whether a cell's times are those of single operations.
func (c *Cell) sequential() bool {
	o := c.overhead()
	return o != nil && o.Concurrency <= 1 && o.Operation != "fill"
}

// fit fits every operation of every system, then compares it with the baseline.
func (r *Report) fit() {
	r.Fits = []Fit{}
	var tasks []task
	for _, c := range r.cells() {
		if c.sequential() && !slices.Contains(tasks, c.task()) {
			tasks = append(tasks, c.task())
		}
	}
	r.sortTasks(tasks)
	for _, k := range tasks {
		if f, ok := r.fitTask(k); ok {
			r.Fits = append(r.Fits, f)
		}
	}
	for i := range r.Fits {
		r.Fits[i].Against = r.against(&r.Fits[i])
	}
}

// sortTasks orders by operation as in the plan, then connections, then system.
func (r *Report) sortTasks(tasks []task) {
	var operations []string
	for _, k := range tasks {
		if !slices.Contains(operations, k.operation) {
			operations = append(operations, k.operation)
		}
	}
	system := func(name string) int {
		return slices.IndexFunc(r.Systems, func(s System) bool { return s.Name == name })
	}
	slices.SortStableFunc(tasks, func(a, b task) int {
		return cmp.Or(cmp.Compare(slices.Index(operations, a.operation), slices.Index(operations, b.operation)),
			-cmp.Compare(a.connections, b.connections), cmp.Compare(system(a.system), system(b.system)))
	})
}

func (r *Report) fitTask(k task) (Fit, bool) {
	f := Fit{System: k.system, Operation: k.operation, Connections: k.connections, Rounds: noEstimate, From: unknown, To: unknown,
		A: noEstimate, B: noEstimate, Rate: noEstimate, LineShare: noEstimate, Spread: unknown, Misfit: unknown}
	f.Inline = r.inlines[k]
	var trials []*Trial
	late, unchecked := 0, 0
	for i := range r.Trials {
		t := &r.Trials[i]
		if !t.Valid() || !t.Info.sequential() || t.Info.task() != k || f.Inline.holds(t.Info.size()) && !f.Inline.whole() {
			continue
		}
		if x, ok := t.Metrics["duration_p50"]; !ok || !(x > 0) || math.IsInf(x, 0) {
			if censoredAway("duration_p50", t.Trial) {
				late++
			}
			continue
		}
		trials = append(trials, t)
		if _, ok := r.checks[t.ID]; !ok {
			unchecked++
		}
	}
	if len(trials)+late == 0 {
		f.Why = "only sizes that do not cross the link have valid trials"
		return f, f.Inline != nil
	}
	if unchecked < len(trials) {
		trials = slices.DeleteFunc(trials, func(t *Trial) bool { _, ok := r.checks[t.ID]; return !ok })
	} else {
		unchecked = 0 // no link was measured at all: the round trip is left out
	}
	cells := map[string]int{}
	var points []stats.CostPoint
	for _, t := range trials {
		if _, ok := cells[t.Cell]; !ok {
			cells[t.Cell] = len(cells)
		}
		p := stats.CostPoint{RTT: r.checks[t.ID].RTT, Size: t.Info.size(), Time: t.Metrics["duration_p50"], Cell: cells[t.Cell]}
		points = append(points, p)
		f.From, f.To = least(f.From, p.Size), highest(f.To, p.Size)
	}
	f.Points, f.Cells, f.points = len(points), len(cells), points
	m, err := stats.FitCost(points, Confidence)
	if err != nil {
		f.Why = strings.TrimPrefix(err.Error(), "cost: ")
		return f, true
	}
	f.model, f.Holds, f.Why, f.Spread = &m, m.Holds, m.Why, Num(m.Scale)
	f.A, f.Rounds, f.B = estimateOf(m.A), estimateOf(m.R), estimateOf(m.B)
	f.Rate = inverse(f.B)
	parameters := 1
	for _, e := range []Estimate{f.Rounds, f.B} {
		if e.Value.Known() {
			parameters++
		}
	}
	// Repeated cells say how far trials differ, further cells whether the model misses them by more.
	f.tested = f.Points > f.Cells && f.Cells > parameters
	if !f.Rounds.Value.Known() {
		f.also("the round trip did not vary, so A has the round trips in it")
	}
	if !f.B.Value.Known() {
		f.also("the size did not vary, so A has the bytes in it")
	}
	if late > 0 {
		f.also(plural(int64(late), "trial", "trials") + " took longer than the deadline and could not be fitted")
	}
	if unchecked > 0 {
		f.also(plural(int64(unchecked), "trial", "trials") + " without a measured round trip could not be fitted")
	}
	for i, t := range trials {
		f.residual = append(f.residual, residual{t, m.Residual[i]})
	}
	f.Misfit = f.worst()
	f.LineShare = r.lineShare(&f, trials)
	if f.LineShare.Lo > 1+EffectFloor {
		f.also("1/B is more than the link carries: these sizes do not tell the time of the bytes from that of the round trips")
	}
	return f, true
}

func (f *Fit) also(why string) {
	if f.Why != "" {
		f.Why += "; "
	}
	f.Why += why
}

func (f *Fit) task() task { return task{f.System, f.Operation, f.Connections} }

// fitOf is the fit of a task; nil when there is no model.
func (r *Report) fitOf(k task) *Fit {
	for i := range r.Fits {
		if f := &r.Fits[i]; f.task() == k && f.model != nil {
			return f
		}
	}
	return nil
}

func least(have Num, v float64) Num {
	if math.IsNaN(v) || have.Known() && Num(v) >= have {
		return have
	}
	return Num(v)
}

// inverse is 1/e; an end that e does not keep from 0 is unknown.
func inverse(e Estimate) Estimate {
	of := func(v Num) Num {
		if !v.Known() || v <= 0 {
			return unknown
		}
		return 1 / v
	}
	return Estimate{of(e.Value), of(e.Hi), of(e.Lo)}
}

func (e Estimate) times(x float64) Estimate {
	return Estimate{e.Value * Num(x), e.Lo * Num(x), e.Hi * Num(x)}
}

// placeOf says a cell's size and round trip, what a fit is over.
func (r *Report) placeOf(c *Cell) string {
	s := ""
	if f, ok := c.Factor("data.size"); ok {
		s = f.Text()
	}
	if f, ok := c.Factor("link.delay"); ok {
		if s != "" {
			s += ", "
		}
		s += "RTT " + exact(2*f.Number, "s")
	}
	return s
}

// roundTrip is the measured round trip of a cell, the median over its valid
// trials; 0 when none was measured.
func (r *Report) roundTrip(c *Cell) float64 {
	var rtts []float64
	for i := range r.Trials {
		t := &r.Trials[i]
		if l, ok := r.checks[t.ID]; ok && t.Info == c && t.Valid() {
			rtts = append(rtts, l.RTT)
		}
	}
	return middle(rtts)
}

// near reports whether a model that was tested and does not hold misses by little.
func (f *Fit) near() bool { return f.tested && !f.Holds && f.Misfit < findings.NearMisfit }

// worst is the largest median residual of a cell.
func (f *Fit) worst() Num {
	cells := map[*Cell][]float64{}
	for _, p := range f.residual {
		cells[p.trial.Info] = append(cells[p.trial.Info], p.value)
	}
	most := unknown
	for _, values := range cells {
		most = highest(most, math.Abs(middle(values)))
	}
	return most
}
