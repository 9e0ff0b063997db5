package experiment

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Error is one mistake in an experiment file or in a --set argument. It quotes no line of the file,
// because options of systems may be secrets.
type Error struct {
	File    string // "boost.yaml", or "--set link.rate"
	Line    int    // 1-based; 0 if the mistake has no position in the file
	Column  int    // 1-based, in characters
	Message string
	Hint    string // what to do about it; may be empty
	path    string // of the wrong key, if the position is not known yet
}

// Error returns the position, the message and the hint.
func (e *Error) Error() string {
	text := e.Message
	if e.Hint != "" {
		text += "\n      hint: " + e.Hint
	}
	switch {
	case e.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, text)
	case e.File != "":
		return e.File + ": " + text
	}
	return text
}

// mistake returns an error without a position, which the caller adds.
func mistake(hint, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Errors are all mistakes found, in the order of the file, followed by those from --set.
type Errors []*Error

func (es Errors) Error() string {
	return strings.Join(each(es, (*Error).Error), "\n")
}

// sorted sorts the errors by position and removes duplicates.
func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(boolInt(a.Line == 0), boolInt(b.Line == 0)), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(es, func(a, b *Error) bool { return *a == *b })
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// credentials matches a URL with a user name or password, even if other parts of it are invalid.
var credentials = regexp.MustCompile(`^\s*(?:([A-Za-z][A-Za-z0-9+.-]*)://)?` +
	`(?:([^/?#\s@]*)@|[^/?#\s@\[\]]*:[0-9]*[^0-9/?#\s@\]][^\s@]*@)`)

// hasCredentials reports whether a line of text begins with a URL that contains credentials. A user
// name alone in an sftp URL does not count.
func hasCredentials(text string) bool {
	for line := range strings.Lines(text) {
		m := credentials.FindStringSubmatch(line)
		if m != nil && (m[2] == "" || strings.Contains(m[2], ":") || m[1] != "" && m[1] != "sftp") {
			return true
		}
	}
	return false
}
