package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the comparison for a pull request: what differed, all
// cells together, the cells of the headline, and the others folded.
func (c *RunComparison) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", markdownText(c.Sentence()))
	for _, line := range c.runLines() {
		fmt.Fprintf(&b, "- %s\n", markdownText(line))
	}
	b.WriteString("\n**What differed**\n\n")
	for _, line := range append(c.differLines(), c.missing()...) {
		fmt.Fprintf(&b, "- %s\n", markdownText(line))
	}
	if t := c.overTable(); len(t.rows) > 0 {
		b.WriteString("\n**All cells together** (geometric mean of new / base)\n\n")
		t.markdown(&b)
	}
	for _, m := range c.Metrics {
		t := c.cellTable(m)
		if len(t.rows) == 0 {
			continue
		}
		title := markdownText(capital(m.Name) + ", " + better(m.Better) + c.partly(m))
		folded := m.Key != c.Headline && !slices.Contains(c.full, m.Key)
		if folded {
			fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n", title)
		} else {
			fmt.Fprintf(&b, "\n**%s**\n\n", title)
		}
		t.markdown(&b)
		if folded {
			b.WriteString("\n</details>\n")
		}
	}
	rulingsMarkdown(&b, c.Gates)
	b.WriteString("\n")
	for _, line := range c.closing() {
		fmt.Fprintf(&b, "<sub>%s</sub><br>\n", markdownText(line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Sentence says what the headline shows over all cells, run by run.
func (c *RunComparison) Sentence() string {
	m, _ := c.base.metric(c.Headline)
	var words []string
	for _, o := range c.Overall {
		if o.Metric != c.Headline {
			continue
		}
		who := "new"
		if len(c.New) > 1 {
			who = o.New
		}
		cells := o.Better + o.Worse + o.Small + o.NotShown
		switch {
		case o.Better > 0 && o.Worse > 0:
			words = append(words, fmt.Sprintf("%s: better in %d of %s and worse in %d", who, o.Better, plural(int64(cells), "cell", "cells"), o.Worse))
		case o.Worse > 0:
			words = append(words, fmt.Sprintf("%s: worse in %d of %s", who, o.Worse, plural(int64(cells), "cell", "cells")))
		case o.Better > 0:
			words = append(words, fmt.Sprintf("%s: better in %d of %s", who, o.Better, plural(int64(cells), "cell", "cells")))
		case o.Worth != 0:
			words = append(words, fmt.Sprintf("%s: %s over all cells together", who, ratioWords(o.Value, o.Shown, o.Worth)))
		default:
			words = append(words, who+": no difference is shown")
		}
	}
	if words == nil {
		return capital(m.Name) + ": nothing can be compared"
	}
	return capital(m.Name) + ", " + strings.Join(words, "; ")
}

var markdownEscapes = strings.NewReplacer("|", "\\|", "<", "&lt;", ">", "&gt;", "\n", " ", "*", "\\*", "_", "\\_", "`", "\\`", "~", "\\~")

func markdownText(s string) string { return markdownEscapes.Replace(s) }

// markdown writes the table; what stands close to the column before it is put
// into it.
func (t textTable) markdown(b *strings.Builder) {
	var cols []int
	for col := range t.head {
		if slices.ContainsFunc(t.rows, func(row []string) bool { return row[col] != "" }) {
			cols = append(cols, col)
		}
	}
	line := func(row []string) {
		var cells []string
		for _, col := range cols {
			if t.head[col] == "" && len(cells) > 0 {
				cells[len(cells)-1] = strings.TrimSpace(cells[len(cells)-1] + " " + markdownText(row[col]))
			} else {
				cells = append(cells, markdownText(row[col]))
			}
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(t.head)
	b.WriteString("|")
	for _, col := range cols {
		if t.head[col] != "" {
			b.WriteString(map[bool]string{true: "---:|", false: "---|"}[t.right[col]])
		}
	}
	b.WriteString("\n")
	for _, row := range t.rows {
		line(row)
	}
}
