package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// proseWidth is how wide text is at most: longer lines are hard to read. Tables take
// what there is.
const proseWidth = 100

// WriteText writes the report for a terminal of the given width; where it is 0 there
// is none, and tables are as wide as they are, with nothing left out: the verdict, a table per panel, and what to know before believing it.
func (r *Report) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	if r.Question != "" {
		wrap(&b, r.Question, width, "")
	}
	wrap(&b, r.Verdict.Text, width, "")
	b.WriteByte('\n')
	var tables []textTable
	if r.lens.textTables != nil {
		tables = r.lens.textTables(r)
	}
	for _, t := range tables {
		t.write(&b, width)
	}
	if tables == nil {
		for _, key := range r.shape.groups {
			r.textTable(&b, key, width)
		}
	}
	for _, f := range r.Findings {
		mark := map[Tone]string{Bad: "!! ", Warn: "!  "}[f.Tone]
		if mark == "" {
			continue // the page tells the quiet ones
		}
		wrap(&b, mark+f.Title+": "+f.Text+" ["+f.Rule+"]", width, "   ")
		for i, e := range f.Evidence {
			if i == 3 && len(f.Evidence) > 4 {
				fmt.Fprintf(&b, "     and %d more\n", len(f.Evidence)-i)
				break
			}
			wrap(&b, "   - "+e, width, "     ")
		}
		if f.Try != "" {
			wrap(&b, "   Try: "+f.Try, width, "     ")
		}
	}
	for _, n := range r.textNotes() {
		wrap(&b, "   "+n, width, "   ")
	}
	// The scenario's goal is in its table.
	WriteRulings(&b, slices.DeleteFunc(slices.Clone(r.Gates), func(g Ruling) bool { return g.Goal }), width)
	_, err := io.WriteString(w, b.String())
	return err
}

// textColumn is one column of the terminal's table.
type textColumn struct {
	head  string
	right bool
	value func(*Cell) string
	most  int // characters of a value on a terminal; 0: all
	drop  int // columns with a higher number go first when the width is short
}

// textMetric is a metric as a column of the terminal's table, with its interval.
type textMetric struct {
	key, head string
	drop      int
}

func (r *Report) textTable(b *strings.Builder, key string, width int) {
	var cells []*Cell
	for _, c := range r.cells() {
		if r.shape.panel(c) == key {
			cells = append(cells, c)
		}
	}
	var cols []textColumn
	if a := r.shape.axis; a != nil {
		cols = append(cols, textColumn{head: a.Label, right: true, value: func(c *Cell) string { f, _ := c.Factor(a.Path); return f.Text() }})
	}
	cols = append(cols, textColumn{head: "system", most: mostName, value: func(c *Cell) string { return c.System }})
	metric := func(key, head string, drop int) {
		m, ok := r.metric(key)
		if !ok || !r.measured(key) {
			return
		}
		cols = append(cols, textColumn{head: head, right: true, drop: drop, value: func(c *Cell) string {
			s, ok := c.Metrics[key]
			if !ok {
				return "–"
			}
			return show(float64(s.Median), m.Unit)
		}}, textColumn{head: "", drop: drop, value: func(c *Cell) string {
			s, ok := c.Metrics[key]
			if !ok {
				return ""
			}
			return plusMinus(s, m.Unit)
		}})
	}
	for _, m := range r.lens.text(r) {
		if m.key != ratioColumn {
			metric(m.key, m.head, m.drop)
		} else if r.Baseline != "" {
			cols = append(cols, textColumn{head: m.head, right: true, value: func(c *Cell) string { return c.ratioEntry(r.headline).Text }})
		}
	}
	cols = append(cols,
		textColumn{head: "success", right: true, value: func(c *Cell) string { return percent(float64(c.Success.Value)) }},
		textColumn{head: "late", right: true, drop: 1, value: func(c *Cell) string {
			if c.late() == 0 {
				return ""
			}
			return count(c.late())
		}},
		textColumn{head: "valid", right: true, value: func(c *Cell) string {
			s := fmt.Sprintf("%d/%d", c.Valid, c.Planned)
			if c.Invalid+c.Failed > 0 {
				s = "!" + s
			}
			return s
		}})
	var gone []string
	for {
		lines, wide := layout(cols, cells, width)
		most := 0
		for _, c := range cols {
			most = max(most, c.drop)
		}
		if width == 0 || wide <= width || most == 0 {
			if name := r.shape.names[key]; name != "" {
				b.WriteString(clip(name, width) + "\n")
			}
			for _, l := range lines {
				b.WriteString(clip(l, width) + "\n")
			}
			noRoom(b, gone, width)
			b.WriteByte('\n')
			return
		}
		var kept []textColumn
		for _, c := range cols {
			if c.drop < most {
				kept = append(kept, c)
			} else if c.head != "" && slices.ContainsFunc(cells, func(cell *Cell) bool { return c.value(cell) != "" }) {
				gone = append(gone, c.head)
			}
		}
		cols = kept
	}
}

// layout aligns the columns of cells.
func layout(cols []textColumn, cells []*Cell, width int) (lines []string, wide int) {
	t := textTable{}
	for i, col := range cols {
		t.cut(i, col.most)
		t.head, t.right = append(t.head, col.head), append(t.right, col.right)
	}
	for _, c := range cells {
		var row []string
		for _, col := range cols {
			row = append(row, col.value(c))
		}
		t.rows = append(t.rows, row)
	}
	t.cutFor(width)
	return t.lines()
}

// mostName is how many characters of a name stand in a table on a terminal.
const mostName = 16

// textTable is a table for the terminal. A column with no head is an interval,
// which stands close to what is before it.
type textTable struct {
	head  []string
	right []bool
	rows  [][]string
	most  map[int]int // characters of a column on a terminal; missing or 0: all
	drop  map[int]int // columns that go when the width is short, those with the highest number first
	below []string    // lines under it
}

func (t textTable) write(b *strings.Builder, width int) {
	t.cutFor(width)
	lines, wide := t.lines()
	var gone []string
	for most := 2; width > 0 && wide > width && most > 0; most-- {
		for col, drop := range t.drop {
			if drop == most {
				if slices.ContainsFunc(t.rows, func(row []string) bool { return row[col] != "" }) {
					gone = append(gone, t.head[col])
				}
				for _, row := range t.rows {
					row[col] = ""
				}
			}
		}
		lines, wide = t.lines()
	}
	for _, l := range lines {
		b.WriteString(clip(l, width) + "\n")
	}
	noRoom(b, gone, width)
	for _, l := range t.below {
		wrap(b, "  "+l, width, "      ")
	}
	b.WriteByte('\n')
}

// noRoom names the columns that a table does not have for want of room.
func noRoom(b *strings.Builder, heads []string, width int) {
	var names []string
	for _, head := range heads {
		if head == "" {
			head = "intervals"
		}
		if !slices.Contains(names, head) {
			names = append(names, head)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		wrap(b, "  Left out for want of columns: "+strings.Join(names, ", ")+". A wider terminal has them.", width, "      ")
	}
}

// cut lets a column have so many characters on a terminal.
func (t *textTable) cut(col, most int) {
	if t.most == nil {
		t.most = map[int]int{}
	}
	t.most[col] = most
}

// cutFor shortens what is too long for a terminal; where there is none, nothing.
func (t *textTable) cutFor(width int) {
	if width == 0 {
		return
	}
	for col, most := range t.most {
		if most == 0 {
			continue
		}
		t.head[col] = clip(t.head[col], most)
		for _, row := range t.rows {
			row[col] = clip(row[col], most)
		}
	}
}

// lines aligns the columns; empty ones vanish.
func (t textTable) lines() (lines []string, width int) {
	rows := make([][]string, len(t.rows)+1)
	for col, head := range t.head {
		values := []string{head}
		wide, any := utf8.RuneCountInString(head), false
		for _, row := range t.rows {
			v := row[col]
			any = any || v != ""
			wide = max(wide, utf8.RuneCountInString(v))
			values = append(values, v)
		}
		if !any {
			continue
		}
		for i, v := range values {
			pad := strings.Repeat(" ", wide-utf8.RuneCountInString(v))
			if t.right[col] {
				v = pad + v
			} else {
				v += pad
			}
			rows[i] = append(rows[i], v)
		}
	}
	for i, row := range rows {
		line := "  "
		for j, v := range row {
			if j > 0 {
				// An interval stands close to its median.
				if strings.HasPrefix(strings.TrimSpace(v), "±") || rows[0][j] == strings.Repeat(" ", utf8.RuneCountInString(v)) {
					line += " "
				} else {
					line += "  "
				}
			}
			line += v
		}
		if i > 0 && len(t.rows) > 1 && i > 1 && rows[i][0] == rows[i-1][0] && strings.TrimSpace(rows[i][0]) != "" && len(rows[i]) > 1 {
			// What the first column repeats is said once.
			n := utf8.RuneCountInString(rows[i][0])
			line = "  " + strings.Repeat(" ", n) + string([]rune(line)[2+n:])
		}
		width = max(width, utf8.RuneCountInString(strings.TrimRight(line, " ")))
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines, width
}

// textNotes say how to read the table and when not to trust it.
func (r *Report) textNotes() []string {
	var notes []string
	if r.Loads == nil {
		middles := "Medians over valid trials"
		if r.Syncs != nil {
			middles = "Geometric means of the time, medians of the others, over valid trials"
		}
		notes = append(notes, middles+" ± the wider half of the interval"+map[bool]string{true: "; ratio to " + r.Baseline + " within blocks", false: ""}[r.Baseline != ""]+".")
	}
	tilde := false
	for _, c := range r.Cells {
		if q, ok := c.Ratios[r.headline]; ok && !q.Shown {
			tilde = true
		}
	}
	if slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.late() > 0 }) {
		notes = append(notes, "late: operations past the experiment's own deadline, or starved by the link; not failures, not in the success rate.")
	}
	if tilde {
		notes = append(notes, "~  a difference is not shown.")
	}
	if r.Run.Invalid+r.Run.Failed > 0 {
		notes = append(notes, fmt.Sprintf("!  %d of %d trials are not valid and not counted: %s.", r.Run.Invalid+r.Run.Failed, r.Run.Done, r.reasonWords()))
	}
	if len(r.Skipped) > 0 {
		notes = append(notes, plural(int64(len(r.Skipped)), "cell was", "cells were")+" left out, whole or in part, because one operation takes too long there.")
	}
	if r.Run.State != "complete" && r.Loads == nil {
		notes = append(notes, fmt.Sprintf("The run is %s; %d of %d trials.", r.Run.State, r.Run.Done, r.Run.Planned))
	}
	return append(notes, r.Notes...)
}

// reasonWords names the reasons of invalid trials, the most frequent first.
func (r *Report) reasonWords() string {
	counts := map[string]int64{}
	for _, v := range r.Invalid {
		if v.State == superseded {
			continue
		}
		for _, why := range v.Reasons {
			counts[why]++
		}
	}
	var words []string
	for _, n := range sortedByCount(counts) {
		words = append(words, fmt.Sprintf("%s (%d)", n, counts[n]))
	}
	return list(words)
}

// wrap writes words in lines of at most width and of [proseWidth]; later lines begin with indent.
func wrap(b *strings.Builder, text string, width int, indent string) {
	if width == 0 || width > proseWidth {
		width = proseWidth
	}
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line := lead
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	b.WriteString(line + "\n")
}
