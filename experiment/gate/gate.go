// Package gate reads the rules that runs are held to: "p95(ttfb) < 200ms". It
// knows the words of a rule and what they mean; what runs have been measured, and
// which interval decides, is the matter of the package report.
package gate

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is what a rule compares a metric with.
type Kind int

const (
	Limit   Kind = iota // a value
	Within              // another system of the same run
	NoWorse             // the base run
)

// FewestTrials is how many valid trials of a cell decide a rule: the interval of a
// median whose ends each hold with 95 % needs as many (1/2⁵ < 5 %).
const FewestTrials = 5

// Rule is one condition that every cell it speaks of must meet.
type Rule struct {
	Text   string
	Metric string // its key
	Kind   Kind
	Op     string      // of a Limit: "<", "<=", ">" or ">="
	Value  float64     // of a Limit, in the metric's unit
	Share  float64     // of the others: how much worse it may be, 0.2 for 20 %
	System string      // of Within
	Where  []Condition // all must hold of a cell
}

// Condition picks cells by the level of a factor.
type Condition struct {
	Path  string // "system", or the factor's path
	Value string // its level
	Not   bool
}

// Means reports whether a rule speaks of a cell, given the level that it has of each
// factor. A system is not compared with itself.
func (r Rule) Means(level func(path string) string) bool {
	if r.Kind == Within && level("system") == r.System {
		return false
	}
	return !slices.ContainsFunc(r.Where, func(c Condition) bool { return (level(c.Path) == c.Value) == c.Not })
}

// Error is a rule that cannot be read, with the place.
type Error struct {
	Rule  string
	At    int // column, from 1
	Width int // characters, at least 1
	Msg   string
	Fix   string // what to do; may be empty
}

// Error shows the rule with a mark under the place.
func (e *Error) Error() string {
	return fmt.Sprintf("gate, column %d: %s\n  %s\n  %s^", e.At, e.Msg, e.Rule, strings.Repeat(" ", e.At-1))
}

// Hint is what to do.
func (e *Error) Hint() string { return e.Fix }

// token is a word or an operator, with its column from 1.
type token struct {
	text   string
	at     int
	quoted bool // it stood between quotes, which are not part of text
	open   bool // and the second quote is missing
}

// is reports whether t is a word of the language.
func (t token) is(word string) bool { return t.text == word && !t.quoted }

// width is how many characters of the rule t takes, at least 1.
func (t token) width() int {
	n := utf8.RuneCountInString(t.text)
	if t.quoted {
		n += 2
	}
	return max(1, n)
}

// tokens splits a rule. Operators and parentheses need no spaces around them;
// text that contains spaces is quoted.
func tokens(rule string) []token {
	var all []token
	runes := []rune(rule)
	for i := 0; i < len(runes); {
		switch r := runes[i]; {
		case r == ' ' || r == '\t':
			i++
		case r == '"' || r == '\'':
			n := i + 1
			for n < len(runes) && runes[n] != r {
				n++
			}
			all, i = append(all, token{text: string(runes[i+1 : n]), at: i + 1, quoted: true, open: n == len(runes)}), n+1
		case strings.ContainsRune("<>=!", r):
			n := 1
			if i+1 < len(runes) && runes[i+1] == '=' {
				n = 2
			}
			all, i = append(all, token{text: string(runes[i : i+n]), at: i + 1}), i+n
		case r == '(' || r == ')':
			all, i = append(all, token{text: string(r), at: i + 1}), i+1
		default:
			n := i
			for n < len(runes) && !strings.ContainsRune(" \t<>=!()", runes[n]) {
				n++
			}
			all, i = append(all, token{text: string(runes[i:n]), at: i + 1}), n
		}
	}
	return all
}

// AddLevel makes a level of a factor known.
func (n *Names) AddLevel(path, level string) {
	if !slices.Contains(n.Levels[path], level) {
		n.Levels[path] = append(n.Levels[path], level)
	}
}
