package gate

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// A condition is a small expression over the factors of a cell, as the `where` of an
// experiment and of a rule have it:
//
//	condition  = and { ( "||" | "or" ) and }
//	and        = not { ( "&&" | "and" ) not }
//	not        = "!" not | "(" condition ")" | comparison
//	comparison = operand ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) operand
//	           | operand "in" "[" operand { "," operand } "]"
//	operand    = [ number "*" ] factor | value
//
// What is on the left is a factor, named by its path or the end of its path; it says what
// a value means, which is written as it would be in the file.

// Factor is what a condition may name.
type Factor struct {
	Path string
	Noun string // of its values: "a size such as 10MiB"
	Unit string // of their numbers; empty: they are words, which have no order
	Read func(text string) (Level, error)
}

// Level is a value of a factor.
type Level struct {
	Text   string  // canonical
	Number float64 // for order; NaN where it has none
}

// Condition decides about a cell by the levels that it has.
type Condition func(level func(path string) Level) bool

const example = "a comparison is like retrieve.range <= data.size, 2 * disseminate.seeders <= disseminate.nodes " +
	"or system in [a, b]; join them with && or ||"

// token is a word, an operator or a quoted text, with its column from 1.
type token struct {
	text     string
	at       int
	quoted   bool // it was between quotes, which are not part of text
	operator bool
}

// split finds the words, operators and quoted texts of an expression.
var split = regexp.MustCompile(`"[^"]*"?|'[^']*'?|[=!<>]=?|&&|\|\||[()\[\],*&|]|[^\s"'=!<>&|()\[\],*]+`)

// parser reads a condition.
type parser struct {
	what, text string
	tokens     []token // those that are left
	factors    []Factor
}

// ParseCondition reads a condition over these factors.
func ParseCondition(text string, factors []Factor) (c Condition, err error) {
	return parseCondition("where", text, 0, factors)
}

// parseCondition reads the condition that begins at a byte of a text.
func parseCondition(what, text string, from int, factors []Factor) (c Condition, err error) {
	defer caught(&err)
	p := &parser{what: what, text: text, factors: factors}
	column := utf8.RuneCountInString(text[:from]) + 1
	for _, at := range split.FindAllStringIndex(text[from:], -1) {
		word := text[from+at[0] : from+at[1]]
		t := token{text: word, at: column + utf8.RuneCountInString(text[from:from+at[0]]),
			operator: strings.Contains("=!<>&|()[],*", word[:1])}
		if quote := word[:1]; quote == `"` || quote == "'" {
			if t.text, t.quoted = strings.CutSuffix(word[1:], quote); !t.quoted {
				p.fail(t, "", "the quoted text does not end")
			}
		}
		p.tokens = append(p.tokens, t)
	}
	c = p.or()
	if t := p.peek(); t.at <= utf8.RuneCountInString(text) {
		p.fail(t, example, "unexpected %s", quoted(t.text))
	}
	return c, nil
}

// peek is the next token; at the end an empty operator behind the expression.
func (p *parser) peek() token {
	if len(p.tokens) == 0 {
		return token{at: utf8.RuneCountInString(p.text) + 1, operator: true}
	}
	return p.tokens[0]
}

func (p *parser) next() token {
	t := p.peek()
	p.tokens = p.tokens[min(1, len(p.tokens)):]
	return t
}

// take takes the next token if it is one of these words.
func (p *parser) take(words ...string) bool {
	if t := p.peek(); t.quoted || !slices.Contains(words, t.text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) fail(t token, fix, format string, args ...any) {
	fail(p.what, p.text, t.at, fix, format, args...)
}

// anyOf holds where one of the conditions holds.
func anyOf(all []Condition) Condition {
	return func(level func(string) Level) bool {
		return slices.ContainsFunc(all, func(c Condition) bool { return c(level) })
	}
}

func (p *parser) or() Condition {
	all := []Condition{p.and()}
	for p.take("||", "or") {
		all = append(all, p.and())
	}
	return anyOf(all)
}

func (p *parser) and() Condition {
	c := p.not()
	for p.take("&&", "and") {
		a, b := c, p.not()
		c = func(level func(string) Level) bool { return a(level) && b(level) }
	}
	return c
}

func (p *parser) not() Condition {
	switch {
	case p.take("!"):
		c := p.not()
		return func(level func(string) Level) bool { return !c(level) }
	case p.take("("):
		c := p.or()
		p.expect(")")
		return c
	}
	left := p.operand(true)
	if left.factor == nil {
		p.fail(left.token, p.near(left.text), "%s is no factor", quoted(left.text))
	}
	if !p.take("in") {
		op := p.next()
		if !slices.Contains([]string{"=", "==", "!=", "<", "<=", ">", ">="}, op.text) || op.quoted {
			p.fail(op, example, "a comparison expected after %s", quoted(left.text))
		}
		return p.compare(left, op, p.operand(false))
	}
	op := token{text: "==", at: left.at}
	p.expect("[")
	all := []Condition{p.compare(left, op, p.operand(false))}
	for p.take(",") {
		all = append(all, p.compare(left, op, p.operand(false)))
	}
	p.expect("]")
	return anyOf(all)
}

func (p *parser) expect(word string) {
	if t := p.peek(); !p.take(word) {
		p.fail(t, example, "%s expected", quoted(word))
	}
}

// operand is one side of a comparison: a factor or the text of a value.
type operand struct {
	token
	factor *Factor
	times  float64 // what the factor's number is multiplied by; 0: nothing
}

// operand reads one side; left: a factor may go by the end of its path.
func (p *parser) operand(left bool) operand {
	t := p.next()
	switch {
	case t.operator:
		p.fail(t, p.near(t.text), "a factor or a value expected")
	case t.quoted:
		return operand{token: t}
	case p.take("*"):
		o := p.operand(false)
		by, err := strconv.ParseFloat(t.text, 64)
		if err != nil || !(by > 0) || o.times != 0 || o.factor == nil || o.factor.Unit == "" {
			p.fail(t, example, "a product is a number above 0 times a factor that is a number")
		}
		o.times = by
		return o
	}
	return operand{token: t, factor: p.factor(t.text, left)}
}

// factor is that of a path, or with short also that of the end of one path alone.
func (p *parser) factor(name string, short bool) *Factor {
	var ends []*Factor
	for i, f := range p.factors {
		if f.Path == name {
			return &p.factors[i]
		}
		if strings.HasSuffix(f.Path, "."+name) {
			ends = append(ends, &p.factors[i])
		}
	}
	if short && len(ends) == 1 {
		return ends[0]
	}
	return nil
}

// near is the hint for a name that is none of a factor.
func (p *parser) near(name string) string {
	var names []string
	for _, f := range p.factors {
		full := f.Path
		if !strings.Contains(name, ".") {
			full = full[strings.LastIndex(full, ".")+1:]
		}
		names = append(names, full)
	}
	slices.Sort(names)
	return suggest.DidYouMean(name, names)
}

// comparisons are what an operator says of two levels, by their order.
var comparisons = map[string]func(order int) bool{
	"<":  func(order int) bool { return order < 0 },
	"<=": func(order int) bool { return order <= 0 },
	">":  func(order int) bool { return order > 0 },
	">=": func(order int) bool { return order >= 0 },
}

func (p *parser) compare(a operand, op token, b operand) Condition {
	order, ordered := comparisons[op.text]
	switch typed := a.factor; {
	case b.factor != nil && typed.Unit != b.factor.Unit:
		p.fail(b.token, "", "%s is %s, %s is %s: they do not compare", quoted(typed.Path), typed.Noun,
			quoted(b.factor.Path), b.factor.Noun)
	case ordered && typed.Unit == "":
		p.fail(op, "words only compare with == and !=", "%s has no order", quoted(typed.Path))
	}
	x, y := p.side(a, a.factor, ordered), p.side(b, a.factor, ordered)
	numbers := a.times != 0 || b.times != 0
	return func(level func(string) Level) bool {
		u, v := x(level), y(level)
		switch {
		case ordered:
			return !math.IsNaN(u.Number) && !math.IsNaN(v.Number) && order(cmp.Compare(u.Number, v.Number))
		case numbers:
			return (u.Number == v.Number) == (op.text != "!=")
		}
		return (u.Text == v.Text) == (op.text != "!=")
	}
}

// side is one side as a function of the cell: the level of its factor, or a value of the
// other side's.
func (p *parser) side(o operand, typed *Factor, ordered bool) func(level func(string) Level) Level {
	if o.factor != nil {
		return func(level func(string) Level) Level {
			l := level(o.factor.Path)
			if o.times != 0 {
				l.Number *= o.times
			}
			return l
		}
	}
	fixed, err := typed.Read(o.text)
	if wrong, is := err.(*Error); is {
		p.fail(o.token, wrong.Fix, "%s: %s", quoted(typed.Path), wrong.Msg)
	}
	if ordered && math.IsNaN(fixed.Number) {
		p.fail(o.token, "it compares with == and != only", "%s has no order", quoted(o.text))
	}
	return func(func(string) Level) Level { return fixed }
}
