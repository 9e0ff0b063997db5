// Package overhead is the question what an object costs before its bytes count.
package overhead

import (
	_ "embed"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
)

//go:embed view.yaml
var viewText string

// View is how the numbers of overhead are read.
func View() *analysis.View {
	var own view
	v := analysis.ParseView(viewText)
	v.Headline = func(*experiment.Plan) string { return "duration_p50" }
	v.Accumulates = func(c *analysis.Cell) bool { return c.Plan.Overhead.Operation == "fill" }
	v.Rules, v.Tables, v.Alike = rules(), own.tables, own.alike
	return v
}

// misfit is the median residual of a cell from which on a model that does not hold is
// no fair description.
const misfit = 0.1

func rules() []analysis.Rule {
	return []analysis.Rule{
		{ID: "model", Rank: analysis.Unreliable, Tone: analysis.Warn,
			Holds: rows("cost", func(t analysis.Table, i int, x *analysis.Case) bool {
				x.Value, x.Text = t.Get(i, "misfit").Number, t.Get(i, "note").Text
				return t.Get(i, "holds").Tone == analysis.Warn
			}),
			Title:  `The cost model does not hold: {{.Systems}}`,
			Each:   `{{.Name}}: the worst cell is off by {{percent .Value}} ({{.Text}})`,
			Advice: `A, R and B of these operations describe no cell well. Look at the figure of time against size.`},
		{ID: "memory-grows", Rank: analysis.Notable, Tone: analysis.Warn,
			Holds: rows("memory", func(t analysis.Table, i int, x *analysis.Case) bool {
				x.Name = x.System + ", " + t.Get(i, "process").Text
				return t.Get(i, "grows").Text == "yes"
			}),
			Title:  `Memory grows with the file: {{.Systems}}`,
			Each:   `{{.Name}}: {{interval .}} for each file byte`,
			Advice: `The system holds whole objects in memory. Large objects may not fit.`},
		{ID: "objects-slope", Rank: analysis.Slow, Tone: analysis.Warn,
			Holds: rows("objects", func(t analysis.Table, i int, x *analysis.Case) bool {
				return t.Get(i, "change").Text == "slower"
			}),
			Title:  `Slows down with the number of objects: {{.Systems}}`,
			Each:   `{{.Name}}: {{interval .}} per 1,000 objects`,
			Advice: `Profile the servers with many objects stored; the slope may continue beyond that.`},
	}
}

// caseColumns are the columns of each table that a case's value is of.
var caseColumns = map[string]string{"cost": "against", "memory": "growth", "objects": "slope"}

// rows makes a case of each row of a table for which holds says so.
func rows(id string, holds func(t analysis.Table, row int,
	x *analysis.Case) bool) func(*analysis.Result) []analysis.Case {
	return func(r *analysis.Result) []analysis.Case {
		var all []analysis.Case
		t := r.Table(id)
		for i := range t.Rows {
			system, v := t.Get(i, "system").Text, t.Get(i, caseColumns[id])
			x := analysis.Case{System: system, Name: system + ", " + t.Get(i, "operation").Text, Value: v.Number,
				Lo: v.Lo, Hi: v.Hi}
			for _, c := range t.Head {
				if c.Key == caseColumns[id] {
					x.Unit = c.Unit
				}
			}
			if holds(t, i, &x) {
				all = append(all, x)
			}
		}
		return all
	}
}
