package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// WriteRulings writes rulings for a terminal.
func WriteRulings(b *strings.Builder, all []Ruling, width int) {
	runs := map[string]bool{}
	for _, g := range all {
		runs[g.Run] = true
	}
	for _, g := range all {
		wrap(b, g.called()+": "+g.Rule+": "+g.words(len(runs) > 1), width, "   ")
		for i, line := range g.lines() {
			if i == mostDiffers {
				fmt.Fprintf(b, "   and %d more\n", len(g.lines())-i)
				break
			}
			wrap(b, "   "+line, width, "      ")
		}
	}
}

// called is what the ruling is about.
func (g Ruling) called() string {
	if g.Goal {
		return "goal"
	}
	return "gate"
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
		return s + " (" + g.Why + ")"
	}
	return s + fmt.Sprintf(" (of %s %d pass, %d fail, %d cannot be told)", plural(int64(len(g.Cells)), "cell", "cells"), len(g.Cells)-fail-open, fail, open)
}

// mostAlike is how many of the cells of which the same is to be said are named.
const mostAlike = 3

// lines are the cells that decide: those that fail, then those that cannot be
// told, in one line those of which the same is to be said; of a rule that all meet,
// the one that came nearest to its limit.
func (g Ruling) lines() []string {
	var lines []string
	for _, state := range []string{RuleFail, RuleOpen} {
		var order []string
		alike := map[string][]string{}
		for _, d := range g.Cells {
			if d.State != state {
				continue
			}
			says := d.says()
			if alike[says] == nil {
				order = append(order, says)
			}
			alike[says] = append(alike[says], d.name())
		}
		for _, says := range order {
			names, line := alike[says], state
			if len(names) > 1 {
				line += fmt.Sprintf(", %d cells", len(names))
			}
			if n := len(names) - mostAlike; n > 0 {
				names = append(slices.Clone(names[:mostAlike]), fmt.Sprintf("and %d more", n))
			}
			lines = append(lines, line+": "+strings.Join(names, "; ")+": "+says)
		}
	}
	if g.State == RulePass {
		least := 0
		for i, d := range g.Cells {
			if d.margin < g.Cells[least].margin {
				least = i
			}
		}
		lines = append(lines, "nearest: "+g.Cells[least].words())
	}
	return lines
}

func (d CellRuling) words() string { return d.name() + ": " + d.says() }
func (d CellRuling) name() string  { return strings.TrimSuffix(d.System+", "+d.Where, ", ") }
func (d CellRuling) says() string  { return d.shown() + "; " + d.Why }

// shown is the number that was decided by, with its interval.
func (d CellRuling) shown() string {
	switch {
	case d.Value.Known() && d.Lo.Known() && math.IsInf(float64(d.Hi), 1):
		return show(float64(d.Value), d.unit) + " (from " + show(float64(d.Lo), d.unit) + " on)"
	case !d.Value.Known() && d.unit == "×":
		return "no ratio"
	case !d.Value.Known():
		return "no median"
	}
	return showRange(d.Value, d.Lo, d.Hi, d.unit)
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

// gatesData are rulings as the page shows them.
type gatesData struct {
	Named bool // there are several runs
	All   []gateData
}

type gateData struct {
	Ruling
	Tone  Tone
	Says  string
	Lines []string
	Table Table
}

func gatesOf(all []Ruling) gatesData {
	var d gatesData
	for _, g := range all {
		d.Named = d.Named || g.Run != all[0].Run
	}
	for _, g := range all {
		d.All = append(d.All, gateData{g, stateTone(g.State), g.words(d.Named), g.lines(), g.table()})
	}
	return d
}

// table is a ruling cell by cell.
func (g Ruling) table() Table {
	t := Table{Head: []Column{{"cell", false}, {"system", false}, {"value", true}, {"low", true}, {"high", true}, {"n", true}, {"state", false}, {"why", false}}}
	for _, d := range g.Cells {
		t.Rows = append(t.Rows, []Entry{{Text: d.Where, Raw: d.Where}, {Text: d.System, Raw: d.System}, number(d.Value, d.unit), number(d.Lo, d.unit), number(d.Hi, d.unit), integer(d.N),
			{Text: d.State, Raw: d.State, Tone: stateTone(d.State)}, {Text: d.Why, Raw: d.Why}})
	}
	return t
}

// Called is what the ruling is about, for the page.
func (g Ruling) Called() string { return g.called() }

func stateTone(state string) Tone {
	switch state {
	case RulePass:
		return Good
	case RuleFail:
		return Bad
	case RuleOpen:
		return Warn
	}
	return Neutral
}
