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
	return fmt.Sprintf("%s, column %d: %s\n  %s\n  %s^", cmp.Or(e.What, "gate"), e.At, e.Msg, e.Rule, strings.Repeat(" ", e.At-1))
}

// Hint is what to do.
func (e *Error) Hint() string { return e.Fix }

// Caught returns the error of a [Scanner.Fail]; it is deferred.
func Caught(err *error) {
	if r := recover(); r != nil {
		e, is := r.(*Error)
		if !is {
			panic(r)
		}
		*err = e
	}
}

// Token is a word, an operator or a quoted text, with its column from 1.
type Token struct {
	Text     string
	At       int
	Quoted   bool // it stood between quotes, which are not part of Text
	Operator bool
}

// Is reports whether t is a word or an operator of the language.
func (t Token) Is(word string) bool { return t.Text == word && !t.Quoted }

// End reports whether there is no token any more.
func (t Token) End() bool { return t.Is("") }

// Scanner gives the tokens of an expression one by one.
type Scanner struct {
	what, text string
	tokens     []Token
}

// Scan splits an expression into the words, operators and quoted texts that split finds.
func Scan(what, text string, split *regexp.Regexp) *Scanner {
	s := &Scanner{what: what, text: text}
	column, from := 1, 0
	for _, at := range split.FindAllStringIndex(text, -1) {
		column, from = column+utf8.RuneCountInString(text[from:at[0]]), at[0]
		t := Token{Text: text[at[0]:at[1]], At: column}
		first := t.Text[:1]
		t.Operator = strings.Contains("=!<>&|()[],*", first)
		if first == `"` || first == "'" {
			body, closed := strings.CutSuffix(t.Text[1:], first)
			if !closed {
				s.Fail(t, "", "the quoted text does not end")
			}
			t.Text, t.Quoted = body, true
		}
		s.tokens = append(s.tokens, t)
	}
	return s
}

// Peek is the next token; at the end an empty one behind the expression.
func (s *Scanner) Peek() Token {
	if len(s.tokens) == 0 {
		return Token{At: utf8.RuneCountInString(s.text) + 1}
	}
	return s.tokens[0]
}

// Next takes the next token.
func (s *Scanner) Next() Token {
	t := s.Peek()
	if len(s.tokens) > 0 {
		s.tokens = s.tokens[1:]
	}
	return t
}

// Take takes the next token if it is this word.
func (s *Scanner) Take(word string) bool {
	if s.Peek().End() || !s.Peek().Is(word) {
		return false
	}
	s.Next()
	return true
}

// Fail ends the reading with a mistake at t.
func (s *Scanner) Fail(t Token, fix, format string, args ...any) {
	width := utf8.RuneCountInString(t.Text)
	if t.Quoted {
		width += 2
	}
	panic(&Error{What: s.what, Rule: s.text, At: t.At, Width: max(1, width), Msg: fmt.Sprintf(format, args...), Fix: fix})
}
