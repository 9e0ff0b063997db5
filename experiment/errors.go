package experiment

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Error is one mistake in an experiment file or in a --set argument.
type Error struct {
	File    string // "boost.yaml", or "--set link.rate"
	Line    int    // 1-based; 0 when the mistake has no place in the file
	Column  int    // 1-based, in characters
	Message string
	Hint    string // what to do about it; may be empty
	Source  string // the line itself; empty where it is long, or may hold a secret
	Width   int    // characters to underline
	set     bool   // Source is a --set argument
	src     *source
}

// Error is the place, the message, the line with a caret, and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	gutter := fmt.Sprintf("%5d", e.Line)
	switch {
	case e.set:
		fmt.Fprintf(&b, "%s: %s", e.File, e.Message)
		gutter = "--set"
	case e.Line == 0:
		fmt.Fprintf(&b, "%s: %s", e.File, e.Message)
	default:
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	}
	if line := []rune(e.Source); len(line) > 0 && e.Column <= len(line)+1 {
		pad := line[:max(0, e.Column-1)]
		for i, r := range pad {
			if r != '\t' {
				pad[i] = ' '
			}
		}
		fmt.Fprintf(&b, "\n%s | %s\n      | %s%s", gutter, e.Source, string(pad), strings.Repeat("^",
			max(1, min(e.Width, len(line)-e.Column+1))))
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\n      hint: %s", e.Hint)
	}
	return b.String()
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

// sorted orders the errors by place and drops repetitions. It adds the lines: only once
// all is read it is known what of them may be shown.
func (es Errors) sorted() Errors {
	for _, e := range es {
		if e.src != nil {
			e.Source = e.src.quote(e.Line)
		}
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

// hide keeps lines out of messages: they may hold a secret.
func (s *source) hide(from, to int) {
	if s.hidden == nil {
		s.hidden = make([]bool, len(s.lines))
	}
	for i := max(1, from); i <= min(to, len(s.lines)); i++ {
		s.hidden[i-1] = true
	}
}

// hideSections hides the sections of a file that have options of systems, and all of a
// file that has no sections.
func (s *source) hideSections(root *node) {
	if root.kind != mappingNode {
		s.hide(1, len(s.lines))
	}
	for i, e := range root.entries {
		end := len(s.lines)
		if i+1 < len(root.entries) {
			next := root.entries[i+1].key
			line := s.lines[min(next.line, len(s.lines))-1]
			end = next.line
			if next.column <= 1+len(line)-len(strings.TrimLeft(line, " ")) && next.line > e.key.line {
				end-- // nothing of e is before the next key
			}
		}
		if e.key.text == "systems" || e.value.get("vary") != nil {
			s.hide(e.key.line, end)
		}
	}
}

// longest is how long a line may be that is quoted.
const longest = 150

// quote is a line as messages have it; empty: they do not.
func (s *source) quote(line int) string {
	if line < 1 || line > len(s.lines) || len(s.lines[line-1]) > longest || s.hidden != nil && s.hidden[line-1] {
		return ""
	}
	return s.lines[line-1]
}

// credentials finds user names and passwords in a URL, also where what is around
// them is not right.
var credentials = regexp.MustCompile(`^\s*(?:([A-Za-z][A-Za-z0-9+.-]*)://)?` +
	`(?:([^/?#\s@]*)@|[^/?#\s@\[\]]*:[0-9]*[^0-9/?#\s@\]][^\s@]*@)`)

// hasCredentials reports whether a line of text begins with a URL that contains
// credentials. In an sftp URL a user name alone is none.
func hasCredentials(text string) bool {
	for line := range strings.Lines(text) {
		m := credentials.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		user, whole := m[2], m[2] != ""
		login := strings.Contains(user, ":")
		if !whole || login || m[1] != "" && m[1] != "sftp" {
			return true
		}
	}
	return false
}
