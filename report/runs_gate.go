package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/gate"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Ruling is what a run says to a rule that it is held to.
type Ruling struct {
	Rule  string       `json:"rule"`
	Run   string       `json:"run"` // its directory
	State string       `json:"state"`
	Cells []CellRuling `json:"cells"`
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

	unit string
}

// States of a ruling.
const (
	RulePass = "pass"
	RuleFail = "fail"
	RuleOpen = "cannot tell"
)

// gateConfidence is that of a two-sided interval whose ends each hold with
// Confidence: a rule asks for one side only.
const gateConfidence = 1 - 2*(1-Confidence)

// fewestForGate is how many trials such an interval needs.
const fewestForGate = 5

// Hold decides rules over a run.
func (r *Report) Hold(rules []string) ([]Ruling, error) {
	return hold(rules, r.gateNames(false), func(rule gate.Rule) []Ruling { return []Ruling{r.rule(rule, r.dir, nil)} })
}

// Hold decides rules over each of the new runs.
func (c *RunComparison) Hold(rules []string) error {
	names := c.base.gateNames(true)
	for _, r := range c.news {
		for path, levels := range r.gateNames(true).Levels {
			for _, l := range levels {
				if !slices.Contains(names.Levels[path], l) {
					names.Levels[path] = append(names.Levels[path], l)
				}
			}
		}
	}
	var err error
	c.Gates, err = hold(rules, names, func(rule gate.Rule) []Ruling {
		var all []Ruling
		for k, r := range c.news {
			all = append(all, r.rule(rule, c.New[k].Dir, func(cell *Cell) *Cell { return c.baseOf(k, cell) }))
		}
		return all
	})
	return err
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
		all = append(all, decide(rule)...)
	}
	return all, nil
}

// gateNames are what rules over this run may speak of.
func (r *Report) gateNames(base bool) gate.Names {
	names := gate.Names{Metrics: r.Metrics, Headline: r.headline, Levels: map[string][]string{}, Base: base}
	for _, c := range r.Cells {
		for _, f := range c.Factors {
			if !slices.Contains(names.Levels[f.Path], f.Value) {
				names.Levels[f.Path] = append(names.Levels[f.Path], f.Value)
			}
		}
	}
	return names
}

// baseOf is the base run's cell to one of a new run's; nil: there is none.
func (c *RunComparison) baseOf(k int, cell *Cell) *Cell {
	for _, row := range c.Cells {
		if row.news[k] == cell {
			return row.base
		}
	}
	return nil
}

// rule decides a rule cell by cell; base is nil where there is no base run.
func (r *Report) rule(rule gate.Rule, dir string, base func(*Cell) *Cell) Ruling {
	g := Ruling{Rule: rule.Text, Run: dir, State: RulePass, Cells: []CellRuling{}}
	m, _ := r.metric(rule.Metric)
	for _, c := range r.cells() {
		if !meant(c, rule) {
			continue
		}
		d := CellRuling{System: c.System, Where: r.shape.where(c), State: RuleOpen, Value: unknown, Lo: unknown, Hi: unknown, unit: m.Unit}
		switch rule.Kind {
		case gate.Limit:
			d.limit(r, c, m, rule)
		case gate.Within:
			xs, ys := []float64(nil), []float64(nil)
			if other := r.inGroup(rule.System, c.Group); other != nil {
				xs, ys = paired(c.Metrics[m.Key], other.Metrics[m.Key])
			}
			d.ratio(stats.PairedRatio(xs, ys, gateConfidence, r.Run.Seed), len(xs), "block in which both have a valid trial", m, rule.Share)
		case gate.NoWorse:
			b := base(c)
			if b == nil {
				continue // what differed says that the base run does not have it
			}
			xs, ys := c.Metrics[m.Key].all(m), b.Metrics[m.Key].all(m)
			d.ratio(stats.Ratio(xs, ys, gateConfidence), min(len(xs), len(ys)), "valid trial on either side", m, rule.Share)
		}
		g.Cells = append(g.Cells, d)
		if d.State == RuleFail || d.State == RuleOpen && g.State == RulePass {
			g.State = d.State
		}
	}
	if len(g.Cells) == 0 {
		g.State = RuleOpen
	}
	return g
}

// meant reports whether a rule speaks of a cell. A system is not compared with
// itself.
func meant(c *Cell, rule gate.Rule) bool {
	if rule.Kind == gate.Within && c.System == rule.System {
		return false
	}
	for _, w := range rule.Where {
		f := c.System
		if w.Path != "system" {
			level, _ := c.factor(w.Path)
			f = level.Value
		}
		if (f == w.Value) == w.Not {
			return false
		}
	}
	return true
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
// by that of the share of all operations.
func (d *CellRuling) limit(r *Report, c *Cell, m record.Metric, rule gate.Rule) {
	lo, hi := 0.0, 0.0
	if m.Key == "success_rate" {
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
		d.N, d.Value, d.Lo, d.Hi = c.Valid, s.Value, s.Lo, s.Hi
		if s.Of == 0 {
			d.Why = "no operation of a valid trial finished"
			return
		}
		lo, hi = float64(s.Lo), float64(s.Hi)
		d.Why = fmt.Sprintf("%s of %s", count(s.OK), plural(s.Of, "operation", "operations"))
	} else {
		xs := c.Metrics[m.Key].all(m)
		i := stats.MedianCI(xs, gateConfidence)
		d.N, d.Value = len(xs), Num(i.Mid)
		d.Why = plural(int64(len(xs)), "valid trial", "valid trials") + " with this number"
		if len(xs) < fewestForGate {
			d.Why += fmt.Sprintf("; %d are needed", fewestForGate)
			return
		}
		lo, hi = i.Lo, i.Hi
		d.Lo, d.Hi = Num(lo), Num(hi)
	}
	pass, fail := false, false
	switch rule.Op {
	case "<":
		pass, fail = hi < rule.Value, lo >= rule.Value
	case "<=":
		pass, fail = hi <= rule.Value, lo > rule.Value
	case ">":
		pass, fail = lo > rule.Value, hi <= rule.Value
	case ">=":
		pass, fail = lo >= rule.Value, hi < rule.Value
	}
	d.settle(pass, fail, "the limit")
}

// ratio decides by the interval of a ratio of medians, which may be worse than 1 by
// a share.
func (d *CellRuling) ratio(i stats.Interval, n int, what string, m record.Metric, share float64) {
	d.N, d.Value, d.unit = n, Num(i.Mid), "×"
	d.Why = plural(int64(n), what, strings.Replace(strings.Replace(what, "trial on", "trials on", 1), "block ", "blocks ", 1))
	if n < fewestForGate || math.IsNaN(i.Mid) {
		if n < fewestForGate {
			d.Why += fmt.Sprintf("; %d are needed", fewestForGate)
		} else {
			d.Why = i.Warn
		}
		return
	}
	d.Lo, d.Hi = Num(i.Lo), Num(i.Hi)
	least, most := 1-share, 1+share
	switch m.Better {
	case record.Higher:
		d.settle(i.Lo >= least, i.Hi < least, "the limit")
	case record.Lower:
		d.settle(i.Hi <= most, i.Lo > most, "the limit")
	default:
		d.settle(i.Lo >= least && i.Hi <= most, i.Lo > most || i.Hi < least, "a limit")
	}
}

func (d *CellRuling) settle(pass, fail bool, limit string) {
	switch {
	case pass:
		d.State = RulePass
	case fail:
		d.State = RuleFail
	default:
		d.Why = limit + " lies within the interval; " + d.Why
	}
}

// State is the gravest of rulings: one that failed, or one that cannot be told.
func State(all []Ruling) string {
	state := RulePass
	for _, g := range all {
		if g.State == RuleFail || g.State == RuleOpen && state == RulePass {
			state = g.State
		}
	}
	return state
}

// WriteRulings writes rulings for a terminal.
func WriteRulings(b *strings.Builder, all []Ruling, width int) {
	runs := map[string]bool{}
	for _, g := range all {
		runs[g.Run] = true
	}
	for _, g := range all {
		wrap(b, "gate: "+g.Rule+": "+g.words(len(runs) > 1), width, "   ")
		for i, line := range g.lines() {
			if i == mostDiffers {
				fmt.Fprintf(b, "   and %d more\n", len(g.lines())-i)
				break
			}
			wrap(b, "   "+line, width, "      ")
		}
	}
}

// words is "FAIL (2 of 6 cells fail, 1 cannot be told)".
func (g Ruling) words(named bool) string {
	fail, open := 0, 0
	for _, d := range g.Cells {
		switch d.State {
		case RuleFail:
			fail++
		case RuleOpen:
			open++
		}
	}
	s := strings.ToUpper(g.State)
	if named {
		s += " for " + g.Run
	}
	if len(g.Cells) == 0 {
		return s + " (no cell is meant)"
	}
	return s + fmt.Sprintf(" (of %s %d pass, %d fail, %d cannot be told)", plural(int64(len(g.Cells)), "cell", "cells"), len(g.Cells)-fail-open, fail, open)
}

// lines are the cells that do not pass, those that fail first.
func (g Ruling) lines() []string {
	var lines []string
	for _, state := range []string{RuleFail, RuleOpen} {
		for _, d := range g.Cells {
			if d.State == state {
				where := strings.TrimSuffix(d.System+", "+d.Where, ", ")
				lines = append(lines, fmt.Sprintf("%s: %s: %s; %s", state, where, showRange(d.Value, d.Lo, d.Hi, d.unit), d.Why))
			}
		}
	}
	return lines
}

// rulingsMarkdown writes rulings for a pull request.
func rulingsMarkdown(b *strings.Builder, all []Ruling) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\n**Gates**\n\n")
	runs := map[string]bool{}
	for _, g := range all {
		runs[g.Run] = true
	}
	for _, g := range all {
		fmt.Fprintf(b, "- `%s`: %s\n", strings.ReplaceAll(g.Rule, "`", "'"), markdownText(g.words(len(runs) > 1)))
		for _, line := range g.lines() {
			fmt.Fprintf(b, "  - %s\n", markdownText(line))
		}
	}
}
