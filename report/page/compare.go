package page

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// mostDiffers is the largest number of listed differences of one kind; JSON has all.
const mostDiffers = 8

// compareTable is one table of a comparison.
type compareTable struct {
	table
	Asked bool // its metric was requested, so it is not folded
}

// add appends a row of texts.
func (t *compareTable) add(row ...string) {
	var line []entry
	for _, s := range row {
		line = append(line, entry{Text: s})
	}
	t.Rows = append(t.Rows, line)
}

// CompareText writes a comparison for a terminal of a width, dropping columns of tables until
// they fit; with 0 there is no terminal, and all columns are written. The order is: verdict,
// differences, all cells together, cells by metric.
func CompareText(w io.Writer, c *analysis.Comparison, width int) error {
	tables := &text{width: cmp.Or(width, plainWidth), verbose: width == 0}
	for _, t := range compareTables(c) {
		tables.table(t.table, 0)
	}
	return compareAs(w, c, "compare.txt", map[string]any{
		"wrap": func(first, later, s string) string {
			return lines(words.Wrap(first, later, s, tables.width))
		},
		"tables": func() string { return lines(tables.lines) },
		"gates":  func() string { return GatesText(c.Gates, width) },
	})
}

// CompareMarkdown writes a comparison for a pull request.
func CompareMarkdown(w io.Writer, c *analysis.Comparison) error {
	return compareAs(w, c, "compare.md", map[string]any{
		"md":   markdown.Replace,
		"code": func(s string) string { return strings.ReplaceAll(s, "`", "'") },
	})
}

// CompareHTML writes a comparison as one page that makes no network requests: verdict, gates,
// all cells together, cells by metric, differences.
func CompareHTML(w io.Writer, c *analysis.Comparison) error {
	return execute(w, "compare.html", "compare.html", compared(c))
}

// compared is the data of the templates of a comparison.
func compared(c *analysis.Comparison) map[string]any {
	return map[string]any{"C": c, "Runs": runLines(c), "Differ": differLines(c), "Gates": gateViews(c.Gates),
		"Tables": compareTables(c)}
}

func compareAs(w io.Writer, c *analysis.Comparison, file string, funcs map[string]any) error {
	t := template.Must(template.New(file).Funcs(funcs).ParseFS(files, "templates/"+file))
	return t.Execute(w, compared(c))
}

var markdown = strings.NewReplacer("\\", "\\\\", "[", "\\[", "]", "\\]", "|", "\\|", "<", "&lt;",
	">", "&gt;", "\n", " ", "*", "\\*", "_", "\\_", "`", "\\`", "~", "\\~")

func runLines(c *analysis.Comparison) []string {
	line := func(role string, r analysis.ComparedRun) string {
		s := role + ": " + r.Dir
		if !r.Run.Started.IsZero() {
			s += ", " + r.Run.Started.UTC().Format("2006-01-02 15:04") + " UTC"
		}
		if r.Plimsoll != "" {
			s += ", plimsoll " + r.Plimsoll
		}
		return s + fmt.Sprintf(", %d of %d trials valid", r.Run.Valid, r.Run.Done)
	}
	lines := []string{line("base", c.Base)}
	for i, r := range c.New {
		lines = append(lines, line(newName(c, i), r))
	}
	return lines
}

// newName returns the name of a new run in tables.
func newName(c *analysis.Comparison, i int) string {
	if len(c.New) == 1 {
		return "new"
	}
	return fmt.Sprintf("new %d", i+1)
}

// differLines lists what differed, and which cells are not compared.
func differLines(c *analysis.Comparison) []string {
	var lines []string
	of := map[string]int{}
	for _, d := range c.Differs {
		if of[d.Kind]++; of[d.Kind] > mostDiffers {
			continue
		}
		line := d.Kind + ": " + d.What + " " + cmp.Or(d.Base, "–")
		for _, v := range d.New {
			line += " → " + cmp.Or(v, "–")
		}
		lines = append(lines, line)
	}
	for _, kind := range []string{"settings", "system", "machine"} {
		if more := of[kind] - mostDiffers; more > 0 {
			lines = append(lines, fmt.Sprintf("%s: and %d more (--json has all)", kind, more))
		}
	}
	cells := map[string][]string{} // by what is said of them
	for _, u := range c.Unlike {
		what := fmt.Sprintf("cells not compared with %s because their settings differ (--unlike compares them)", u.New)
		if u.Compared {
			what = fmt.Sprintf("cells compared with %s although their settings differ", u.New)
		}
		cells[what] = append(cells[what], strings.TrimSuffix(u.System+", "+u.Where, ", "))
	}
	for _, o := range c.Only {
		what := fmt.Sprintf("cells in %s but not in %s", o.In, o.NotIn)
		cells[what] = append(cells[what], strings.TrimSuffix(o.System+", "+o.Where, ", "))
	}
	for _, what := range slices.Sorted(maps.Keys(cells)) {
		lines = append(lines, what+": "+words.Some(cells[what]))
	}
	if len(lines) == 0 {
		lines = []string{"nothing (recorded: settings, versions, machine, links)"}
	}
	return lines
}

// compareTables returns a table of all cells together, then one for each metric: with all cells
// for requested metrics, and with changed cells for others.
func compareTables(c *analysis.Comparison) (all []compareTable) {
	if len(c.Overall) > 0 {
		all = append(all, overTable(c))
	}
	for _, m := range c.Metrics {
		if t := metricTable(c, m); len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// overTable returns the table of all cells together, without columns that would be the same in
// every row: the run if there is only one, and inconclusive cells if there are none.
func overTable(c *analysis.Comparison) compareTable {
	t := compareTable{Asked: true}
	t.Label = "All cells together (new / base, geometric mean over cells and trials)"
	t.Head = heads("metric", "run", "#ratio", "#95 %", "#p (Holm)", "#better", "#worse", "#not significant",
		"#inconclusive")
	open := false
	for _, o := range c.Overall {
		m := c.Metrics[slices.IndexFunc(c.Metrics, func(m record.Metric) bool { return m.Key == o.Metric })]
		k := slices.IndexFunc(c.New, func(r analysis.ComparedRun) bool { return r.Dir == o.New })
		ratio, p := ratioText(o.Value, o.Significant, o.Better), pText(o.PHolm)
		decided := o.BetterCells + o.WorseCells + o.SameCells + o.SmallCells
		switch { // "~" would mean no difference
		case !o.PHolm.Known():
			ratio, p = strings.TrimPrefix(ratio, "~ "), "not tested"
		case decided == 0 && !o.Significant:
			ratio, p = strings.TrimPrefix(ratio, "~ "), "too few"
		}
		open = open || o.OpenCells > 0
		t.add(m.Name, newName(c, k), ratio, interval(o.Lo, o.Hi), p, fmt.Sprint(o.BetterCells),
			fmt.Sprint(o.WorseCells), fmt.Sprint(o.SameCells+o.SmallCells), fmt.Sprint(o.OpenCells))
	}
	if !open {
		t.drop(8)
	}
	if len(c.New) == 1 {
		t.drop(1)
	}
	return t
}

func metricTable(c *analysis.Comparison, m record.Metric) compareTable {
	t := compareTable{Asked: slices.Contains(c.Asked, m.Key)}
	t.Label = words.Capital(m.Name) + " (" + m.Key + ")"
	if !t.Asked {
		t.Label += ": cells that changed"
	}
	top := []string{"cell", "system", "#base"}
	for i := range c.New {
		name := "#" + newName(c, i)
		top = append(top, name, name+" / base", "#95 %", "#p (Holm)")
	}
	t.Head = heads(top...)
	for _, cell := range c.Cells {
		v, ok := cell.Metrics[m.Key]
		changed := slices.ContainsFunc(v.New,
			func(x *analysis.ComparedValue) bool { return x != nil && x.Ratio.Better != 0 })
		if !ok || !t.Asked && !changed {
			continue
		}
		row := []string{cell.Where, cell.System, medianText(v.Base, m.Unit)}
		for _, x := range v.New {
			row = append(row, comparedText(x, m.Unit)...)
		}
		t.add(row...)
	}
	return t
}

// comparedText formats a new run's median, its ratio to the base run's, the interval and p.
func comparedText(x *analysis.ComparedValue, unit string) []string {
	if x == nil {
		return []string{"–", "", "", ""}
	}
	q := x.Ratio
	ratio, p := ratioText(q.Value, q.Significant, q.Better), pText(q.PHolm)
	if q.CutOff != "" {
		ratio = map[int]string{1: "better", -1: "worse", 0: "~"}[q.Better]
	}
	if !q.PHolm.Known() { // not tested
		ratio = strings.TrimPrefix(ratio, "~ ")
	}
	if q.Needed > 0 {
		p = fmt.Sprintf("too few (needs %d)", q.Needed)
	}
	return []string{medianText(x.Summary, unit), ratio, interval(q.Lo, q.Hi), p}
}

// medianText formats a median; "cut off" if half of the trials are censored.
func medianText(s analysis.Summary, unit string) string {
	if !s.Median.Known() && s.Censored > 0 {
		return "cut off"
	}
	return words.Show(float64(s.Median), unit)
}

// ratioText returns "1.05× worse" or, if it is not significant, "~ 1.01×".
func ratioText(v analysis.Num, significant bool, better int) string {
	switch {
	case !v.Known():
		return "–"
	case !significant:
		return "~ " + words.Show(float64(v), "×")
	}
	return words.Show(float64(v), "×") + map[int]string{1: " better", -1: " worse"}[better]
}

func interval(lo, hi analysis.Num) string {
	if !lo.Known() || !hi.Known() {
		return ""
	}
	return words.Digits(float64(lo), 3) + "–" + words.Digits(float64(hi), 3)
}

func pText(p analysis.Num) string {
	switch {
	case !p.Known():
		return ""
	case p < 0.001:
		return "< 0.001"
	}
	return words.Digits(float64(p), 2)
}
