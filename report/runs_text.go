package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// WriteText writes the comparison for a terminal of the given width (0: there is none, and tables are whole):
// first what differed, then all cells together, then the cells.
func (c *RunComparison) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	for _, line := range c.runLines() {
		wrap(&b, line, width, "      ")
	}
	b.WriteString("\n")
	c.differText(&b, width)
	if t := c.overTable(); len(t.rows) > 0 {
		b.WriteString("All cells together (geometric mean of new / base):\n")
		t.write(&b, width)
	}
	for _, m := range c.Metrics {
		if t := c.cellTable(m); len(t.rows) > 0 {
			b.WriteString(clip(capital(m.Name)+" ("+m.Key+"), "+better(m.Better)+c.partly(m), width) + "\n")
			t.write(&b, width)
		}
	}
	for _, line := range c.closing() {
		wrap(&b, "   "+line, width, "   ")
	}
	WriteRulings(&b, c.Gates, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// runLines name the runs.
func (c *RunComparison) runLines() []string {
	line := func(role string, r ComparedRun) string {
		s := role + r.Dir
		if !r.Run.Started.IsZero() {
			s += ", " + r.Run.Started.UTC().Format("2006-01-02 15:04") + " UTC"
		}
		if r.Plimsoll != "" {
			s += ", plimsoll " + r.Plimsoll
		}
		return s + fmt.Sprintf(", %s of %d valid", plural(int64(r.Run.Valid), "trial", "trials"), r.Run.Done)
	}
	lines := []string{line("base: ", c.Base)}
	for i, r := range c.New {
		role := "new:  "
		if len(c.New) > 1 {
			role = fmt.Sprintf("new %d: ", i+1)
		}
		lines = append(lines, line(role, r))
	}
	return lines
}

// mostDiffers is how many differences of one kind are told in words; JSON has all.
const mostDiffers = 8

// differLines say what differed.
func (c *RunComparison) differLines() []string {
	var lines []string
	of := map[string]int{}
	for _, d := range c.Differs {
		of[d.Kind]++
		if of[d.Kind] <= mostDiffers {
			lines = append(lines, d.said().words())
		}
	}
	for _, kind := range []string{"settings", "system", "machine"} {
		if more := of[kind] - mostDiffers; more > 0 {
			lines = append(lines, fmt.Sprintf("%s: and %d more (--json has all)", kind, more))
		}
	}
	if len(lines) == 0 {
		lines = []string{"nothing that is recorded: settings, versions, machine, links, busyness"}
	}
	return lines
}

func (d Difference) words() string {
	said := func(v string) string {
		if v == "" {
			return "–"
		}
		return v
	}
	s := d.Kind + ": " + d.What
	if d.What == "" {
		s = d.Kind
	}
	s += " " + said(d.Base)
	for _, v := range d.New {
		s += " → " + said(v)
	}
	return s
}

func (c *RunComparison) differText(b *strings.Builder, width int) {
	b.WriteString("What differed:\n")
	for _, line := range c.differLines() {
		wrap(b, "  "+line, width, "      ")
	}
	for _, line := range c.missing() {
		wrap(b, "  "+line, width, "      ")
	}
	b.WriteString("\n")
}

// missing says which cells are not compared.
func (c *RunComparison) missing() []string {
	var lines []string
	unlike := map[string][]string{}
	compared := false
	for _, u := range c.Unlike {
		compared = compared || u.Compared
		unlike[u.New] = append(unlike[u.New], strings.TrimSuffix(u.System+", "+u.Where, ", "))
	}
	for _, n := range c.New {
		words := unlike[n.Dir]
		switch {
		case len(words) == 0:
		case compared:
			lines = append(lines, fmt.Sprintf("cells: compared with %s although their settings differ: %s", n.Dir, few(words, 4)))
		default:
			lines = append(lines, fmt.Sprintf("cells: not compared with %s, because settings differ (--unlike compares them): %s", n.Dir, few(words, 4)))
		}
	}
	type sides struct{ in, not string }
	only := map[sides][]string{}
	var order []sides
	for _, o := range c.Only {
		k := sides{o.In, o.NotIn}
		if only[k] == nil {
			order = append(order, k)
		}
		only[k] = append(only[k], strings.TrimSuffix(o.System+", "+o.Where, ", "))
	}
	for _, k := range order {
		lines = append(lines, fmt.Sprintf("cells: in %s and not in %s: %s", k.in, k.not, few(only[k], 4)))
	}
	return lines
}

// newHead is what a new run is called at the head of a column.
func (c *RunComparison) newHead(i int) string {
	if len(c.New) == 1 {
		return "new"
	}
	return fmt.Sprintf("new %d", i+1)
}

func (c *RunComparison) overTable() textTable {
	t := textTable{head: []string{"metric", "run", "ratio", "95 %", "p (Holm)", "better", "worse", "small", "~", "spread"}, right: []bool{false, false, true, true, true, true, true, true, true, true}}
	for _, o := range c.Overall {
		m, _ := c.base.metric(o.Metric)
		run := ""
		if len(c.New) > 1 {
			run = c.newHead(slices.IndexFunc(c.New, func(r ComparedRun) bool { return r.Dir == o.New }))
		}
		row := []string{m.Name, run, ratioWords(o.Value, o.Shown, o.Worth), intervalWords(o.Lo, o.Hi), probability(o.PHolm)}
		for _, n := range []int{o.Better, o.Worse, o.Small, o.NotShown, o.Spread} {
			row = append(row, map[bool]string{true: "", false: fmt.Sprint(n)}[n == 0])
		}
		t.rows = append(t.rows, row)
	}
	t.drop = map[int]int{4: 1, 9: 2}
	return t
}

// ratioWords is "1.05× worse", "~ 1.01×".
func ratioWords(v Num, shown bool, worth int) string {
	if !v.Known() {
		return "–"
	}
	s := show(float64(v), "×")
	if !shown {
		return "~ " + s
	}
	return s + map[int]string{1: " better", -1: " worse"}[worth]
}

// spreadMost is the ratio of spreads beyond which its size says nothing more.
const spreadMost = 20

func (s SpreadChange) words() string {
	switch v := float64(s.Value); {
	case v > spreadMost:
		return fmt.Sprintf("over %d×", spreadMost)
	case v < 1./spreadMost:
		return "under " + show(1./spreadMost, "×")
	default:
		return show(v, "×")
	}
}

func (q RunRatio) words() string {
	if q.Never == "" {
		return ratioWords(q.Value, q.Shown, q.Worth)
	}
	if !q.Shown {
		return "~"
	}
	return map[int]string{1: "better", -1: "worse"}[q.Worth]
}

// cutOffWords stand for a median that was not come to within what was watched: the
// system may well get there, later.
const cutOffWords = "cut off"

// medianWords is a median; cut off where half of the trials did not come to it.
func medianWords(s Summary, m record.Metric) string {
	if !s.Median.Known() && s.beyond > 0 {
		return cutOffWords
	}
	return show(float64(s.Median), m.Unit)
}

func intervalWords(lo, hi Num) string {
	if !lo.Known() && !hi.Known() {
		return ""
	}
	end := func(v Num, open string) string {
		if !v.Known() {
			return open
		}
		return digits(float64(v), 3)
	}
	return "(" + end(lo, "?") + "–" + end(hi, "∞") + ")"
}

// partly says that a table has only some of the cells.
func (c *RunComparison) partly(m record.Metric) string {
	if slices.Contains(c.full, m.Key) {
		return ""
	}
	return ": cells that changed"
}

// shown reports whether the row of a metric is in the tables: all of the headline
// and of the metrics asked for, else those that changed.
func (c *RunComparison) shows(m record.Metric, row ComparedMetric) bool {
	return slices.Contains(c.full, m.Key) || slices.ContainsFunc(row.New, func(v *ComparedValue) bool {
		return v != nil && (v.Ratio.Shown && v.Ratio.Worth != 0 || v.Spread.Shown)
	})
}

func (c *RunComparison) cellTable(m record.Metric) textTable {
	t := textTable{head: []string{"cell", "system", "base", ""}, right: []bool{false, false, true, false}, drop: map[int]int{3: 1}, most: map[int]int{1: mostName}}
	for i := range c.New {
		at := len(t.head)
		head := c.newHead(i)
		t.head = append(t.head, head, "", head+" / base", "", "p (Holm)")
		t.right = append(t.right, true, false, true, true, true)
		t.drop[at+1], t.drop[at+4] = 1, 2
	}
	t.head, t.right = append(t.head, "spread"), append(t.right, false)
	for _, cell := range c.Cells {
		row, ok := cell.Metrics[m.Key]
		if !ok || !c.shows(m, row) {
			continue
		}
		line := []string{cell.Where, cell.System, medianWords(row.Base, m), plusMinus(row.Base, m.Unit)}
		var spread []string
		for i, v := range row.New {
			if v == nil {
				line = append(line, "–", "", "", "", "")
				continue
			}
			line = append(line, medianWords(v.Summary, m), plusMinus(v.Summary, m.Unit),
				v.Ratio.words(), intervalWords(v.Ratio.Lo, v.Ratio.Hi), probability(v.Ratio.PHolm))
			if v.Spread.Shown {
				word := "spread " + v.Spread.words()
				if len(row.New) > 1 {
					word = c.newHead(i) + ": " + word
				}
				spread = append(spread, word)
			}
		}
		t.rows = append(t.rows, append(line, strings.Join(spread, ", ")))
	}
	return t
}

func probability(p Num) string {
	switch {
	case !p.Known():
		return ""
	case p < 0.001:
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", float64(p))
}

// closing are the notes under the tables.
func (c *RunComparison) closing() []string {
	notes := []string{"Medians over valid trials ± the wider half of the interval. ~ a difference is not shown: the interval of the ratio excludes 1, and the rank test agrees after Holm's correction over the metric's cells, or nothing is claimed."}
	if len(c.Overall) > 0 {
		notes = append(notes, "All cells together: Student's test over blocks decides, after Holm's correction over the new runs; the interval is of that run alone, so it may exclude 1 beside a ~.")
	}
	if i := slices.IndexFunc(c.Overall, func(o OverCells) bool { return o.Warn != "" }); i >= 0 {
		notes = append(notes, "All cells together: nothing is claimed of "+c.Overall[i].Warn+".")
	}
	if slices.ContainsFunc(c.Overall, func(o OverCells) bool { return o.outside }) {
		notes = append(notes, "All cells together is of the means of trials, the cells' ratios are of their medians: single trials that lie far off pull it, here beyond the cells' ratios.")
	}
	if slices.ContainsFunc(c.Overall, func(o OverCells) bool { return o.Small > 0 }) {
		notes = append(notes, "small: cells whose difference is shown and below the effect floor of "+percent(EffectFloor)+": neither better nor worse.")
	}
	if slices.ContainsFunc(c.Cells, func(cell ComparedCell) bool {
		for _, row := range cell.Metrics {
			if slices.ContainsFunc(row.New, func(v *ComparedValue) bool { return v != nil && v.Ratio.Never != "" }) {
				return true
			}
		}
		return false
	}) {
		notes = append(notes, "cut off: in half or more of the trials it lies beyond the end of what was watched; how far is not known.")
	}
	return append(notes, c.Notes...)
}
