package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one mistake in an experiment file or in a --set argument.
type Error struct {
	File    string // "boost.yaml", or "--set"
	Line    int    // 1-based; 0 when the mistake has no place in the file
	Column  int    // 1-based, in characters
	Message string
	Hint    string // what to do about it; may be empty
	Source  string // the line itself; empty when it must not be shown
	Width   int    // characters to underline
	set     bool   // Source is a --set argument
	src     *source
}

// Error is the place, the message, the line with a caret, and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	gutter := fmt.Sprintf("%5d", e.Line)
	switch {
	case e.set && e.Source != "":
		fmt.Fprintf(&b, "--set %s: %s", e.Source, e.Message)
		gutter = "--set"
	case e.set:
		fmt.Fprintf(&b, "--set: %s", e.Message)
	case e.Line == 0:
		fmt.Fprintf(&b, "%s: %s", e.File, e.Message)
	default:
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	}
	if e.Source != "" && e.Line > 0 {
		line, column := e.excerpt()
		pad := []rune(line)[:column-1]
		for i, r := range pad {
			if r != '\t' {
				pad[i] = ' '
			}
		}
		width := max(1, min(e.Width, len([]rune(line))-column+1))
		fmt.Fprintf(&b, "\n%s | %s\n      | %s%s", gutter, line, string(pad), strings.Repeat("^", width))
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\n      hint: %s", e.Hint)
	}
	return b.String()
}

// excerpt is the part of the source line around the mistake, and the column of
// the mistake in it: one long line must not flood the terminal.
func (e *Error) excerpt() (line string, column int) {
	const most = 90
	r := []rune(e.Source)
	column = max(1, min(e.Column, len(r)+1))
	if len(r) <= most {
		return e.Source, column
	}
	from := max(0, min(column-1-most/3, len(r)-most))
	to := min(len(r), from+most)
	line = string(r[from:to])
	column -= from
	if to < len(r) {
		line += "…"
	}
	if from > 0 {
		line, column = "…"+line, column+1
	}
	return line, column
}

// Errors are all the mistakes found, in the order of the file; those that came
// from --set follow.
type Errors []*Error

func (es Errors) Error() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "\n")
}

// sorted orders the errors by place and drops repetitions.
// What may be secret is not quoted from here on.
func (es Errors) sorted() Errors {
	for _, e := range es {
		e.blank()
	}
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(boolInt(a.set), boolInt(b.set)),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	return slices.CompactFunc(es, func(a, b *Error) bool { return *a == *b })
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
