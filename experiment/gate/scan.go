package gate

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Error is an expression that cannot be read, with the place.
type Error struct {
	What  string // "gate", which empty means, too, or "where"
	Rule  string
	At    int // column, from 1
	Width int // characters, at least 1
	Msg   string
	Fix   string // what to do; may be empty
}

// Error shows the expression with a mark under the place.
func (e *Error) Error() string {
	return fmt.Sprintf("%s, column %d: %s\n  %s\n  %s^", cmp.Or(e.What, "gate"), e.At, e.Msg, e.Rule,
		strings.Repeat(" ", max(0, e.At-1)))
}

// Hint is what to do.
func (e *Error) Hint() string { return e.Fix }

// caught returns the error of [scanner.fail]; it is deferred.
func caught(err *error) {
	if r := recover(); r != nil {
		e, is := r.(*Error)
		if !is {
			panic(r)
		}
		*err = e
	}
}

// token is a word, an operator or a quoted text, with its column from 1.
type token struct {
	text     string
	at       int
	quoted   bool // it stood between quotes, which are not part of text
	operator bool
}

// is reports whether t is a word or an operator of the language.
func (t token) is(word string) bool { return t.text == word && !t.quoted }

// end reports whether there is no token any more.
func (t token) end() bool { return t.is("") }

// scanner gives the tokens of an expression one by one.
type scanner struct {
	what, text string
	tokens     []token
}

// split finds the words, operators and quoted texts of an expression.
var split = regexp.MustCompile(`"[^"]*"?|'[^']*'?|[=!<>]=?|&&|\|\||[()\[\],*&|]|[^\s"'=!<>&|()\[\],*]+`)

func scan(what, text string) *scanner {
	s := &scanner{what: what, text: text}
	column, from := 1, 0
	for _, at := range split.FindAllStringIndex(text, -1) {
		column, from = column+utf8.RuneCountInString(text[from:at[0]]), at[0]
		t := token{text: text[at[0]:at[1]], at: column}
		first := t.text[:1]
		t.operator = strings.Contains("=!<>&|()[],*", first)
		if first == `"` || first == "'" {
			body, closed := strings.CutSuffix(t.text[1:], first)
			if !closed {
				s.fail(t, "", "the quoted text does not end")
			}
			t.text, t.quoted = body, true
		}
		s.tokens = append(s.tokens, t)
	}
	return s
}

// peek is the next token; at the end an empty one behind the expression.
func (s *scanner) peek() token {
	if len(s.tokens) == 0 {
		return token{at: utf8.RuneCountInString(s.text) + 1}
	}
	return s.tokens[0]
}

// next takes the next token.
func (s *scanner) next() token {
	t := s.peek()
	if len(s.tokens) > 0 {
		s.tokens = s.tokens[1:]
	}
	return t
}

// take takes the next token if it is one of these words.
func (s *scanner) take(words ...string) bool {
	for _, word := range words {
		if t := s.peek(); !t.end() && t.is(word) {
			s.next()
			return true
		}
	}
	return false
}

// fail ends the reading with a mistake at t.
func (s *scanner) fail(t token, fix, format string, args ...any) {
	width := utf8.RuneCountInString(t.text)
	if t.quoted {
		width += 2
	}
	panic(&Error{What: s.what, Rule: s.text, At: t.at, Width: max(1, width),
		Msg: fmt.Sprintf(format, args...), Fix: fix})
}
