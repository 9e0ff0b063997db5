package experiment

import (
	"regexp"
	"strings"
)

// A message quotes the line that it is about, and a line may hold a secret: as
// the value of an option, of a misspelt option, or beside the mistake. Values
// that may be secrets are hidden: a quoted line ends where one begins.

// blanked is what a quoted line has in place of a hidden value and what follows it.
const blanked = "***"

// hide keeps n, with all that is in it, out of quoted lines.
func (n *node) hide() {
	n.shown = false
	n.src.hidden = append(n.src.hidden, n)
	for _, item := range n.items {
		item.hide()
	}
	for _, e := range n.entries {
		if !n.src.set {
			e.key.hide()
		}
		e.value.hide()
	}
}

// show takes n back from what is hidden: its value is known to be harmless.
func (n *node) show() { n.shown = true }

// covers is from where n has a part of a line, in characters from 0.
func (n *node) covers(line int, text []rune) (from int, ok bool) {
	switch {
	case n.shown || n.kind == mappingNode || n.kind == listNode || line < n.line:
		return 0, false // keys and values are hidden one by one
	case line == n.line:
		return max(0, n.column-1), true
	case n.end == nil || line > n.end.line:
		return 0, false
	case line == n.end.line:
		return 0, strings.TrimSpace(string(text[:min(len(text), n.end.column-1)])) != ""
	}
	return 0, true
}

// blank takes hidden values out of the line that e quotes.
func (e *Error) blank() {
	if e.src == nil || e.Source == "" {
		return
	}
	line := []rune(e.Source)
	cut := len(line)
	if e.src.broken && (e.src.set || e.src.belowSystems(e.Line)) {
		// It is not YAML, and values have no place: only the key is quoted.
		cut = len([]rune(keyPart.FindString(e.Source)))
	}
	for _, n := range e.src.hidden {
		if from, ok := n.covers(max(1, e.Line), line); ok {
			cut = min(cut, from)
		}
	}
	if cut < len(line) {
		e.Source = string(line[:cut]) + blanked
	}
}

var (
	keyPart = regexp.MustCompile(`^\s*(- +)*[{\s]*["']?[A-Za-z0-9_.-]*["']?(\s*:\s+|=)?`)
	inside  = regexp.MustCompile(`\b(systems|with)\b["']?\s*:`)
	outside = regexp.MustCompile(`^[A-Za-z]`)
)

// belowSystems reports whether a line of a text that is not YAML is below `systems`.
func (s *source) belowSystems(line int) (below bool) {
	for _, text := range s.lines[:min(max(0, line), len(s.lines))] {
		below = below && !outside.MatchString(text) || inside.MatchString(text)
	}
	return below
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
