// Package overhead is the question what an object costs before its bytes count.
package overhead

import (
	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
)

// View is how the numbers of overhead are read.
func View() *analysis.View {
	var v view
	return &analysis.View{
		Scenario:    "overhead",
		Question:    "What does an object cost before its bytes count?",
		Operation:   [2]string{"operation", "operations"},
		Headline:    func(*experiment.Plan) string { return "duration_p50" },
		Rate:        "ops_rate",
		Axis:        []string{"data.size", "overhead.concurrency", "link.delay", "link.rate"},
		Compared:    []string{"duration_p50", "first_byte_p50", "ops_rate", "system_rss_peak"},
		Lasting:     []string{"system_rss_peak"},
		Accumulates: func(c *analysis.Cell) bool { return c.Plan.Overhead.Operation == "fill" },
		Numbers:     []string{"duration_p50", "line_share", "expansion"},
		Columns: []analysis.Column{
			{Metric: "duration_p50", Head: "duration, median", Narrow: true},
			{Metric: analysis.RatioColumn, Head: "ratio", Narrow: true},
			{Metric: "line_share", Head: "of the load line", Narrow: true},
			{Metric: "first_byte_p50", Head: "first byte, median"},
			{Metric: "wire_bytes", Head: "on the link"}, {Metric: "expansion", Head: "expansion"},
			{Metric: "put_p50", Head: "put"},
			{Metric: "get_p50", Head: "get"}, {Metric: "stat_p50", Head: "stat"}},
		Resources: []analysis.Column{
			{Metric: "system_cpu_per_op", Head: "system CPU"}, {Metric: "system_rss_peak", Head: "system memory, peak"},
			{Metric: "generator_cpu_per_op", Head: "generator CPU"},
			{Metric: "disk_per_byte", Head: "disk per file byte"},
			{Metric: "entries_per_object", Head: "entries per object"},
			{Metric: "inodes_per_object", Head: "inodes per object"},
			{Metric: "others_busy", Head: "CPU of others"}},
		LoadLine: "The load line is a round trip of the link as measured before the trial (more on a fresh " +
			"connection), and the object's bytes at its rate. Operations that ended before the object crossed the " +
			"link have none.",
		Figures: []analysis.Figure{
			{ID: "time", Kind: analysis.Against, Metric: "duration_p50", Line: "line", Log: true,
				Title: "Time of one operation",
				Caption: "Median over trials of their medians. Flat on the left is what an object costs before its " +
					"bytes count, rising on the right are the bytes."},
			{ID: "ratio", Kind: analysis.Bars, Metric: analysis.RatioColumn, Title: "Ratio to the baseline",
				Caption: "Time of an operation relative to the baseline in the same block. Intervals that cross 1 " +
					"are not significant."},
			{ID: "expansion", Kind: analysis.Against, Metric: "expansion", Log: true, Title: "Expansion",
				Caption: "Absolute bytes (padding, metadata and redundancy included) for each file byte."},
			{ID: "wire", Kind: analysis.Against, Metric: "wire_bytes", Log: true, Title: "Bytes on the wire",
				Caption: "Bytes that the client sent and received during one operation, headers included."},
			{ID: "objects", Kind: analysis.Against, Metric: "put_p50", More: []string{"get_p50", "stat_p50"},
				X:       "stored_objects",
				Title:   "Time against the number of objects stored",
				Caption: "Each mark is the median of one trial, while the servers held that many objects."},
			{ID: "first-byte", Kind: analysis.Against, Metric: "first_byte_p50", Line: "first_byte_line", Log: true,
				Folded: true,
				Title:  "Time to first byte", Caption: "Median over a trial's operations."},
			{ID: "resources", Kind: analysis.Against, Metric: "system_cpu_per_op", More: []string{"system_rss_peak"},
				Log: true, Folded: true,
				Title: "Resources of the system",
				Caption: "CPU seconds for each operation, with what surrounds it, and peak memory of the system's " +
					"processes."},
		},
		Rules:  rules(),
		Tables: v.tables,
		Alike:  v.alike,
	}
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
