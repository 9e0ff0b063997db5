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

// A condition is a small expression over the factors of a cell. The `where` of an experiment and of
// a rule contain conditions:
//
//	condition  = and { ( "||" | "or" ) and }
//	and        = not { ( "&&" | "and" ) not }
//	not        = "!" not | "(" condition ")" | comparison
//	comparison = operand ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) operand
//	           | operand "in" "[" operand { "," operand } "]"
//	operand    = [ number "*" ] factor | value
//
// The left side is a factor, named by its path or the end of its path. It determines how a value is
// parsed. Values are written as in the file.

// Factor is a factor that a condition may name.
type Factor struct {
	Path string
	Noun string // of its values: "a size such as 10MiB"
	Unit string // of their numbers; empty: they are words, which have no order
	Read func(text string) (Level, error)
}

// Level is a value of a factor.
type Level struct {
	Text   string  // canonical
	Number float64 // for order; NaN if it has none
}

// Condition decides about a cell by its levels.
type Condition func(level func(path string) Level) bool

const example = "a comparison is like retrieve.range <= data.size, 2 * disseminate.seeders <= disseminate.nodes " +
	"or system in [a, b]; join them with && or ||"

// token is a word, an operator or a quoted text, with its column from 1.
type token struct {
	text     string
	at       int
	quoted   bool // it was in quotes, which are not part of text
	operator bool
}

// split matches the words, operators and quoted texts of an expression.
var split = regexp.MustCompile(`"[^"]*"?|'[^']*'?|[=!<>]=?|&&|\|\||[()\[\],*&|]|[^\s"'=!<>&|()\[\],*]+`)

// parser parses a condition.
type parser struct {
	what, text string
	tokens     []token // the remaining ones
	factors    []Factor
}

// ParseCondition parses a condition over these factors.
func ParseCondition(text string, factors []Factor) (c Condition, err error) {
	return parseCondition("where", text, 0, factors)
}

// parseCondition parses the condition that begins at byte from of a text.
func parseCondition(what, text string, from int, factors []Factor) (c Condition, err error) {
	defer caught(&err)
	p := &parser{what: what, text: text, factors: factors}
	for _, at := range split.FindAllStringIndex(text[from:], -1) {
		word := text[from+at[0] : from+at[1]]
		t := token{text: word, at: utf8.RuneCountInString(text[:from+at[0]]) + 1,
			operator: strings.Contains("=!<>&|()[],*", word[:1])}
		if quote := word[:1]; quote == `"` || quote == "'" {
			if t.text, t.quoted = strings.CutSuffix(word[1:], quote); !t.quoted {
				p.fail(t, "", "the quoted text does not end")
			}
		}
		p.tokens = append(p.tokens, t)
	}
	// an empty operator marks the end
	p.tokens = append(p.tokens, token{at: utf8.RuneCountInString(text) + 1, operator: true})
	c = p.or()
	if len(p.tokens) > 1 {
		p.fail(p.tokens[0], example, "unexpected %s", quoted(p.tokens[0].text))
	}
	return c, nil
}

// next consumes and returns the next token; the end token stays.
func (p *parser) next() token {
	t := p.tokens[0]
	p.tokens = p.tokens[min(1, len(p.tokens)-1):]
	return t
}

// take consumes the next token if it is one of these words, and reports whether it did.
func (p *parser) take(words ...string) bool {
	is := !p.tokens[0].quoted && slices.Contains(words, p.tokens[0].text)
	if is {
		p.next()
	}
	return is
}

func (p *parser) expect(word string) {
	if !p.take(word) {
		p.fail(p.tokens[0], example, "%s expected", quoted(word))
	}
}

func (p *parser) fail(t token, fix, format string, args ...any) {
	fail(p.what, p.text, t.at, fix, format, args...)
}

func (p *parser) or() Condition {
	c := p.and()
	for p.take("||", "or") {
		c = either(c, p.and())
	}
	return c
}

// either holds if at least one of two conditions holds.
func either(a, b Condition) Condition {
	return func(level func(string) Level) bool { return a(level) || b(level) }
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
		if operators[op.text] == nil || op.quoted {
			p.fail(op, example, "a comparison expected after %s", quoted(left.text))
		}
		return p.compare(left, op, p.operand(false))
	}
	op := token{text: "==", at: left.at}
	p.expect("[")
	c := p.compare(left, op, p.operand(false))
	for p.take(",") {
		c = either(c, p.compare(left, op, p.operand(false)))
	}
	p.expect("]")
	return c
}

// operand is one side of a comparison: a factor or the text of a value.
type operand struct {
	token
	factor *Factor
	times  float64 // factor for the number; 0: none
}

// operand parses one side; on the left side, the end of a path may name a factor.
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

// factor returns the factor with a path or, if short, the only one whose path ends with the name.
func (p *parser) factor(name string, short bool) *Factor {
	var ends []*Factor
	for i, f := range p.factors {
		if f.Path == name {
			return &p.factors[i]
		}
		if short && strings.HasSuffix(f.Path, "."+name) {
			ends = append(ends, &p.factors[i])
		}
	}
	if len(ends) != 1 { // none, or ambiguous
		return nil
	}
	return ends[0]
}

// near returns the hint for a name that is not a factor.
func (p *parser) near(name string) string {
	var names []string
	for _, f := range p.factors {
		if !strings.Contains(name, ".") {
			f.Path = f.Path[strings.LastIndex(f.Path, ".")+1:]
		}
		names = append(names, f.Path)
	}
	slices.Sort(names)
	return suggest.DidYouMean(name, names)
}

// operators maps each operator to the results of a comparison of two levels for which it holds.
var operators = map[string][]int{"=": {0}, "==": {0}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

func (p *parser) compare(a operand, op token, b operand) Condition {
	ordered := strings.ContainsAny(op.text, "<>")
	switch typed := a.factor; {
	case b.factor != nil && typed.Unit != b.factor.Unit:
		p.fail(b.token, "", "%s is %s, %s is %s: they do not compare", quoted(typed.Path), typed.Noun,
			quoted(b.factor.Path), b.factor.Noun)
	case ordered && typed.Unit == "":
		p.fail(op, "words only compare with == and !=", "%s has no order", quoted(typed.Path))
	}
	x, y := p.side(a, a.factor, ordered), p.side(b, a.factor, ordered)
	numbers := ordered || a.times != 0 || b.times != 0
	return func(level func(string) Level) bool {
		u, v := x(level), y(level)
		if !numbers {
			return slices.Contains(operators[op.text], strings.Compare(u.Text, v.Text))
		}
		if math.IsNaN(u.Number) || math.IsNaN(v.Number) {
			return op.text == "!="
		}
		return slices.Contains(operators[op.text], cmp.Compare(u.Number, v.Number))
	}
}

// side returns one side as a function of the cell: the level of its factor, or a value parsed by
// the other side's factor.
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
