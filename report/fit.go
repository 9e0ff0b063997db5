package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
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
	A           Estimate `json:"a"`      // seconds; round trips included where Rounds is empty
	Rounds      []Rounds `json:"rounds"` // sequential round trips; empty: the round trip did not vary
	B           Estimate `json:"b"`      // seconds per file byte
	Rate        Estimate `json:"rate"`   // 1/B, bytes per second
	Spread      Num      `json:"spread"` // of the residuals, relative
	Holds       bool     `json:"holds"`
	Why         string   `json:"why,omitempty"`
	LineShare   Estimate `json:"line_share"` // 1/B as a share of what the link carries of the file
	Against     *Against `json:"against,omitempty"`
	Inline      *Inline  `json:"inline,omitempty"`

	model    *stats.CostModel // nil: there is none
	tested   bool             // there was something to test the model with
	ownA     bool             // the first of Rounds has a constant part of its own
	residual []residual
}

// Estimate is a number with its interval at the report's confidence.
type Estimate struct {
	Value Num `json:"value"`
	Lo    Num `json:"lo"`
	Hi    Num `json:"hi"`
}

// Rounds are the sequential round trips of one operation for a range of sizes,
// both ends included.
type Rounds struct {
	From Num      `json:"from"`
	To   Num      `json:"to"`
	A    Estimate `json:"a"` // seconds: that of all sizes, unless the smallest have their own
	R    Estimate `json:"r"`
}

// Against is an operation's time divided by what the baseline's fit gives for
// the same absolute bytes and round trip: the geometric mean over cells.
type Against struct {
	System    string   `json:"system"`
	Operation string   `json:"operation"` // of the baseline
	N         int      `json:"n"`         // trials
	Ratio     Estimate `json:"ratio"`
	Least     Extreme  `json:"least"`
	Most      Extreme  `json:"most"`
}

// Inline are the sizes whose bytes never cross the link.
type Inline struct {
	Stays Num `json:"stays"` // the largest of them, bytes
	Goes  Num `json:"goes"`  // the smallest size that crosses; unknown: none does
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
func (r *Report) fit(in *input) {
	r.Fits = []Fit{}
	links := map[int64]record.LinkCheck{}
	for _, l := range in.links {
		links[l.Trial] = l
	}
	r.checks = links
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
	f := Fit{System: k.system, Operation: k.operation, Connections: k.connections, Rounds: []Rounds{}, From: unknown, To: unknown,
		A: noEstimate, B: noEstimate, Rate: noEstimate, LineShare: noEstimate, Spread: unknown}
	f.Inline = r.inline(k)
	var trials []*Trial
	late, unchecked := 0, 0
	for i := range r.Trials {
		t := &r.Trials[i]
		if !t.Valid() || !t.Info.sequential() || t.Info.task() != k || f.Inline.holds(t.Info.size()) && f.Inline.Goes.Known() {
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
		return f, false
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
	f.Points, f.Cells = len(points), len(cells)
	m, err := stats.FitCost(points, Confidence)
	if err != nil {
		f.Why = strings.TrimPrefix(err.Error(), "cost: ")
		return f, true
	}
	f.model, f.Holds, f.Why, f.Spread = &m, m.Holds, m.Why, Num(m.Scale)
	f.A, f.B = estimateOf(m.A), estimateOf(m.B)
	f.Rate = inverse(f.B)
	for _, s := range m.Segments {
		if !math.IsNaN(s.R.Mid) {
			f.Rounds = append(f.Rounds, Rounds{Num(s.From), Num(s.To), estimateOf(s.A), estimateOf(s.R)})
		}
		f.ownA = f.ownA || s.OwnA
	}
	parameters := 1 + len(f.Rounds)
	if f.ownA {
		parameters++
	}
	if f.B.Value.Known() {
		parameters++
	}
	// Repeated cells say how far trials differ, further cells whether the model misses them by more.
	f.tested = f.Points > f.Cells && f.Cells > parameters
	if len(f.Rounds) == 0 {
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

// writes are the operations that send a file's bytes to storage nodes.
func writes(operation string) bool {
	switch operation {
	case "put", "put-durable", "put-dir", "update":
		return true
	}
	return false
}

// lineShare is the rate at which a file's bytes move as a share of what the
// link, as measured, can carry of them: its rate, divided for an upload by the
// expansion at the largest size.
func (r *Report) lineShare(f *Fit, trials []*Trial) Estimate {
	var rates, expansions []float64
	for _, t := range trials {
		if l, ok := r.checks[t.ID]; ok && l.WantRate > 0 && l.Rate > 0 {
			rates = append(rates, l.Rate/8)
		}
		if x := t.Metrics["expansion"]; Num(t.Info.size()) == f.To && x > 1 && writes(f.Operation) {
			expansions = append(expansions, x)
		}
	}
	if len(rates) == 0 || !f.Rate.Value.Known() {
		return noEstimate
	}
	line := middle(rates)
	if len(expansions) > 0 {
		line /= middle(expansions)
	}
	return f.Rate.times(1 / line)
}

// equivalent is the baseline's operation that an operation is held against:
// the same, or what moves the same bytes.
func equivalent(operation string) []string {
	if operation != "put" && writes(operation) {
		return []string{operation, "put"}
	}
	return []string{operation}
}

// against compares with the baseline as the study did: with what the baseline
// takes for as many bytes as this system sends to its storage nodes.
func (r *Report) against(f *Fit) *Against {
	if r.Baseline == "" || f.System == r.Baseline || f.model == nil {
		return nil
	}
	var base *Fit
	for _, op := range equivalent(f.Operation) {
		if base = r.fitOf(task{r.Baseline, op, f.Connections}); base != nil {
			break
		}
	}
	// Without round trips in both or in neither, the two models are not of one link.
	if base == nil || (len(base.Rounds) > 0) != (len(f.Rounds) > 0) {
		return nil
	}
	a := &Against{System: r.Baseline, Operation: base.Operation}
	var order []*Cell
	logs := map[*Cell][]float64{}
	for _, p := range f.residual {
		t, rtt, expansion := p.trial, 0.0, 1.0
		if len(f.Rounds) > 0 {
			rtt = r.checks[t.ID].RTT
		}
		if x := t.Metrics["expansion"]; writes(f.Operation) && x > 0 {
			expansion = x
		}
		want := base.model.Predict(rtt, expansion*t.Info.size())
		if !(want > 0) {
			continue
		}
		if logs[t.Info] == nil {
			order = append(order, t.Info)
		}
		logs[t.Info] = append(logs[t.Info], math.Log(t.Metrics["duration_p50"]/want))
		a.N++
	}
	if a.N == 0 {
		return nil
	}
	var groups [][]float64
	for i, c := range order {
		groups = append(groups, logs[c])
		v := Num(math.Exp(middle(logs[c])))
		if i == 0 || v < a.Least.Value {
			a.Least = Extreme{r.placeOf(c), v}
		}
		if i == 0 || v > a.Most.Value {
			a.Most = Extreme{r.placeOf(c), v}
		}
	}
	value, lo, hi := pooledRatio(groups, r.Run.Seed)
	a.Ratio = Estimate{Num(value), Num(lo), Num(hi)}
	return a
}

// placeOf says a cell's size and round trip, what a fit is over.
func (r *Report) placeOf(c *Cell) string {
	s := ""
	if f, ok := c.factor("data.size"); ok {
		s = f.Text()
	}
	if f, ok := c.factor("link.delay"); ok {
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

// An operation that ended sooner than this share of its round trip waited for
// no answer; and fewer bytes than these on the link are the noise of
// connections that stay open.
const (
	noRound   = 0.5
	idleBytes = 128
)

// leastRTT is the shortest round trip, in seconds, that shows whether one was
// waited for.
const leastRTT = 0.004

// inline finds the sizes of an upload whose bytes never cross the link: at the
// longest round trip, where waiting for one shows best, it ended sooner than
// that allows, and the link carried nothing to speak of. Nil: there are none, or
// it cannot be told.
func (r *Report) inline(k task) *Inline {
	if !writes(k.operation) {
		return nil
	}
	stays := map[float64]bool{} // by size; false: its bytes cross
	longest := map[float64]float64{}
	for _, c := range r.cells() {
		m, ok := c.Metrics["duration_p50"]
		if !c.sequential() || c.task() != k || !ok {
			continue
		}
		rtt := r.roundTrip(c)
		if rtt < max(leastRTT, longest[c.size()]) {
			continue
		}
		w, measured := c.Metrics["wire_bytes"]
		crossed := measured && float64(w.Median) > max(idleBytes, c.size()/2)
		longest[c.size()], stays[c.size()] = rtt, float64(m.Median) < noRound*rtt && !crossed
	}
	in := &Inline{unknown, unknown}
	sizes := make([]float64, 0, len(stays))
	for s := range stays {
		sizes = append(sizes, s)
	}
	slices.Sort(sizes)
	for _, s := range sizes {
		if !stays[s] {
			in.Goes = Num(s)
			break
		}
		in.Stays = Num(s)
	}
	if !in.Stays.Known() {
		return nil
	}
	return in
}

// holds reports whether a size's bytes stay with the client.
func (in *Inline) holds(size float64) bool { return in != nil && Num(size) <= in.Stays }

func (in *Inline) words() string {
	if !in.Goes.Known() {
		return "No object crosses the link while it is stored, up to the largest of " + sizeWords(float64(in.Stays)) + ": what is timed is local"
	}
	return fmt.Sprintf("Objects up to %s never leave the client (measured: %s stays, %s goes)", sizeWords(float64(in.Stays)), sizeWords(float64(in.Stays)), sizeWords(float64(in.Goes)))
}

// sizeWords prints a size that was asked for, to the byte where it is small.
func sizeWords(v float64) string {
	if v < 1e4 {
		return count(int64(v)) + " B"
	}
	return exact(v, "B")
}
