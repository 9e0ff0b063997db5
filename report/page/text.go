package page

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

const (
	// plainWidth is the width without a terminal, and widestProse that of prose on a wide
	// terminal.
	plainWidth, widestProse = 80, 100
	// mostLines is the largest height of a summary: a screen of 24 lines minus a blank line
	// and the path of the page, which the caller adds.
	mostLines = 22
	// mostWarnings and mostGates are the largest numbers of them in a summary.
	mostWarnings, mostGates = 3, 3
)

// Text writes the summary of a run for a terminal of a width; with 0 there is no terminal and
// there are no colours. Control characters in texts from others are removed. With verbose it
// has all columns and findings, however long.
func Text(w io.Writer, r *analysis.Result, width int, verbose bool) error {
	t := &text{r: r, width: cmp.Or(width, plainWidth), verbose: verbose,
		colour: width > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	t.prose(r.Verdict.Tone, "", r.Verdict.Text)
	t.line("", "")
	head := len(t.lines)
	t.ratios()
	t.warnings()
	t.gates()
	t.validity()
	foot := slices.Clone(t.lines[head:])
	t.lines = t.lines[:head]
	room := mostLines - head - len(foot)
	for i, own := range r.Tables {
		if i == 0 && !own.Folded || verbose {
			room -= t.table(ownTable(own), room*2/3)
		}
	}
	t.cells(room)
	t.lines = append(t.lines, foot...)
	_, err := io.WriteString(w, strings.TrimRight(strings.Join(t.lines, "\n"), "\n")+"\n")
	return err
}

type text struct {
	r       *analysis.Result
	width   int
	verbose bool
	colour  bool
	lines   []string
}

// sgr are the colours of tones.
var sgr = map[analysis.Tone]string{analysis.Good: "\x1b[32m", analysis.Warn: "\x1b[33m", analysis.Bad: "\x1b[31m"}

// line adds a line, cut to the width.
func (t *text) line(tone analysis.Tone, s string) {
	s = strings.TrimRight(ui.Clean(s), " ")
	if !t.verbose {
		s = words.Clip(s, t.width)
	}
	if c := sgr[tone]; c != "" && t.colour {
		s = c + s + "\x1b[0m"
	}
	t.lines = append(t.lines, s)
}

// prose adds a wrapped text; later lines are indented like the first.
func (t *text) prose(tone analysis.Tone, mark, s string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(mark))
	for _, line := range words.Wrap(mark, indent, s, min(t.width, widestProse)) {
		t.line(tone, line)
	}
}

// more adds a line about what was left out.
func (t *text) more(n int, what string) {
	if n > 0 {
		t.line("", fmt.Sprintf("   %s: --verbose, or the page.", words.Plural(int64(n), "more "+what, "more "+what+"s")))
	}
}

// warnings adds findings about unreliable numbers and failures, unless the verdict includes them;
// with verbose all findings.
func (t *text) warnings() {
	n, left := 0, 0
	for _, f := range t.r.Findings {
		serious := f.Tone == analysis.Warn || f.Tone == analysis.Bad
		switch {
		case !t.verbose && (!serious || f.InVerdict):
			continue
		case !t.verbose && n == mostWarnings:
			left++
			continue
		}
		n++
		mark := map[analysis.Tone]string{analysis.Bad: "!! ", analysis.Warn: "!  "}[f.Tone]
		title := words.Wrap(mark, "   "[:len(mark)], f.Title, min(t.width, widestProse))
		if len(title) > 2 && !t.verbose {
			title = []string{title[0], title[1] + "…"}
		}
		for _, line := range title {
			t.line(f.Tone, line)
		}
		if t.verbose {
			for _, e := range f.Evidence {
				t.prose("", "   - ", e)
			}
			if f.Advice != "" {
				t.prose("", "   ", f.Advice)
			}
		}
	}
	t.more(left, "finding")
}

// gates adds a line for each gate, failed ones first.
func (t *text) gates() {
	all := gateViews(t.r.Gates)
	slices.SortStableFunc(all, func(a, b gateView) int {
		return slices.Index(gateTones, a.Tone) - slices.Index(gateTones, b.Tone)
	})
	for i, g := range all {
		if i == mostGates && !t.verbose {
			t.more(len(all)-i, "gate")
			return
		}
		t.line(g.Tone, "gate "+g.Rule+": "+g.Outcome)
		for _, line := range g.Deciding {
			if t.verbose {
				t.prose("", "   - ", line)
			}
		}
	}
}

// validity adds a line if the run is not complete, which is no finding.
func (t *text) validity() {
	if run := t.r.Run; run.State != "complete" {
		t.prose("", "   ", fmt.Sprintf("The run is %s: %d of %d trials.", run.State, run.Done, run.Planned))
	}
	if !t.verbose {
		return
	}
	for _, why := range reasons(t.r) {
		t.prose("", "   ", why.Key+": "+why.Value)
	}
	for _, note := range t.r.Notes {
		t.prose("", "   ", note)
	}
}

// cells adds the table of cells in at most so many lines: if they do not fit, those of the
// groups with the largest differences.
func (t *text) cells(room int) {
	columns := slices.Clone(t.r.View.Columns)
	if t.verbose {
		columns = append(columns, t.r.View.Resources...)
	}
	all := cellTable(t.r, "", columns, true)
	if n := len(all.Rows); n > max(room-2, 2) && !t.verbose {
		all.Rows = t.largest(all.Rows, max(room-3, 1))
		defer func() {
			t.lines = t.lines[:len(t.lines)-1]
			t.more(n-len(all.Rows), "cell")
			t.line("", "")
		}()
	}
	t.table(all, 0)
}

// ratios explains what ratios refer to, below the table that has them.
func (t *text) ratios() {
	if _, any := (&drawer{Result: t.r}).metric(analysis.RatioColumn); !any {
		return
	}
	what := "Ratios"
	// If the first column is another metric, such as the throughput of an open loop, the ratio
	// needs the name of its metric.
	if cols := t.r.View.Columns; len(cols) > 0 && cols[0].Metric != t.r.Headline {
		m, _ := t.r.Frame.Metric(t.r.Headline)
		what = "Ratios of " + m.Name
	}
	t.prose("", "   ", fmt.Sprintf("%s are relative to %s in the same block. ~: not significant, (n …): few pairs.",
		what, cmp.Or(t.r.Baseline, "the default")))
	t.line("", "")
}

// largest returns at most n rows of the table of cells, in order: those of the groups with the
// largest differences from the baseline.
func (t *text) largest(rows [][]entry, n int) [][]entry {
	differs := map[string]float64{}
	at := make([]int, len(rows))
	for i, c := range t.r.Cells {
		at[i] = i
		if q := c.Ratios[t.r.Headline]; q.Value > 0 {
			differs[c.Group] = max(differs[c.Group], math.Abs(math.Log(float64(q.Value))))
		}
	}
	slices.SortStableFunc(at, func(a, b int) int {
		return cmp.Compare(differs[t.r.Cells[b].Group], differs[t.r.Cells[a].Group])
	})
	at = at[:min(len(at), n)]
	slices.Sort(at)
	var kept [][]entry
	for _, i := range at {
		kept = append(kept, rows[i])
	}
	return kept
}

// table adds a table with its label and a blank line, and returns the number of lines. Unless
// verbose, it truncates long texts, then drops intervals, then columns from the right until the
// table fits the width, and limits it to most lines (0: no limit).
func (t *text) table(all table, most int) int {
	from := len(t.lines)
	if len(all.Rows) == 0 {
		return 0
	}
	if all.Label != "" {
		t.line("", all.Label)
	}
	var columns []int
	// Without a column marked as narrow, take those that fit; those before the first number name the row.
	every := t.verbose || !slices.ContainsFunc(all.Head, func(h head) bool { return h.narrow })
	named := slices.IndexFunc(all.Head, func(h head) bool { return h.Numeric })
	for i, h := range all.Head {
		if every || h.narrow || i < named && all.varies(i) {
			columns = append(columns, i)
		}
	}
	left := 0
	if n := max(most-4, 2); most > 0 && len(all.Rows) > n+1 && !t.verbose { // a line about one row is no shorter
		left, all.Rows = len(all.Rows)-n, all.Rows[:n]
	}
	narrow := false
	lines, wide := align(all, columns, narrow)
	for wide > t.width && len(columns) > 2 && !t.verbose {
		if narrow {
			last := len(columns) - 1
			if all.Label == "" { // the cells, whose last column is validity
				last--
			}
			columns = slices.Delete(columns, last, last+1)
		}
		narrow = true
		lines, wide = align(all, columns, narrow)
	}
	for _, l := range lines {
		t.line("", l)
	}
	t.more(left, "row")
	t.line("", "")
	return len(t.lines) - from
}

// mostWords is the largest number of characters of a text column in a table that is too wide.
const mostWords = 32

// align formats columns of a table as lines, with narrow without intervals and long texts, and
// returns their width.
func align(t table, columns []int, narrow bool) (lines []string, wide int) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range columns {
		fmt.Fprint(w, t.Head[c].Name, "\t")
	}
	fmt.Fprintln(w)
	for _, r := range t.Rows {
		for _, c := range columns {
			s := strings.ReplaceAll(r[c].Text, "\t", " ")
			if narrow && !t.Head[c].Numeric {
				s = words.Clip(s, mostWords)
			}
			if note := r[c].Note; !narrow && (strings.HasPrefix(note, "±") || strings.HasPrefix(note, "(")) {
				s += " " + note // an interval
			}
			fmt.Fprint(w, s, "\t")
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	for l := range strings.Lines(b.String()) {
		l = strings.TrimRight(l, " \n")
		lines, wide = append(lines, l), max(wide, utf8.RuneCountInString(l))
	}
	return lines, wide
}
