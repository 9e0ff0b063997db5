package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

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
		v.Table.Head = heads("system", "cell", "state", "#n", "why")
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
	counts, order := map[string]int{}, []string{}
	for _, c := range g.Cells {
		if counts[c.State]++; counts[c.State] == 1 {
			order = append(order, c.State)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int {
		return slices.Index(gateTones, gateTone(a)) - slices.Index(gateTones, gateTone(b))
	})
	var parts []string
	for _, s := range order {
		parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
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
				lines = append(lines, fmt.Sprintf("%s: %s (%s)", strings.TrimSuffix(d.System+", "+d.Where, ", "),
					words.Range(float64(d.Value), float64(d.Lo), float64(d.Hi), d.Unit), d.Why))
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
