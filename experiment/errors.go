package experiment

import (
	"cmp"
	"fmt"
	"reflect"
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
		fmt.Fprintf(&b, "\n%s | %s\n      | %s%s", gutter, e.Source, string(pad), strings.Repeat("^", max(1, min(e.Width, len(line)-e.Column+1))))
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

// sorted orders the errors by place and drops repetitions.
func (es Errors) sorted() Errors {
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

var (
	secretive = regexp.MustCompile(`\b(systems|with|vary)\b["']?\s*:`)
	topLevel  = regexp.MustCompile(`^[A-Za-z]`)
)

// quoted is a line as messages quote it: empty where options of systems, which may be
// secrets, are near, and where it is too long to help.
func (s *source) quoted(line int) string {
	if line < 1 || line > len(s.lines) || len(s.lines[line-1]) > 150 {
		return ""
	}
	text, hide := s.lines[line-1], false
	if s.set {
		key, _, is := strings.Cut(text, "=")
		section, _, _ := strings.Cut(strings.TrimSpace(key), ".")
		hide = !is || section == "systems" || strings.HasPrefix(key, varyPath) || tableOf(reflect.TypeFor[Experiment]()).field(section) == nil
	}
	for _, above := range s.lines[:line] {
		hide = hide && (s.set || !topLevel.MatchString(above)) || secretive.MatchString(above)
	}
	if hide {
		return ""
	}
	return text
}

// credentials finds user names and passwords in a URL, also where what is around
// them is not right.
var credentials = regexp.MustCompile(`^\s*(?:([A-Za-z][A-Za-z0-9+.-]*)://)?(?:([^/?#\s@]*)@|[^/?#\s@\[\]]*:[0-9]*[^0-9/?#\s@\]][^\s@]*@)`)

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
