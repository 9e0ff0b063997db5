// Package overhead contains the scenario overhead, which measures the cost of an object beyond
// the transfer of its bytes.
package overhead

import (
	_ "embed"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

//go:embed view.yaml
var viewText string

// View returns the view of the results of overhead.
func (Scenario) View() *analysis.View {
	var own view
	v := analysis.ParseView(viewText)
	v.Headline = func(*experiment.Plan) string { return "duration_p50" }
	v.Accumulates = func(c *analysis.Cell) bool { return c.Plan.Overhead.Operation == "fill" }
	v.Tables, v.Alike, v.Verdict = own.tables, own.alike, verdict
	v.Hold(map[string]func(*analysis.Result) []analysis.Case{
		"model": rows("cost", "misfit", "ratio", func(t analysis.Table, i int, x *analysis.Case) bool {
			x.Text = t.Get(i, "note").Text
			return t.Get(i, "holds").Tone == analysis.Warn
		}),
		"memory-grows": rows("memory", "growth", "B", func(t analysis.Table, i int, x *analysis.Case) bool {
			x.Name = x.System + ", " + t.Get(i, "process").Text
			return t.Get(i, "grows").Text == "yes"
		}),
		"objects-slope": rows("objects", "slope", "s", func(t analysis.Table, i int, x *analysis.Case) bool {
			return t.Get(i, "change").Text == "slower"
		}),
	})
	return v
}

// verdictWords is the template for the costs of a system's operations.
const verdictWords = "{{.System}}: {{range $i, $o := .Costs}}{{if $i}}, {{end}}{{.Operation}} takes {{.Rounds}} round " +
	"trips{{with .A}} and {{.}}{{end}}{{end}}."

// verdict summarizes the costs of operations if no systems are compared. It is nil if the trials
// do not determine them.
func verdict(r *analysis.Result) *analysis.Verdict {
	if r.Baseline != "" {
		return nil
	}
	t := r.Table("cost")
	var parts []string
	for _, s := range r.Systems {
		var costs []map[string]string
		for i := range t.Rows {
			rounds, a := t.Get(i, "rounds"), t.Get(i, "a")
			if t.Get(i, "system").Text != s.Name || t.Get(i, "holds").Text != "yes" || rounds.Text != "" ||
				!rounds.Number.Known() {
				continue
			}
			cost := map[string]string{"Operation": t.Get(i, "operation").Text, "Rounds": valueWords(rounds, "")}
			if a.Text == "" && a.Number.Known() {
				cost["A"] = valueWords(a, "s")
			}
			costs = append(costs, cost)
		}
		if costs != nil {
			parts = append(parts, analysis.Fill(verdictWords, map[string]any{"System": s.Name, "Costs": costs}))
		}
	}
	if parts == nil {
		return nil
	}
	return &analysis.Verdict{Text: strings.Join(parts, " "), Tone: analysis.Good}
}

func valueWords(v analysis.Value, unit string) string {
	return words.Range(float64(v.Number), float64(v.Lo), float64(v.Hi), unit)
}

// misfit is the median residual of a cell from which a rejected model is no fair description.
const misfit = 0.1

// rows returns a condition with a case for each row of a table for which holds is true. The
// case has the value of a column, in its unit.
func rows(id, column, unit string, holds func(t analysis.Table, row int,
	x *analysis.Case) bool) func(*analysis.Result) []analysis.Case {
	return func(r *analysis.Result) []analysis.Case {
		var all []analysis.Case
		t := r.Table(id)
		for i := range t.Rows {
			system, v := t.Get(i, "system").Text, t.Get(i, column)
			x := analysis.Case{System: system, Name: system + ", " + t.Get(i, "operation").Text,
				Range: analysis.Range{Value: v.Number, Lo: v.Lo, Hi: v.Hi}, Unit: unit}
			if holds(t, i, &x) {
				all = append(all, x)
			}
		}
		return all
	}
}
