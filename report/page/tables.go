package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// table is a table of formatted entries.
type table struct {
	Label string
	Head  []head
	Rows  [][]entry
}

// drop removes a column.
func (t *table) drop(i int) {
	t.Head = slices.Delete(t.Head, i, i+1)
	for k, row := range t.Rows {
		t.Rows[k] = slices.Delete(row, i, i+1)
	}
}

// varies reports whether rows differ in a column.
func (t *table) varies(i int) bool {
	return slices.ContainsFunc(t.Rows, func(r []entry) bool { return r[i].Text != t.Rows[0][i].Text })
}

type head struct {
	Name    string
	Numeric bool
	narrow  bool // part of the terminal's table
}

// heads returns columns with these names; # marks columns of numbers.
func heads(names ...string) (all []head) {
	for _, s := range names {
		name, numeric := strings.CutPrefix(s, "#")
		all = append(all, head{Name: name, Numeric: numeric})
	}
	return all
}

// entry is one cell of a table.
type entry struct {
	Text string
	Note string // small, after the text
	Raw  string // the plain number behind the text
	Tone analysis.Tone
}

// Long reports whether the entry should be wrapped.
func (e entry) Long() bool { return len(e.Text) > 32 }

func number(v analysis.Num, unit string) entry {
	if !v.Known() {
		return entry{Text: "–"}
	}
	return entry{Text: show(float64(v), unit), Raw: strconv.FormatFloat(float64(v), 'g', -1, 64)}
}

func integer(n int) entry { return entry{Text: words.Count(int64(n)), Raw: strconv.Itoa(n)} }

// plusMinus returns the wider half of an interval as a share of the median, or in percentage
// points for a share.
func plusMinus(s analysis.Summary, unit string) string {
	half := float64(max(s.Hi-s.Median, s.Median-s.Lo))
	if s.N < 2 || !s.Lo.Known() || !s.Hi.Known() {
		return ""
	}
	sign := "%"
	if unit == "ratio" {
		sign = " points"
	} else if half /= math.Abs(float64(s.Median)); s.Median == 0 {
		return ""
	}
	return "±" + strconv.Itoa(int(math.Ceil(half*100-1e-9))) + sign
}

// cellTable returns a table with a row for each cell: factors, system and metrics.
func cellTable(r *analysis.Result, label string, columns []analysis.Column, validity bool) (t table) {
	t.Label = label
	if len(r.Cells) == 0 {
		return t
	}
	d, fill := &drawer{Result: r}, []func(*analysis.Cell) entry{}
	add := func(name string, numeric, narrow bool, of func(*analysis.Cell) entry) {
		t.Head, fill = append(t.Head, head{name, numeric, narrow}), append(fill, of)
	}
	for _, x := range r.Cells[0].Factors {
		if x.Path != "system" {
			add(x.Label, x.Unit != "", true, func(c *analysis.Cell) entry {
				own, _ := c.Factor(x.Path)
				return entry{Text: own.Text(), Raw: own.Value}
			})
		}
	}
	add("system", false, true, func(c *analysis.Cell) entry { return entry{Text: c.System} })
	for _, col := range columns {
		if slices.ContainsFunc(r.Cells, func(c *analysis.Cell) bool { _, ok := d.of(c, col.Metric); return ok }) {
			add(col.Head, true, col.Narrow, func(c *analysis.Cell) entry { return d.entry(c, col) })
		}
	}
	if validity && slices.ContainsFunc(r.Cells, func(c *analysis.Cell) bool { return c.Success.Of > 0 }) {
		add("success", true, true, success)
	}
	if validity {
		add("valid", true, true, valid)
	}
	for _, c := range r.Cells {
		line := make([]entry, len(fill))
		for i, of := range fill {
			line[i] = of(c)
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

func (d *drawer) entry(c *analysis.Cell, col analysis.Column) entry {
	if col.Metric == analysis.RatioColumn {
		return ratio(c, d.Headline)
	}
	m, _ := d.Frame.Metric(col.Metric)
	if col.Unit != "" {
		m.Unit = col.Unit
	}
	s, ok := c.Metrics[col.Metric]
	if !ok {
		if analysis.Censored(d.Frame.Of(c, col.Metric)) > 0 {
			return entry{Text: "not reached", Tone: analysis.Warn}
		}
		return entry{Text: "–"}
	}
	e := number(s.Median, m.Unit)
	if s.Exact { // else it is the range of the trials
		e.Note = plusMinus(s, m.Unit)
	}
	return e
}

// ratio formats a cell's ratio to the baseline, with "~" if it is not significant, and the
// number of pairs if there are too few.
func ratio(c *analysis.Cell, metric string) entry {
	if c.Baseline {
		return entry{Text: "baseline", Tone: analysis.Neutral}
	}
	q, ok := c.Ratios[metric]
	if !ok || !q.Value.Known() {
		return entry{Text: "–"}
	}
	e := number(q.Value, "×")
	e.Note = interval(q.Lo, q.Hi)
	switch {
	case q.N < analysis.FewestPairs: // whatever the difference
		e.Text, e.Tone = analysis.FewPairs(e.Text, q.N), analysis.Neutral
	case analysis.Uninformative(q.Lo, q.Hi) && q.Hi > 0:
		return entry{Text: analysis.NotResolved, Tone: analysis.Neutral}
	case !q.Significant:
		e.Text, e.Tone = "~"+e.Text, analysis.Neutral
	case q.Better > 0:
		e.Tone = analysis.Good
	case q.Better < 0:
		e.Tone = analysis.Bad
	}
	return e
}

func success(c *analysis.Cell) entry {
	if !c.Success.Value.Known() {
		return entry{Text: "–"}
	}
	e := number(c.Success.Value, "ratio")
	e.Text = words.Percent(float64(c.Success.Value))
	if i := interval(100*c.Success.Lo, 100*c.Success.Hi); i != "" {
		e.Note = "(" + i + ")"
	}
	if c.Success.OK < c.Success.Of {
		e.Tone = analysis.Bad
	}
	if n := c.Success.Censored; n > 0 {
		e.Note = words.Count(n) + " cut off"
	}
	return e
}

func valid(c *analysis.Cell) entry {
	e := entry{Text: fmt.Sprintf("%d/%d", c.Valid, c.Planned), Raw: strconv.Itoa(c.Valid)}
	if c.Invalid+c.Failed > 0 {
		e.Tone = analysis.Warn
	}
	if c.Skipped > 0 {
		e.Note = fmt.Sprintf("%d skipped", c.Skipped)
	}
	return e
}

// ownTable formats a scenario's table.
func ownTable(x analysis.Table) table {
	t := table{Label: x.Title}
	for _, h := range x.Head {
		t.Head = append(t.Head, head{h.Name, h.Unit != "", h.Narrow})
	}
	for _, values := range x.Rows {
		var line []entry
		for i, v := range values {
			e := entry{Text: v.Text, Tone: v.Tone}
			if v.Text == "" && i < len(x.Head) {
				e = number(v.Number, x.Head[i].Unit)
				e.Tone = v.Tone
				f := analysis.Num(words.Conversion(float64(v.Number), x.Head[i].Unit))
				if i := interval(v.Lo*f, v.Hi*f); i != "" {
					e.Note = "(" + i + ")"
				}
			}
			line = append(line, e)
		}
		t.Rows = append(t.Rows, line)
	}
	for i := len(t.Head) - 1; i >= 0; i-- { // the place of cells where there is one
		if !slices.ContainsFunc(t.Rows, func(r []entry) bool { return strings.Trim(r[i].Text, "–") != "" }) {
			t.drop(i)
		}
	}
	return t
}

func linkTable(r *analysis.Result) table {
	t := table{Label: "Links", Head: heads("link", "cells", "emulator", "#checks", "#RTT wanted", "#measured", "#p99",
		"#rate wanted", "#measured", "#loss", "#lateness p99", "#off")}
	for _, l := range r.Links {
		rtt, rate, off := number(l.RTT, "s"), number(l.Rate, "bit/s"), integer(l.Off)
		wantRTT, want := number(l.WantRTT, "s"), entry{Text: "unlimited"}
		if l.WantRate > 0 {
			want = number(l.WantRate, "bit/s")
		}
		if l.Emulator == record.RealLink {
			wantRTT, want, off = entry{Text: "as it is"}, entry{Text: "as it is"}, entry{Text: "–"}
		}
		if l.Off > 0 {
			off.Tone, off.Note = analysis.Warn, strings.Join(l.Why, "; ")
		}
		loss := number(l.Loss, "ratio")
		if l.WantLoss > 0 {
			loss.Note = "of " + words.Percent(float64(l.WantLoss))
		}
		t.Rows = append(t.Rows, []entry{{Text: l.From + " → " + l.To}, {Text: l.Where},
			{Text: l.Emulator, Note: l.Congestion}, integer(l.Checks),
			wantRTT, rtt, number(l.RTTP99, "s"), want, rate, loss, number(l.Lateness, "s"), off})
	}
	return t
}

func invalidTable(r *analysis.Result) table {
	t := table{Label: "Invalid trials", Head: heads("#trial", "system", "cell", "#block", "why")}
	for _, v := range r.Invalid {
		why := strings.Join(v.Reasons, ", ")
		if v.Error != "" {
			why += ": " + v.Error
		}
		block := entry{Text: record.BlockName(v.Block)}
		if v.Block >= 0 {
			block = integer(v.Block + 1)
		}
		t.Rows = append(t.Rows, []entry{integer(int(v.Trial)), {Text: v.System}, {Text: v.Where}, block, {Text: why}})
	}
	return t
}

// reasons explains the validity reasons that occur.
func reasons(r *analysis.Result) (all []analysis.Pair) {
	for _, why := range record.Reasons() {
		if slices.ContainsFunc(r.Invalid,
			func(v analysis.InvalidTrial) bool { return slices.Contains(v.Reasons, why) }) {
			all = append(all, analysis.Pair{Key: why, Value: record.Meaning(why)})
		}
	}
	return all
}

func skippedTable(r *analysis.Result) table {
	t := table{Label: "Skipped trials", Head: heads("system", "cell", "#trials", "why")}
	for _, s := range r.Skipped {
		t.Rows = append(t.Rows, []entry{{Text: s.System}, {Text: s.Where}, integer(s.Trials), {Text: s.Why}})
	}
	return t
}

// planText formats the plan without its cells, which follow from the experiment.
func planText(r *analysis.Result) string {
	plan := *r.Frame.Plan
	plan.Cells = nil
	b, _ := json.MarshalIndent(plan, "", "  ") // it was read from JSON
	return string(b)
}

// gateView is a formatted gate.
type gateView struct {
	analysis.Ruling
	Tone     analysis.Tone
	Outcome  string   // "FAIL in nightly-2 (2 fail, 5 pass)"
	Deciding []string // the cells that fail, then those that are inconclusive
	Table    table    // of all cells
}

// gateTones are the tones of states, the worst first.
var gateTones = []analysis.Tone{analysis.Bad, analysis.Warn, analysis.Good}

func gateTone(state string) analysis.Tone {
	return cmp.Or(map[string]analysis.Tone{analysis.GatePass: analysis.Good, analysis.GateFail: analysis.Bad}[state],
		analysis.Warn)
}

// gateViews formats gates, with the name of the run if there are several runs.
func gateViews(gates []analysis.Ruling) []gateView {
	several := slices.ContainsFunc(gates, func(g analysis.Ruling) bool { return g.Run != gates[0].Run })
	var all []gateView
	for _, g := range gates {
		v := gateView{Ruling: g, Tone: gateTone(g.State), Outcome: strings.ToUpper(g.State),
			Deciding: decidingCells(g)}
		if several {
			v.Outcome += " in " + g.Run
		}
		if why := cmp.Or(g.Why, countStates(g)); why != "" {
			v.Outcome += " (" + why + ")"
		}
		v.Table = table{Label: g.Rule, Head: heads("system", "cell", "state", "#n", "why")}
		for _, c := range g.Cells {
			v.Table.Rows = append(v.Table.Rows,
				[]entry{{Text: c.System}, {Text: c.Where}, {Text: c.State, Tone: gateTone(c.State)}, integer(c.N),
					{Text: c.Why}})
		}
		all = append(all, v)
	}
	return all
}

// countStates counts cells by state: "2 fail, 5 pass".
func countStates(g analysis.Ruling) string {
	if len(g.Cells) == 1 {
		return ""
	}
	counts := map[string]int{}
	for _, c := range g.Cells {
		counts[c.State]++
	}
	var parts []string
	for _, s := range []string{analysis.GateFail, analysis.GateInconclusive, analysis.GatePass} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	return strings.Join(parts, ", ")
}

// mostCells is the largest number of listed cells of a gate.
const mostCells = 6

func decidingCells(g analysis.Ruling) []string {
	var lines []string
	for _, state := range []string{analysis.GateFail, analysis.GateInconclusive} {
		for _, d := range g.Cells {
			if d.State == state {
				// Other intervals are of 95 %.
				value := strings.Replace(words.Range(float64(d.Value), float64(d.Lo), float64(d.Hi), d.Unit), " (", " (90 %: ", 1)
				lines = append(lines, fmt.Sprintf("%s: %s (%s)", strings.TrimSuffix(d.System+", "+d.Where, ", "),
					value, d.Why))
			}
		}
	}
	if more := len(lines) - mostCells; more > 0 {
		lines = append(lines[:mostCells], fmt.Sprintf("and %d more cells", more))
	}
	return lines
}

// GatesText formats gates: each with its state, and below it the cells that decide it.
func GatesText(gates []analysis.Ruling, width int) string {
	width = cmp.Or(width, plainWidth)
	var all []string
	for _, g := range gateViews(gates) {
		all = append(all, words.Wrap("", "   ", "gate "+g.Rule+": "+g.Outcome, width)...)
		for _, line := range g.Deciding {
			all = append(all, words.Wrap("   ", "      ", line, width)...)
		}
	}
	return lines(all)
}

// lines joins texts as lines.
func lines(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}
