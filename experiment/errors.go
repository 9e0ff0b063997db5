package experiment

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
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
	quotes := map[*source][]string{}
	for _, e := range es {
		if e.src == nil {
			continue
		}
		if quotes[e.src] == nil {
			quotes[e.src] = e.src.quotes()
		}
		if e.Line >= 1 && e.Line <= len(e.src.lines) {
			e.Source = quotes[e.src][e.Line-1]
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

var (
	secretive = regexp.MustCompile(`\b(systems|with|vary)\b["']?\s*:`)
	// anyKey finds what may be a key, in YAML or in JSON.
	anyKey = regexp.MustCompile(`([^\s,{}\[\]"']+)(?:\s*["']\s*:|\s*:(?:\s|$))`)
	// firstKey finds the key that a section of the file begins with.
	firstKey = regexp.MustCompile(`^["']?([A-Za-z_]+)["']?\s*:`)
	// lineKey finds the key that a line begins with: its indent, and whether an entry of a list begins.
	lineKey = regexp.MustCompile(`^( *)(- +)?["']?[A-Za-z_]+["']?\s*:`)
)

// knownKeys are the keys of the format, of all sections.
var knownKeys = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, k := range Keys() {
		for part := range strings.SplitSeq(k.Path, ".") {
			all[part] = true
		}
	}
	return all
})

// isSection reports whether key is one of the top level.
func isSection(key string) bool { return tableOf(reflect.TypeFor[Experiment]()).field(key) != nil }

// unknown remembers a key that the format does not have: its value may be a secret.
func (s *source) unknown(key *node) {
	if s.hidden == nil {
		s.hidden = map[int]int{}
	}
	if end, is := s.hidden[key.line]; !is || key.column+key.width-1 < end {
		s.hidden[key.line] = key.column + key.width - 1
	}
}

// shown is how many bytes of a line come before the value of an unknown key.
func (s *source) shown(line int) int {
	text := s.lines[line-1]
	end := len(text)
	for _, at := range anyKey.FindAllStringSubmatchIndex(text, -1) {
		if !knownKeys()[text[at[2]:at[3]]] {
			end = at[3]
			break
		}
	}
	if characters, is := s.hidden[line]; is {
		end = min(end, len(string([]rune(text)[:min(characters, utf8.RuneCountInString(text))])))
	}
	return end
}

// quotes are the lines as messages quote them. The value of an unknown key, with all lines
// that are deeper, may be a secret, and so may options of systems: those are left out, and
// lines that are too long to help.
func (s *source) quotes() []string {
	quotes := make([]string, len(s.lines))
	section, indent := false, -1 // hidden to the end of the section; while lines are deeper than that
	for i, text := range s.lines {
		section = section && !firstKey.MatchString(text) || secretive.MatchString(text)
		if s.set {
			key, _, is := strings.Cut(text, "=")
			top, _, _ := strings.Cut(strings.TrimSpace(key), ".")
			section = section || !is || top == "systems" || strings.HasPrefix(key, varyPath) || !isSection(top)
		}
		if m := lineKey.FindStringSubmatch(text); m != nil && (len(m[1]) < indent || len(m[1]) == indent && m[2] == "") {
			indent = -1
		}
		end := s.shown(i + 1)
		if !section && indent < 0 && len(text) <= 150 {
			quotes[i] = text[:end]
		}
		switch {
		case end == len(text):
		case strings.ContainsAny(text, "{[\"'"): // where that ends is not seen in indents
			section = true
		case indent < 0:
			indent = len(text) - len(strings.TrimLeft(text, " "))
		}
	}
	return quotes
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
