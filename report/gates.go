package report

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Ruling is what a run says to a rule that it is held to.
type Ruling struct {
	Rule  string       `json:"rule"`
	Run   string       `json:"run"` // its directory
	State string       `json:"state"`
	Goal  bool         `json:"goal,omitempty"` // the scenario's own: it decides no exit status
	Why   string       `json:"why,omitempty"`  // it is not decided by cells
	Cells []CellRuling `json:"cells"`

	metric string
}

// CellRuling is that of one cell.
type CellRuling struct {
	System string `json:"system"`
	Where  string `json:"where"`
	State  string `json:"state"`
	Value  Num    `json:"value"` // of the metric in its unit, or the ratio
	Lo     Num    `json:"lo"`    // each end by itself holds with 95 %
	Hi     Num    `json:"hi"`
	N      int    `json:"n"` // trials, or pairs of trials
	Why    string `json:"why"`

	cell   *Cell
	unit   string
	helps  bool    // of one that cannot be told: more repetitions can tell
	margin float64 // of one that passes: how far the interval stays from the limit, as a share of it
}

// States of a ruling.
const (
	RulePass = "pass"
	RuleFail = "fail"
	RuleOpen = "cannot tell"
	RuleBase = "needs a base run" // it is for plimsoll compare to decide
)

// gateConfidence is that of a two-sided interval whose ends each hold with
// Confidence: a rule asks for one side only.
const gateConfidence = 1 - 2*(1-Confidence)

// fewestForGate is how many trials such an interval needs.
const fewestForGate = gate.FewestTrials

// Hold decides rules over a run, beside those of its plan.
func (r *Report) Hold(rules []string) ([]Ruling, error) {
	return hold(rules, r.gateNames(false), func(rule gate.Rule) []Ruling { return []Ruling{r.rule(rule, r.dir, nil)} })
}

// LeaveGates takes the rules of the plan out of what is told of the run; the
// scenario's goal stays.
func (r *Report) LeaveGates() {
	r.Gates = slices.DeleteFunc(slices.Clone(r.Gates), func(g Ruling) bool { return !g.Goal })
	r.judge()
}

// ownGates decides the rules of the plan, and the goal of the scenario. A rule
// that the run knows nothing of cannot be told.
func (r *Report) ownGates() []Ruling {
	var all []Ruling
	for _, text := range r.held {
		all = append(all, r.ownRule(text, r.dir, nil))
	}
	for _, rule := range r.goalRules() {
		g := r.rule(rule, r.dir, nil)
		g.Goal = true
		all = append(all, g)
	}
	return all
}

// ownRule decides a rule of the run's plan; base is nil where there is no base run.
func (r *Report) ownRule(text, dir string, base *baseCells) Ruling {
	rule, err := gate.Parse(text, r.gateNames(true), EffectFloor)
	var wrong *gate.Error
	switch {
	case errors.As(err, &wrong):
		return Ruling{Rule: text, Run: dir, State: RuleOpen, Why: wrong.Msg, Cells: []CellRuling{}}
	case rule.Kind == gate.NoWorse && base == nil:
		return Ruling{Rule: text, Run: dir, State: RuleBase, Why: "plimsoll compare BASE " + dir + " decides it", Cells: []CellRuling{}, metric: rule.Metric}
	}
	return r.rule(rule, dir, base)
}

// Hold decides rules over each of the new runs, after those of the run's own plan.
func (c *RunComparison) Hold(rules []string) error {
	asked, err := c.asked(rules)
	if err != nil {
		return err
	}
	c.Gates = nil
	for k, r := range c.news {
		for _, text := range r.held {
			if !slices.Contains(rules, text) {
				c.Gates = append(c.Gates, r.ownRule(text, c.New[k].Dir, c.against(k)))
			}
		}
	}
	c.Gates = append(c.Gates, asked...)
	return nil
}

// HoldOnly is Hold without the rules of the runs' own plans.
func (c *RunComparison) HoldOnly(rules []string) (err error) {
	c.Gates, err = c.asked(rules)
	return err
}

func (c *RunComparison) asked(rules []string) ([]Ruling, error) {
	names := c.base.gateNames(true)
	for _, r := range c.news {
		own := r.gateNames(true)
		for path, levels := range own.Levels {
			for _, l := range levels {
				names.AddLevel(path, l)
			}
		}
		names.Cells = append(names.Cells, own.Cells...)
	}
	return hold(rules, names, func(rule gate.Rule) []Ruling {
		var all []Ruling
		for k, r := range c.news {
			all = append(all, r.rule(rule, c.New[k].Dir, c.against(k)))
		}
		return all
	})
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
			return nil, &gate.Error{Rule: rule.Text, At: 1, Width: 1, Msg: "no cell of the new run is meant: such a rule is never decided", Fix: "the base run alone has such cells; `What differed` lists them"}
		}
		all = append(all, rulings...)
	}
	return all, nil
}

// gateNames are what rules over this run may speak of.
func (r *Report) gateNames(base bool) gate.Names {
	names := gate.Names{Metrics: GateMetrics(r.Metrics), Headline: r.headline, Levels: map[string][]string{}, Base: base}
	for _, c := range r.Cells {
		levels := map[string]string{"system": c.System}
		for _, f := range c.Factors {
			names.AddLevel(f.Path, f.Value)
			levels[f.Path] = f.Value
		}
		names.Cells = append(names.Cells, levels)
	}
	return names
}

// GateMetrics are metrics as rules know them.
func GateMetrics(metrics []record.Metric) []gate.Metric {
	all := []gate.Metric{} // not nil: they are known, even when there are none
	for _, m := range metrics {
		all = append(all, gate.Metric{Key: m.Key, Unit: m.Unit, Neither: m.Better == record.Neither, Lower: m.Better == record.Lower})
	}
	return all
}

// baseCells is what rules see of a base run.
type baseCells struct {
	run  *Report
	of   map[*Cell]*Cell // its cell to one of the new run
	gone []CellRuling    // of its cells that are compared with none, and why
}

// against finds the base run's cells to those of a new one.
func (c *RunComparison) against(k int) *baseCells {
	a := &baseCells{run: c.base, of: map[*Cell]*Cell{}}
	compared := map[*Cell]bool{}
	for _, row := range c.Cells {
		if row.news[k] != nil {
			a.of[row.news[k]], compared[row.base] = row.base, true
		}
	}
	for _, b := range c.base.cells() {
		if compared[b] {
			continue
		}
		d := CellRuling{System: b.System, Where: c.base.shape.where(b), State: RuleOpen, Value: unknown, Lo: unknown, Hi: unknown, cell: b, unit: "×", Why: "the new run has no such cell"}
		if slices.ContainsFunc(c.Unlike, func(u UnlikeCell) bool { return u.New == c.New[k].Dir && u.System == d.System && u.Where == d.Where }) {
			d.Why = "its settings differ from the base run's: they are not compared"
		}
		a.gone = append(a.gone, d)
	}
	return a
}

// rule decides a rule cell by cell; base is nil where there is no base run.
func (r *Report) rule(rule gate.Rule, dir string, base *baseCells) Ruling {
	g := Ruling{Rule: rule.Text, Run: dir, State: RulePass, Cells: []CellRuling{}, metric: rule.Metric}
	m, _ := r.metric(rule.Metric)
	for _, c := range r.cells() {
		asked := c
		if rule.Kind == gate.NoWorse {
			b := base.of[c]
			if b == nil {
				continue // what differed says that the base run does not have it
			}
			if len(b.Factors) > len(c.Factors) {
				asked = b // a run of one level does not vary it
			}
		}
		run := r
		if asked != c {
			run = base.run
		}
		if !run.meant(asked, rule) {
			continue
		}
		d := CellRuling{System: c.System, Where: r.shape.where(c), State: RuleOpen, Value: unknown, Lo: unknown, Hi: unknown, cell: c, unit: m.Unit}
		switch rule.Kind {
		case gate.Limit:
			d.limit(r, c, m, rule)
		case gate.Within:
			d.within(r, r.inGroup(rule.System, c.Group), m, rule)
		case gate.NoWorse:
			if r.lasting(m) {
				d.Why = lastingWords
				break
			}
			d.noWorse(c, base.of[c], m, rule)
		}
		g.Cells = append(g.Cells, d)
	}
	if rule.Kind == gate.NoWorse {
		// What was not measured again may have become worse.
		g.Cells = append(g.Cells, slices.DeleteFunc(slices.Clone(base.gone), func(d CellRuling) bool { return !base.run.meant(d.cell, rule) })...)
	}
	for _, d := range g.Cells {
		if d.State == RuleFail || d.State == RuleOpen && g.State == RulePass {
			g.State = d.State
		}
	}
	if len(g.Cells) == 0 {
		g.State, g.Why = RuleOpen, "no cell is meant"
	}
	return g
}

// meant reports whether a rule speaks of a cell.
func (r *Report) meant(c *Cell, rule gate.Rule) bool {
	return rule.Means(func(path string) string { return r.level(c, path) })
}

// level is what a cell has of a factor, also where the run has one level of it and
// does not vary it: a rule over several runs may name it all the same.
func (r *Report) level(c *Cell, path string) string {
	if path == "system" {
		return c.System
	}
	if f, varies := c.Factor(path); varies {
		return f.Value
	}
	return settingWords(path, r.settings(c, r.rawPlan())[path])
}

func (r *Report) inGroup(system, group string) *Cell {
	for _, c := range r.cells() {
		if c.System == system && c.Group == group {
			return c
		}
	}
	return nil
}

// limit decides by the interval of the median over valid trials; a success rate
// by that of the share of all operations, of a load test of all puts.
func (d *CellRuling) limit(r *Report, c *Cell, m record.Metric, rule gate.Rule) {
	lo, hi := 0.0, 0.0
	p, lumped := c.pollBounds(m), false
	if slices.Contains(successMetrics, m.Key) {
		s := c.Success
		if r.swarms == nil && r.syncs == nil {
			var valid []Trial
			for _, t := range r.Trials {
				if t.Info == c && t.Valid() {
					valid = append(valid, t)
				}
			}
			s = successWith(valid, gateConfidence)
		}
		lumped = s.lumped
		d.N, d.Value, d.Lo, d.Hi = c.Valid, s.Value, s.Lo, s.Hi
		if s.Of == 0 {
			d.Why = "no operation of a valid trial finished"
			return
		}
		lo, hi = float64(s.Lo), float64(s.Hi)
		d.Why = fmt.Sprintf("%s of %s in %s", count(s.OK), s.counted(r), plural(int64(c.Valid), "valid trial", "valid trials"))
		if c.Valid < fewestForGate {
			// Operations of a trial share its hour and its daemons: however many there are,
			// they do not say what another trial would give.
			d.Lo, d.Hi = unknown, unknown
			d.few()
			return
		}
		if s.OK == s.Of && rule.Op == ">=" && rule.Value >= 1 {
			d.Why += "; none failed, but that none ever fails cannot be shown: ask for less than 100 %"
			return
		}
	} else {
		xs := c.all(m)
		i := stats.MedianCI(xs, gateConfidence)
		d.N, d.Value = len(xs), Num(i.Mid)
		d.Why = plural(int64(len(xs)), "valid trial", "valid trials") + " with this number" + r.seldom(c, m)
		if len(xs) < fewestForGate {
			d.few()
			return
		}
		lo, hi = i.Lo, i.Hi
		d.Lo, d.Hi = Num(p.lower(lo)), Num(p.upper(hi))
	}
	d.settle(p, lo, hi, p.lower(lo), p.upper(hi), func(lo, hi float64) (pass, fail bool, end float64) {
		switch rule.Op {
		case "<":
			return hi < rule.Value, lo >= rule.Value, hi
		case "<=":
			return hi <= rule.Value, lo > rule.Value, hi
		case ">":
			return lo > rule.Value, hi <= rule.Value, lo
		}
		return lo >= rule.Value, hi < rule.Value, lo
	}, "the limit", rule.Value)
	if slices.Contains(successMetrics, m.Key) && r.swarms == nil && r.syncs == nil {
		if lumped && d.State == RulePass {
			d.State = RuleOpen
			d.Why += "; one trial holds most of the failures, and too few trials say how often such a trial comes"
		}
		d.late(c, rule)
	}
}

// late takes a pass back that operations past the experiment's own deadline, or starved
// by the link, would have undone, had they failed: they are in no success rate, and nobody knows what
// would have become of them.
func (d *CellRuling) late(c *Cell, rule gate.Rule) {
	n, of := c.late(), c.Success.Of
	if d.State != RulePass || n == 0 || rule.Op != ">" && rule.Op != ">=" {
		return
	}
	kept := float64(of) / float64(of+n)
	if least := float64(d.Lo) * kept; least > rule.Value || rule.Op == ">=" && least >= rule.Value {
		return
	}
	d.State, d.helps = RuleOpen, false
	d.Why += fmt.Sprintf("; %s past the deadline or starved, which is no failure: had all failed, it would be %s (limits.deadline, limits.stall)", plural(n, "more ended", "more ended"), percent(float64(d.Value)*kept))
}

// counted says what a success rate counts.
func (p *Proportion) counted(r *Report) string {
	switch {
	case p.puts:
		return plural(p.Of, "attempt to store an object", "attempts to store an object")
	case r.Scenario == "upload": // of an older release
		return plural(p.Of, "operation", "operations") + ", fetches that check what was stored among them,"
	}
	return plural(p.Of, "operation", "operations")
}

// within decides against another system's cell of the same group, paired by
// block. A trial that never came to the number was slower than any: then the
// interval of the median of the pairs' own ratios, which bears infinite ones,
// stands in for that of the ratio of medians. What the other system never came to
// decides nothing: its ratios would be too good.
func (d *CellRuling) within(r *Report, other *Cell, m record.Metric, rule gate.Rule) {
	const what = "block in which both have a valid trial"
	if other == nil {
		d.unit, d.Why = "×", "the run has no such cell of "+rule.System
		return
	}
	xs, beyond := r.byBlock(d.cell, m)
	ys, without := r.byBlock(other, m)
	switch {
	case r.lens.alike != nil && !r.lens.alike(r, m.Key, d.cell, other):
		d.unit, d.Why = "×", "the two do not compare like with like"
		return
	case len(xs) == 0:
		d.unit, d.Why = "×", "no valid trial with this number"+r.seldom(d.cell, m)
		return
	case len(ys) == 0:
		d.unit, d.Why = "×", rule.System+" has no valid trial with this number"+r.seldom(other, m)
		return
	case without > 0:
		d.unit, d.Why = "×", fmt.Sprintf("%s itself never came to it in %d of %s", rule.System, without, plural(int64(len(ys)), "trial", "trials"))
		return
	}
	var logs []float64
	for _, block := range slices.Sorted(maps.Keys(xs)) {
		if base, ok := ys[block]; ok && base > 0 && xs[block] >= 0 {
			logs = append(logs, math.Log(xs[block]/base))
		}
	}
	if beyond == 0 {
		i, _ := stats.PairedRatio(logs, gateConfidence)
		d.ratio(i, len(logs), what, m, rule.Share, d.cell.pollBounds(m), other.pollBounds(m))
		return
	}
	// A ratio that is infinite is as far off as there is, whatever it is.
	i := stats.MedianCI(logs, gateConfidence)
	i.Mid, i.Lo, i.Hi = math.Exp(i.Mid), math.Exp(i.Lo), math.Exp(i.Hi)
	d.ratio(i, len(logs), what, m, rule.Share, d.cell.pollBounds(m), other.pollBounds(m))
	d.Why += fmt.Sprintf("; in %d of %s it never came to it", beyond, plural(int64(len(xs)), "trial", "trials"))
}

// noWorse decides against the base run's cell. Where half of the new run's trials
// never came to the number there is no ratio of medians: it is worse by any share
// where the rank test shows a difference.
func (d *CellRuling) noWorse(c, base *Cell, m record.Metric, rule gate.Rule) {
	const what = "valid trial on either side"
	xs, ys := c.all(m), base.all(m)
	n := min(len(xs), len(ys))
	if never(xs, ys, m) > 0 && n >= fewestForGate {
		d.N, d.unit = n, "×"
		d.Why = plural(int64(n), what, "valid trials on either side") + "; half or more of the new run's trials never came to it"
		if stats.MannWhitney(xs, ys) <= alpha {
			d.State = RuleFail
		}
		d.helps = d.State == RuleOpen
		return
	}
	d.ratio(stats.Ratio(xs, ys, gateConfidence), n, what, m, rule.Share, c.pollBounds(m), base.pollBounds(m))
}

// ratio decides by the interval of a ratio, which may be worse than 1 by a share;
// p and base are what polls let know of its two sides.
func (d *CellRuling) ratio(i stats.Interval, n int, what string, m record.Metric, share float64, p, base pollBounds) {
	d.N, d.Value, d.unit = n, Num(i.Mid), "×"
	d.Why = plural(int64(n), what, strings.Replace(strings.Replace(what, "trial on", "trials on", 1), "block ", "blocks ", 1))
	if n < fewestForGate || math.IsNaN(i.Mid) {
		if n < fewestForGate {
			d.few()
		} else {
			d.Why = i.Warn
		}
		return
	}
	down, up := p.over(base)
	d.Lo, d.Hi = Num(i.Lo*down), Num(i.Hi*up)
	least, most := 1-share, 1+share
	word, limit := "the limit", most
	switch m.Better {
	case record.Higher:
		limit = least
	case record.Neither:
		word = "a limit"
	}
	p.resolution = max(p.resolution, base.resolution)
	d.settle(p, i.Lo, i.Hi, i.Lo*down, i.Hi*up, func(lo, hi float64) (pass, fail bool, end float64) {
		switch m.Better {
		case record.Higher:
			return lo >= least, hi < least, lo
		case record.Lower:
			return hi <= most, lo > most, hi
		}
		return lo >= least && hi <= most, lo > most || hi < least, hi
	}, word, limit)
}

// settle says what follows for a cell from its interval, lo to hi, and from that with
// the resolution of the times in it, low to high: only what holds for this one, too,
// is decided. end is the interval's end that is nearer to the limit when it passes.
func (d *CellRuling) settle(p pollBounds, lo, hi, low, high float64, decide func(lo, hi float64) (pass, fail bool, end float64), word string, limit float64) {
	pass, fail, end := decide(low, high)
	if p.resolution > 0 {
		d.Why += toldLate(p.resolution)
	}
	switch {
	case pass:
		d.State, d.margin = RulePass, math.Abs(end-limit)/max(math.Abs(limit), math.SmallestNonzeroFloat64)
	case fail:
		d.State = RuleFail
	default:
		if pass, fail, _ := decide(lo, hi); pass || fail {
			d.Why = word + " lies within the resolution of the times, which more repetitions do not make finer; " + d.Why
			return
		}
		d.helps = true
		d.Why = word + " lies within the interval; " + d.Why
	}
}

// few says that a cell has fewer trials, or pairs, than decide a rule. Where it has
// none of this number, more of them may have none, either.
func (d *CellRuling) few() {
	d.Why += fmt.Sprintf("; %d are needed", fewestForGate)
	d.helps = d.N > 0
}

// MoreHelps reports whether more repetitions can decide each of the gates that cannot
// be told, and whether they can decide any.
func MoreHelps(rulings []Ruling) (all, any bool) {
	all = true
	for _, g := range rulings {
		if g.Goal || g.State != RuleOpen {
			continue
		}
		helps := slices.ContainsFunc(g.Cells, func(d CellRuling) bool { return d.State == RuleOpen && d.helps })
		lost := slices.ContainsFunc(g.Cells, func(d CellRuling) bool { return d.State == RuleOpen && !d.helps })
		all, any = all && helps && !lost, any || helps && !lost
	}
	return all && any, any
}

// State is the gravest of rulings: one that failed, or one that cannot be told. A
// goal, and what needs a base run, decide nothing.
func State(all []Ruling) string {
	state := RulePass
	for _, g := range all {
		if g.Goal {
			continue
		}
		if g.State == RuleFail || g.State == RuleOpen && state == RulePass {
			state = g.State
		}
	}
	return state
}
