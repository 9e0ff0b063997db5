package disseminate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
)

// tables returns the tables of faults and recovery, and of the time to each share.
func tables(f *analysis.Frame) []analysis.Table {
	return []analysis.Table{faultTable(f), completionTable(f)}
}

// summary returns a metric of a cell as a table entry.
func summary(c *analysis.Cell, metric string) analysis.Value {
	if s, ok := c.Metrics[metric]; ok {
		return analysis.Value{Number: s.Median, Lo: s.Lo, Hi: s.Hi}
	}
	return analysis.Text("")
}

func leechersUnfinished(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		x.N, x.Of = c.Success.Of-c.Success.OK, c.Success.Of
		var why []string
		for _, o := range record.Outcomes() {
			if n := c.Outcomes[o.String()]; n > 0 && o != record.OK && wanted(o) {
				why = append(why, fmt.Sprintf("%s ×%d", o, n))
			}
		}
		for _, class := range slices.Sorted(maps.Keys(c.Classes)) {
			if class != nodes.ClassCrashed && class != nodes.ClassCut {
				why = append(why, fmt.Sprintf("%s ×%d", class, c.Classes[class]))
			}
		}
		if faulty(c) {
			why = append(why, "with faults")
		}
		x.Text = strings.Join(why, ", ")
		return x.N > 0
	})
}

func faulty(c *analysis.Cell) bool { return len(c.Plan.Disseminate.Faults) > 0 }

// partialFaults counts the valid trials whose notes say that a fault did not happen in full.
func partialFaults(r *analysis.Result) (all []analysis.Case) {
	for _, c := range r.Cells {
		trials, missed := r.Frame.ValidTrials(c), map[string]int64{}
		for _, t := range trials {
			for _, note := range t.Notes {
				if strings.HasPrefix(note, nodes.NoteFault) {
					missed[note]++
				}
			}
		}
		for _, note := range slices.Sorted(maps.Keys(missed)) {
			all = append(all, analysis.Case{System: c.System, Name: r.Frame.Layout.Name(c), N: missed[note],
				Of: int64(len(trials)), Text: note})
		}
	}
	return all
}

func slowRecovery(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		outage, next, on := c.Metrics["outage"], c.Metrics["recovery"], c.Metrics["recovered"]
		if outage.N > 0 && next.N > 0 && next.Median > outage.Median {
			x.Text = fmt.Sprintf("%s to the next verified byte after an outage of %s",
				words.Show(float64(next.Median), "s"), words.Show(float64(outage.Median), "s"))
		} else if on.N > 0 && on.Median < 1 {
			x.Text = fmt.Sprintf("only %s of the nodes went on", words.Percent(float64(on.Median)))
		}
		return faulty(c) && x.Text != ""
	})
}

func faultTable(f *analysis.Frame) analysis.Table {
	t := f.View.Head("faults")
	rest := func(c *analysis.Cell) []analysis.Factor {
		return slices.DeleteFunc(slices.Clone(c.Factors),
			func(x analysis.Factor) bool { return x.Path == "disseminate.faults" })
	}
	for _, c := range f.Cells {
		if !faulty(c) {
			continue
		}
		row := []any{c.System, f.Layout.Where(c), summary(c, "outage"), summary(c, "recovery"), summary(c, "recovered")}
		alike := func(x *analysis.Cell) bool { return !faulty(x) && slices.Equal(rest(x), rest(c)) }
		calm := slices.IndexFunc(f.Cells, alike)
		for _, metric := range []string{"time_median", "time_last"} {
			ratio := analysis.Text("")
			if calm >= 0 {
				ratio = f.RatioTo(metric, c, f.Cells[calm])
			}
			row = append(row, ratio)
		}
		t.Add(row...)
	}
	return t
}

// completionTable returns the time to each share of the content.
func completionTable(f *analysis.Frame) analysis.Table {
	t := f.View.Head("completion")
	for _, c := range f.Cells {
		if c.Valid == 0 {
			continue
		}
		row := []any{c.System, f.Layout.Where(c)}
		for _, s := range shares {
			key := reachedKey(s)
			v := summary(c, key)
			if slices.ContainsFunc(f.Of(c, key), func(r analysis.Row) bool { return r.Censored }) {
				v.Tone = analysis.Warn
				if !v.Number.Known() {
					v.Text = "never"
				}
			}
			row = append(row, v)
		}
		t.Add(row...)
	}
	return t
}
