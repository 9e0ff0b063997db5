package experiment

import (
	"regexp"
	"strings"
)

// A message quotes the line that it is about, and a line may hold a secret: as
// the value of an option, of a misspelt option, or beside the mistake. Values
// that may be secrets are hidden, and blanked wherever their line is quoted.

// blanked replaces a hidden value in a quoted line.
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

// covers is the part of a line that n takes, in characters from 0; to is -1 for
// the rest of the line.
func (n *node) covers(line int) (from, to int, ok bool) {
	end := place{n.line, 0}
	if n.end != nil {
		end = *n.end
	}
	if n.shown || n.kind == mappingNode || n.kind == listNode || line < n.line || line > end.line {
		return 0, 0, false // keys and values are hidden one by one
	}
	if line == n.line {
		from = max(0, n.column-1)
	}
	if to = -1; line == end.line && n.end != nil {
		to = end.column - 1
	}
	return from, to, to < 0 || to > from
}

// blank takes hidden values out of the line that e quotes.
func (e *Error) blank() {
	if e.src == nil || e.Source == "" {
		return
	}
	if e.src.broken {
		e.blankBroken()
		return
	}
	line := []rune(e.Source)
	hide := make([]bool, len(line)+1)
	for _, n := range e.src.hidden {
		from, to, ok := n.covers(max(1, e.Line))
		if to < 0 || to > len(line) {
			to = len(line)
		}
		for i := from; ok && i < to; i++ {
			hide[i] = true
		}
	}
	var out []rune
	column := e.Column
	for i := 0; i < len(line); {
		if !hide[i] || line[i] == ' ' && (i == 0 || !hide[i-1]) {
			out = append(out, line[i])
			i++
			continue
		}
		j := i
		for j < len(line) && hide[j] {
			j++
		}
		end := i + len([]rune(strings.TrimRight(string(line[i:j]), " ")))
		switch {
		case e.Column-1 >= end:
			column -= end - i - len(blanked)
		case e.Column-1 >= i:
			column, e.Width = len(out)+1, len(blanked)
		}
		out = append(append(out, []rune(blanked)...), line[end:j]...)
		i = j
	}
	e.Source, e.Column = string(out), column
}

var (
	keyPart = regexp.MustCompile(`^\s*(- +)*[{\s]*["']?[A-Za-z0-9_.-]*["']?(\s*:\s+|=)?`)
	inside  = regexp.MustCompile(`\b(systems|with)\b["']?\s*:`)
	outside = regexp.MustCompile(`^[A-Za-z]`)
)

// blankBroken is blank in a text that is not YAML, where values have no place:
// below `systems`, only the key of a line is quoted.
func (e *Error) blankBroken() {
	within := false
	for _, line := range e.src.lines[:min(max(0, e.Line), len(e.src.lines))] {
		within = within && !outside.MatchString(line) || inside.MatchString(line)
	}
	if !within && !e.src.set {
		return
	}
	key := keyPart.FindString(e.Source)
	if key == e.Source {
		return
	}
	e.Source = key + blanked
	if n := len([]rune(e.Source)); e.Column > n-len(blanked) {
		e.Column, e.Width = n-len(blanked)+1, len(blanked)
	}
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
