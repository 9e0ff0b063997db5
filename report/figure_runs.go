package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// heroRows is how many cells the picture of the first screen has at most.
const heroRows = 24

// Height of a forest's row and of all that is not rows, in pixels.
const (
	forestRow  = 20
	forestRest = 40
)

// forestMark is one ratio with its interval.
type forestMark struct {
	row          string // what is compared
	q            RunRatio
	base, after  string // the medians
	m            record.Metric
	system, cell string
	run          string
}

// forest draws the ratio of every cell with its interval, a panel for each
// metric. most is how many rows a panel has at most, those that are farthest from
// 1; 0: all.
func (c *RunComparison) forest(id string, metrics []record.Metric, most int) Figure {
	f := Figure{ID: id, Title: "New divided by base, cell by cell", Choose: "a metric",
		Reads: "Each mark is the new run's median divided by the base run's, with its interval; the line at 1 is no change. Filled triangles are shown to be better (pointing up) or worse (pointing down); hollow circles are differences that are not shown."}
	if len(metrics) == 1 {
		f.Choose = ""
		f.Title, f.Better = capital(metrics[0].Name)+": new divided by base", better(metrics[0].Better)
	}
	f.Table.Head = []Column{{"metric", false}, {"cell", false}, {"system", false}, {"run", false}, {"base", true}, {"new", true}, {"ratio", true}, {"low", true}, {"high", true}, {"p (Holm)", true}, {"difference", false}}
	left, compared := 0, make([]bool, len(c.Cells))
	for _, m := range metrics {
		var rows []forestMark
		for i, cell := range c.Cells {
			row, ok := cell.Metrics[m.Key]
			if !ok {
				continue
			}
			for k, v := range row.New {
				if v == nil || !v.Ratio.Value.Known() && v.Ratio.Never == "" {
					continue
				}
				mark := forestMark{strings.TrimSuffix(cell.System+", "+cell.Where, ", "), v.Ratio, medianWords(row.Base, m), medianWords(v.Summary, m), m, cell.System, cell.Where, c.newHead(k)}
				if len(c.New) > 1 {
					mark.row += " · " + c.newHead(k)
				}
				rows = append(rows, mark)
				compared[i] = true
			}
		}
		if most > 0 && len(rows) > most {
			left += len(rows) - most
			rows = farthestRows(rows, most)
		}
		if len(rows) == 0 {
			continue
		}
		title := ""
		if len(metrics) > 1 {
			title = capital(m.Name) + ", " + better(m.Better)
		}
		f.Panels = append(f.Panels, Panel{Title: title, Spec: forestSpec(f.Title+" "+title, rows)})
		for _, r := range rows {
			f.Table.Rows = append(f.Table.Rows, r.entries())
		}
	}
	f.N = c.trialWords(compared)
	if left > 0 {
		f.Reads += fmt.Sprintf(" The %d that are farthest from 1; all are below.", most)
	}
	f.Legend = forestLegend()
	return f
}

// trialWords are the valid trials of the runs in some of the cells.
func (c *RunComparison) trialWords(in []bool) string {
	base, news := 0, make([]int, len(c.New))
	for i, cell := range c.Cells {
		if !in[i] {
			continue
		}
		base += cell.base.Valid
		for k, other := range cell.news {
			if other != nil {
				news[k] += other.Valid
			}
		}
	}
	s := "n = " + plural(int64(base), "valid trial", "valid trials") + " of base"
	for k, n := range news {
		s += fmt.Sprintf(", %d of %s", n, c.newHead(k))
	}
	return s
}

// overForest draws the ratios over all cells, a row for each metric.
func (c *RunComparison) overForest() Figure {
	f := Figure{ID: "over", Title: "All cells together, metric by metric",
		Reads:  "The geometric mean over cells of new divided by base, with its interval; the line at 1 is no change. Which way is better differs by metric: triangles that point up are better, those that point down worse.",
		Legend: forestLegend()}
	f.Table.Head = []Column{{"metric", false}, {"run", false}, {"cells", true}, {"ratio", true}, {"low", true}, {"high", true}, {"p (Holm)", true}, {"difference", false}}
	var rows []forestMark
	most := 0
	for _, o := range c.Overall {
		if !o.Value.Known() {
			continue
		}
		m, _ := c.base.metric(o.Metric)
		q := RunRatio{Value: o.Value, Lo: o.Lo, Hi: o.Hi, PHolm: o.PHolm, Shown: o.Shown, Worth: o.Worth}
		run := c.newHead(slices.IndexFunc(c.New, func(r ComparedRun) bool { return r.Dir == o.New }))
		mark := forestMark{row: capital(m.Name), q: q, m: m, run: run}
		if len(c.New) > 1 {
			mark.row += " · " + run
		}
		rows, most = append(rows, mark), max(most, o.Cells)
		f.Table.Rows = append(f.Table.Rows, []Entry{{Text: m.Name, Raw: m.Key}, {Text: run}, integer(o.Cells), number(o.Value, "×"), number(o.Lo, "×"), number(o.Hi, "×"), number(o.PHolm, ""), q.difference()})
	}
	if len(rows) == 0 {
		return Figure{}
	}
	f.N = "Up to " + plural(int64(most), "cell", "cells")
	f.Panels = []Panel{{Spec: forestSpec(f.Title, rows)}}
	return f
}

// farthestRows keeps the rows that are farthest from 1, in their order.
func farthestRows(rows []forestMark, most int) []forestMark {
	far := func(r forestMark) float64 {
		if r.q.Never != "" {
			return math.Inf(1)
		}
		return math.Abs(math.Log(float64(r.q.Value)))
	}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b forestMark) int {
		switch x, y := far(a), far(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	kept := map[string]bool{}
	for _, r := range sorted[:most] {
		kept[r.row] = true
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r forestMark) bool { return !kept[r.row] })
}

// Kinds of marks.
const (
	markBetter = "better"
	markWorse  = "worse"
	markSmall  = "below the effect floor"
	markOpen   = "~ not shown"
)

func (q RunRatio) kind() string {
	switch {
	case !q.Shown:
		return markOpen
	case q.Worth > 0:
		return markBetter
	case q.Worth < 0:
		return markWorse
	}
	return markSmall
}

func (q RunRatio) difference() Entry {
	return Entry{Text: q.kind(), Raw: q.kind(), Tone: map[string]Tone{markBetter: Good, markWorse: Bad}[q.kind()]}
}

func (r forestMark) entries() []Entry {
	ratio := number(r.q.Value, "×")
	if r.q.Never != "" {
		ratio = Entry{Text: r.q.Never + " run: " + cutOffWords, Raw: ""}
	}
	return []Entry{{Text: r.m.Name, Raw: r.m.Key}, {Text: r.cell, Raw: r.cell}, {Text: r.system, Raw: r.system}, {Text: r.run, Raw: r.run}, {Text: r.base, Raw: r.base}, {Text: r.after, Raw: r.after},
		ratio, number(r.q.Lo, "×"), number(r.q.Hi, "×"), number(r.q.PHolm, ""), r.q.difference()}
}

func forestLegend() []Legend {
	return []Legend{{"better", "var(--good)", "triangle-up"}, {"worse", "var(--bad)", "triangle-down"}, {"shown, below the effect floor", "var(--accent)", "diamond"}, {"not shown (~)", "var(--soft)", "hollow"}}
}

// forestSpec is a panel of ratios below each other. Ratios are symmetric on a log
// scale: half and double are equally far from 1.
func forestSpec(label string, rows []forestMark) spec {
	lo, hi := 1/1.1, 1.1
	for _, r := range rows {
		for _, v := range []Num{r.q.Value, r.q.Lo, r.q.Hi} {
			if v.Known() && v > 0 {
				lo, hi = min(lo, float64(v)), max(hi, float64(v))
			}
		}
	}
	pad := math.Pow(hi/lo, 0.06)
	lo, hi = lo/pad, hi*pad
	var data []spec
	for _, r := range rows {
		x := r.q.value(r.m) // at the edge where there is no ratio
		row := spec{"row": r.row, "kind": r.q.kind(), "x": min(max(x, lo), hi), "tip": r.tip()}
		if r.q.Lo.Known() && r.q.Hi.Known() {
			row["lo"], row["hi"] = r.q.Lo, r.q.Hi
		}
		data = append(data, row)
	}
	x := spec{"field": "x", "type": "quantitative", "scale": spec{"type": "log", "domain": []float64{lo, hi}, "nice": false, "clamp": true},
		"axis": spec{"title": nil, "tickCount": 5, "grid": true, "labelExpr": "format(datum.value, '~g') + '×'"}}
	tip := spec{"field": "tip", "type": "nominal"}
	is := func(kind string) []spec { return []spec{{"filter": spec{"field": "kind", "equal": kind}}} }
	mark := func(kind, shape, colour string) spec {
		m := spec{"type": "point", "filled": true, "shape": shape, "size": 70, "opacity": 1}
		if kind == markOpen {
			m["fill"], m["stroke"], m["strokeWidth"] = "var(--paper)", colour, 1.75
		} else {
			m["color"] = colour
		}
		return spec{"transform": is(kind), "mark": m, "encoding": spec{"tooltip": tip}}
	}
	colour := spec{"field": "kind", "type": "nominal", "legend": nil, "scale": spec{"domain": []string{markBetter, markWorse, markSmall, markOpen},
		"range": []string{"var(--good)", "var(--bad)", "var(--accent)", "var(--soft)"}}}
	return spec{
		"$schema": vegaLite, "description": label, "data": spec{"values": data}, "height": forestRest/2 + forestRow*len(rows),
		"encoding": spec{"y": spec{"field": "row", "type": "nominal", "sort": nil, "axis": spec{"title": nil, "labelLimit": 180, "grid": false}}, "x": x},
		"layer": []spec{
			{"data": spec{"values": []spec{{"equal": 1}}}, "mark": spec{"type": "rule", "color": "var(--ink)", "strokeWidth": 1.25},
				"encoding": spec{"x": spec{"field": "equal", "type": "quantitative"}, "y": spec{"value": 0}, "y2": spec{"value": "height"}}},
			{"mark": spec{"type": "rule", "strokeWidth": 2}, "encoding": spec{"color": colour, "x": spec{"field": "lo", "type": "quantitative"}, "x2": spec{"field": "hi"}}},
			mark(markOpen, "circle", "var(--soft)"), mark(markSmall, "diamond", "var(--accent)"), mark(markBetter, "triangle-up", "var(--good)"), mark(markWorse, "triangle-down", "var(--bad)"),
		},
	}
}

func (r forestMark) tip() string {
	s := r.row + ": "
	switch {
	case r.q.Never != "":
		s += "half or more of the " + r.q.Never + " run's trials never came to it"
	default:
		s += show(float64(r.q.Value), "×") + " " + intervalWords(r.q.Lo, r.q.Hi)
	}
	if r.base != "" {
		s += ", " + r.base + " → " + r.after
	}
	return s + ", " + r.q.kind()
}
