package analysis

import (
	"errors"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Ruling is the result of a gate for a run.
type Ruling struct {
	Rule  string       `json:"rule"`
	Run   string       `json:"run"` // its directory
	State string       `json:"state"`
	Why   string       `json:"why,omitempty"` // reason, if it was not decided by cells
	Cells []CellRuling `json:"cells"`
}

// CellRuling is the result of a gate for one cell.
type CellRuling struct {
	System string `json:"system"`
	Where  string `json:"where"`
	State  string `json:"state"`
	Range         // of the metric in its unit, or the ratio: each end holds with 95 % confidence
	N      int    `json:"n"` // trials, or pairs of trials
	Why    string `json:"why"`

	Unit string `json:"-"`
	cell *Cell
	one  bool // each cell is one trial by design
}

// States of a ruling.
const (
	GatePass         = "pass"
	GateFail         = "fail"
	GateInconclusive = "inconclusive"
	GateBase         = "needs a base run" // only plimsoll compare can decide it
)

// gateConfidence is the confidence of a two-sided interval whose ends each hold with
// Confidence, because a gate is one-sided.
const gateConfidence = 1 - 2*(1-Confidence)

// successMetrics are shares of successes. They have no effect floor, because a link's tolerance
// does not explain failures.
var successMetrics = []string{"success_rate", "ok_rate"}

// DecideGates decides gates for a run, besides those of its plan.
func (r *Result) DecideGates(rules []string) ([]Ruling, error) {
	return hold(rules, r.gateNames(false),
		func(rule gate.Rule) []Ruling { return []Ruling{r.decide(rule, r.Run.Dir, nil)} })
}

// planGates decides the gates of the plan.
func (r *Result) planGates() (all []Ruling) {
	for _, text := range r.Frame.Plan.Experiment.Gates {
		all = append(all, r.planGate(text, r.Run.Dir, nil))
	}
	return all
}

// planGate decides one gate of the plan; base is nil without a base run. A gate about unknown
// metrics or levels is inconclusive.
func (r *Result) planGate(text, dir string, base *baseCells) Ruling {
	rule, err := gate.Parse(text, r.gateNames(true), EffectFloor)
	var wrong *gate.Error
	switch {
	case errors.As(err, &wrong):
		return Ruling{Rule: text, Run: dir, State: GateInconclusive, Why: wrong.Msg, Cells: []CellRuling{}}
	case rule.Kind == gate.NoWorse && base == nil:
		return Ruling{Rule: text, Run: dir, State: GateBase, Why: "plimsoll compare BASE " + dir + " decides it",
			Cells: []CellRuling{}}
	}
	return r.decide(rule, dir, base)
}

func hold(rules []string, names gate.Names, decide func(gate.Rule) []Ruling) ([]Ruling, error) {
	var parsed []gate.Rule
	for _, text := range rules {
		rule, err := gate.Parse(text, names, EffectFloor)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, rule)
	}
	var all []Ruling
	for _, rule := range parsed {
		rulings := decide(rule)
		if !slices.ContainsFunc(rulings, func(g Ruling) bool { return len(g.Cells) > 0 }) {
			return nil, &gate.Error{Rule: rule.Text, At: 1,
				Msg: "the rule applies to no cell of the new run, so it is never decided",
				Fix: "only the base run has such cells; `What differed` lists them"}
		}
		all = append(all, rulings...)
	}
	return all, nil
}

// gateNames returns what gates for this run may name.
func (r *Result) gateNames(base bool) gate.Names {
	names := r.Frame.Plan.Experiment.GateNames(r.Frame.Plan.Cells)
	names.Metrics, names.Headline, names.Base = GateMetrics(r.Metrics), r.Headline, base
	return names
}

// GateMetrics converts metrics for package gate.
func GateMetrics(metrics []record.Metric) []gate.Metric {
	all := []gate.Metric{} // not nil, which would mean unknown
	for _, m := range metrics {
		all = append(all, gate.Metric{Key: m.Key, Unit: m.Unit, Neither: m.Better == record.Neither,
			Lower: m.Better == record.Lower})
	}
	return all
}

// baseCells are the cells of a base run for gates.
type baseCells struct {
	run  *Result
	of   map[*Cell]*Cell // cell of the new run → cell of the base run
	gone []CellRuling    // for its cells without a counterpart
}

// decide decides a gate cell by cell; base is nil without a base run.
func (r *Result) decide(rule gate.Rule, dir string, base *baseCells) Ruling {
	g := Ruling{Rule: rule.Text, Run: dir, State: GatePass, Cells: []CellRuling{}}
	m, _ := r.Frame.Metric(rule.Metric)
	for _, c := range r.Cells {
		asked, run := c, r
		if rule.Kind == gate.NoWorse {
			b := base.of[c]
			if b == nil {
				continue
			}
			if len(b.Factors) > len(c.Factors) { // a factor does not vary in a run with one level
				asked, run = b, base.run
			}
		}
		if !run.means(asked, rule) {
			continue
		}
		d := CellRuling{System: c.System, Where: r.Frame.Layout.Where(c), State: GateInconclusive, Range: NoRange,
			cell: c, Unit: m.Unit, one: r.View.OneTrial}
		switch rule.Kind {
		case gate.Limit:
			d.limit(r, m, rule)
		case gate.Within:
			d.within(r, m, rule)
		case gate.NoWorse:
			if slices.Contains(r.View.Lasting, m.Key) {
				d.Why = texts().Runs["lasting"]
				break
			}
			d.noWorse(r, base, m, rule)
		}
		g.Cells = append(g.Cells, d)
	}
	if rule.Kind == gate.NoWorse { // cells that were not measured again may have become worse
		for _, d := range base.gone {
			if base.run.means(d.cell, rule) {
				g.Cells = append(g.Cells, d)
			}
		}
	}
	for _, d := range g.Cells {
		g.State = graverState(g.State, d.State)
	}
	if len(g.Cells) == 0 {
		g.State, g.Why = GateInconclusive, "the rule applies to no cell"
	}
	return g
}

// means reports whether a gate applies to a cell. A gate may name a factor that does not vary in
// the run.
func (r *Result) means(c *Cell, rule gate.Rule) bool {
	return rule.AppliesTo(func(path string) string {
		if path == "system" {
			return c.System
		}
		if x, varies := c.Factor(path); varies {
			return x.Value
		}
		return r.settings(c)[path]
	})
}

// limit decides by the interval of the median over valid trials, and for a success rate by that
// of the share of all operations.
func (d *CellRuling) limit(r *Result, m record.Metric, rule gate.Rule) {
	rows := r.Frame.Of(d.cell, m.Key)
	p := r.Frame.polled(d.cell, m)
	var lo, hi float64
	var s Proportion
	ofSuccess := slices.Contains(successMetrics, m.Key)
	if ofSuccess {
		s = r.Frame.success(d.cell, gateConfidence)
		d.N, d.Range = d.cell.Valid, s.Range
		if s.Of == 0 {
			d.because("unfinished", nil)
			return
		}
		lo, hi = float64(s.Lo), float64(s.Hi)
		d.because("share", map[string]any{"OK": s.OK, "Of": s.Of, "One": r.View.Operation[0],
			"Many": r.View.Operation[1], "Trials": int64(d.N)})
		switch {
		case d.N < gate.FewestTrials: // operations of one trial are not independent
			d.Lo, d.Hi = Unknown, Unknown
			d.few()
			return
		case s.OK == s.Of && rule.Op == ">=" && rule.Value >= 1:
			d.because("none-failed", nil)
			return
		}
	} else {
		xs := finite(rows, m)
		i := stats.MedianCI(xs, gateConfidence)
		d.N, d.Value = len(xs), Num(i.Mid)
		d.because("trials", int64(len(xs)))
		d.unsupported(r.Frame.ValidTrials(d.cell), m)
		if len(xs) < gate.FewestTrials {
			d.few()
			return
		}
		lo, hi = i.Lo, i.Hi
		d.Lo, d.Hi = Num(p.lower(lo)), Num(p.upper(hi))
	}
	d.settle(p, p.lower(lo), p.upper(hi), func(lo, hi float64) (pass, fail bool) {
		switch rule.Op {
		case "<":
			return hi < rule.Value, lo >= rule.Value
		case "<=":
			return hi <= rule.Value, lo > rule.Value
		case ">":
			return lo > rule.Value, hi <= rule.Value
		}
		return lo >= rule.Value, hi < rule.Value
	})
	if ofSuccess {
		d.doubt(s, r.View.InTime, func(lo float64) bool {
			return rule.Op[0] == '<' || lo > rule.Value || rule.Op == ">=" && lo == rule.Value
		})
	}
}

// doubt revokes a pass by a success rate if one trial holds most failures, or if the lower bound would
// not be enough had operations failed that the experiment's deadline cut off or the link starved.
func (d *CellRuling) doubt(s Proportion, inTime bool, enough func(lo float64) bool) {
	if s.lumped && d.State == GatePass {
		d.State = GateInconclusive
		d.because("lumped", nil)
	}
	n := d.cell.Outcomes[record.Deadline.String()] + d.cell.Outcomes[record.Starved.String()]
	if d.State != GatePass || n == 0 || inTime {
		return
	}
	if all := float64(s.Of + n); !enough(float64(d.Lo) * float64(s.Of) / all) {
		d.State = GateInconclusive
		d.because("late", map[string]any{"N": n, "Kept": Num(float64(s.OK) / all)})
	}
}

// within decides against another system's cell of the same group, paired by block. Censored
// trials count as worse than all others. If those of the other system are censored, the gate is
// inconclusive.
func (d *CellRuling) within(r *Result, m record.Metric, rule gate.Rule) {
	d.Unit = "×"
	at := slices.IndexFunc(r.Cells, func(c *Cell) bool { return c.System == rule.System && c.Group == d.cell.Group })
	if at < 0 {
		d.because("no-cell", rule.System)
		return
	}
	other := r.Cells[at]
	mine, theirs := r.Frame.Of(d.cell, m.Key), r.Frame.Of(other, m.Key)
	switch {
	case r.View.Alike != nil && !r.View.Alike(r.Frame, m.Key, d.cell, other):
		d.because("unlike", nil)
		return
	case len(mine) == 0:
		d.because("absent", nil)
		d.unsupported(r.Frame.ValidTrials(d.cell), m)
		return
	case len(theirs) == 0:
		d.because("absent-there", rule.System)
		d.unsupported(r.Frame.ValidTrials(other), m)
		return
	case Censored(theirs) > 0:
		d.because("cut-there", rule.System)
		return
	}
	if slices.Contains(successMetrics, m.Key) {
		d.success(r, other, r.Frame, m, rule.Share)
		return
	}
	base := map[int]float64{}
	for _, x := range theirs {
		base[x.Trial.Block] = x.Value
	}
	var logs []float64
	censored := 0
	for _, x := range mine {
		if b, ok := base[x.Trial.Block]; ok && b > 0 && (x.Value >= 0 || x.Censored) {
			logs = append(logs, math.Log(max(0, x.Value)/b))
			if x.Censored {
				censored++
			}
		}
	}
	d.because("pairs", int64(len(logs)))
	p, q := r.Frame.polled(d.cell, m), r.Frame.polled(other, m)
	if censored == 0 {
		i, _ := stats.PairedRatio(logs, gateConfidence)
		d.ratio(i, len(logs), m, rule.Share, p, q)
		return
	}
	i := stats.MedianCI(logs, gateConfidence)
	i.Mid, i.Lo, i.Hi = math.Exp(i.Mid), math.Exp(i.Lo), math.Exp(i.Hi)
	d.because("cut", int64(censored))
	d.ratio(i, len(logs), m, rule.Share, p, q)
}

// noWorse decides against the base run's cell. If half of the new run's trials are censored,
// there is no ratio of medians, and the rank test decides.
func (d *CellRuling) noWorse(r *Result, base *baseCells, m record.Metric, rule gate.Rule) {
	d.Unit = "×"
	other := base.of[d.cell]
	if slices.Contains(successMetrics, m.Key) {
		d.success(r, other, base.run.Frame, m, rule.Share)
		return
	}
	mine, theirs := r.Frame.Of(d.cell, m.Key), base.run.Frame.Of(other, m.Key)
	xs, ys := finite(mine, m), finite(theirs, m)
	n := min(len(xs), len(ys))
	d.sides(len(xs), len(ys))
	if never(mine, theirs) == "new" && n >= gate.FewestTrials {
		d.N = n
		d.because("never", nil)
		if stats.MannWhitney(xs, ys) <= alpha {
			d.State = GateFail
		}
		return
	}
	d.ratio(stats.Ratio(xs, ys, gateConfidence), n, m, rule.Share, r.Frame.polled(d.cell, m),
		base.run.Frame.polled(other, m))
}

// success decides by the ratio of the shares of all operations, as limit does: the median of the trials'
// shares hides failures of a few trials.
func (d *CellRuling) success(r *Result, other *Cell, of *Frame, m record.Metric, share float64) {
	mine, theirs := r.Frame.success(d.cell, gateConfidence), of.success(other, gateConfidence)
	d.sides(d.cell.Valid, other.Valid)
	d.ratio(stats.RatioOf(mine.interval(), theirs.interval()), min(d.cell.Valid, other.Valid), m, share, polledRange{},
		polledRange{})
	d.doubt(mine, r.View.InTime, func(lo float64) bool { return lo >= 1-share })
}

func (d *CellRuling) sides(mine, base int) {
	d.because("sides", map[string]int{"Mine": mine, "Base": base})
}

// ratio decides by the interval of a ratio, which may be worse than 1 by a share; p and base are
// the resolutions of polled times on both sides.
func (d *CellRuling) ratio(i stats.Interval, n int, m record.Metric, share float64, p, base polledRange) {
	d.N, d.Value = n, Num(i.Mid)
	if n < gate.FewestTrials {
		d.few()
		return
	}
	if math.IsNaN(i.Mid) {
		d.Why = i.Warn
		return
	}
	down, up := p.over(base)
	d.Lo, d.Hi = Num(i.Lo*down), Num(i.Hi*up)
	least, most := 1-share, 1+share
	p.resolution = max(p.resolution, base.resolution)
	d.settle(p, i.Lo*down, i.Hi*up, func(lo, hi float64) (pass, fail bool) {
		switch m.Better {
		case record.Higher:
			return lo >= least, hi < least
		case record.Lower:
			return hi <= most, lo > most
		}
		return lo >= least && hi <= most, lo > most || hi < least
	})
}

// settle decides a cell from its interval, widened by the resolution of polled times.
func (d *CellRuling) settle(p polledRange, lo, hi float64, decide func(lo, hi float64) (pass, fail bool)) {
	if p.resolution > 0 {
		d.because("polls", Num(p.resolution))
	}
	switch pass, fail := decide(lo, hi); {
	case pass:
		d.State = GatePass
	case fail:
		d.State = GateFail
	default:
		d.because("in-interval", nil)
	}
}

// few sets the reason that a cell has too few trials, unless it has none, which has other reasons.
func (d *CellRuling) few() {
	switch {
	case d.N > 0 && d.one:
		d.because("one-trial", gate.FewestTrials)
	case d.N > 0:
		d.because("few", gate.FewestTrials)
	}
}

// because adds a reason.
func (d *CellRuling) because(key string, data any) {
	if d.Why != "" {
		d.Why += "; "
	}
	d.Why += Fill(texts().Gate[key], data)
}

// unsupported adds a reason if some trials have too few successful operations for a percentile.
func (d *CellRuling) unsupported(trials []*Trial, m record.Metric) {
	n := 0
	for _, t := range trials {
		if !Supported(m.Key, t.Trial) {
			n++
		}
	}
	if n > 0 {
		d.because("unsupported", map[string]int{"Too": n, "Of": len(trials)})
	}
}

// GateState returns the worst state of gates; empty: none. Gates that need a base run count only if
// there are no others.
func GateState(all []Ruling) (state string) {
	for _, g := range all {
		state = graverState(state, g.State)
	}
	return state
}

func graverState(a, b string) string {
	order := []string{"", GateBase, GatePass, GateInconclusive, GateFail}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// SayGates says which gates fail or are inconclusive, or that all pass; empty without gates.
func SayGates(all []Ruling) string {
	states := map[string]string{}
	var rules []string
	for _, g := range all {
		if states[g.Rule] == "" {
			rules = append(rules, g.Rule)
		}
		states[g.Rule] = graverState(states[g.Rule], g.State)
	}
	of := map[string][]string{}
	for _, rule := range rules {
		of[states[rule]] = append(of[states[rule]], rule)
	}
	return Fill(texts().Gate["all"], map[string]any{"All": len(rules), "Fail": of[GateFail], "Open": of[GateInconclusive],
		"Base": of[GateBase], "Pass": len(of[GatePass])})
}

// gateVerdict puts failed and inconclusive gates at the beginning of a verdict.
func (r *Result) gateVerdict(add func(t Tone, text string)) {
	if r.Run.State == "running" && GateState(r.Gates) != GateFail {
		return // it may still be decided
	}
	if text := SayGates(r.Gates); text != "" {
		tones := map[string]Tone{GateFail: Bad, GateInconclusive: Warn, GatePass: Good, GateBase: Good}
		add(tones[GateState(r.Gates)], text)
	}
}

// Polled says how a metric depends on polls. An event is seen by the first poll after it: it may
// have happened up to the metric "resolution" earlier, in every trial, and more trials do not
// reduce that error.
type Polled struct {
	Between bool     // it is a time between two polls
	Inverse []string // it is proportional to 1 / (first of these times − second)
}

// polledRange is the possible error of a cell's number due to polls.
type polledRange struct {
	resolution float64 // seconds by which the true time may be shorter; 0: exact
	after      float64 // seconds by which it may be longer
	whole      float64 // the number times the time; 0: the number is the time
	at         float64 // the cell's median
}

func (f *Frame) polled(c *Cell, m record.Metric) polledRange {
	how, is := f.View.Polled[m.Key]
	median := func(key string) float64 { return float64(c.Metrics[key].Median) } // 0: none
	p := polledRange{resolution: median("resolution"), at: median(m.Key)}
	if !is || !(p.resolution > 0) {
		return polledRange{}
	}
	if how.Between {
		p.after = p.resolution
	}
	if len(how.Inverse) > 0 {
		time := median(how.Inverse[0])
		if how.Between {
			time -= median(how.Inverse[1])
		}
		if p.whole = p.at * time; !(p.whole > 0) || math.IsInf(p.whole, 0) {
			return polledRange{}
		}
	}
	return p
}

// lower returns the smallest possible true value.
func (p polledRange) lower(v float64) float64 {
	switch {
	case p.resolution == 0, p.whole > 0 && p.after == 0:
		return v
	case p.whole == 0:
		return max(0, v-p.resolution)
	}
	return p.whole / (p.whole/v + p.after)
}

// upper returns the largest possible true value.
func (p polledRange) upper(v float64) float64 {
	if p.whole == 0 {
		return v + p.after
	}
	return p.whole / max(0, p.whole/v-p.resolution)
}

// over returns by which factors the true ratio of p to base may be smaller and larger.
func (p polledRange) over(base polledRange) (down, up float64) {
	stretch := func(p polledRange) (down, up float64) {
		if !(p.at > 0) || math.IsInf(p.at, 0) {
			return 1, 1
		}
		return p.lower(p.at) / p.at, p.upper(p.at) / p.at
	}
	down, up = stretch(p)
	below, above := stretch(base)
	return down / above, up / below
}

// whereOptions describe where a system is, not how it works: the same experiment on another
// build differs in them.
var whereOptions = []string{"binary", "port", "url", "urls", "server_url", "bucket", "prefix"}

// settings returns everything that affects a cell's results: the setup of the system, the
// resolved link, data and scenario, and the limits of operations.
func (r *Result) settings(c *Cell) map[string]string {
	all := c.Plan.Settings()
	e := r.Frame.Plan.Experiment
	for _, s := range e.Systems {
		if s.Name != c.System {
			continue
		}
		all["system.use"], all["system.mode"] = s.Use, s.Mode
		for key, v := range s.With {
			if !slices.Contains(whereOptions, key) {
				all["system.with."+key] = v
			}
		}
		for key, v := range s.Override {
			all["system.override."+key] = v
		}
	}
	all["limits.deadline"], all["limits.stall"] = e.Limits.Deadline.String(), e.Limits.Stall.String()
	return all
}
