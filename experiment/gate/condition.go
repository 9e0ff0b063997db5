package gate

import (
	"math"
	"slices"
	"strconv"
	"strings"

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
// A value is written as it would be in the file. A comparison has at least one factor,
// which says what the value means. A factor is named by its path or, on the left, by the
// end of its path.

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

// maxDepth bounds the recursion on hostile input.
const maxDepth = 100

const example = "a comparison is like retrieve.range <= data.size, or 2 * disseminate.seeders <= disseminate.nodes"

type conditions struct {
	*scanner
	factors []Factor
}

// ParseCondition reads a condition over these factors.
func ParseCondition(text string, factors []Factor) (c Condition, err error) {
	defer caught(&err)
	p := conditions{scan("where", text), factors}
	c = p.or(0)
	if t := p.peek(); !t.end() {
		p.fail(t, "join conditions with && or ||", "unexpected %s", quoted(t.text))
	}
	return c, nil
}

func (p conditions) or(depth int) Condition {
	c := p.and(depth)
	for p.take("||", "or") {
		a, b := c, p.and(depth)
		c = func(level func(string) Level) bool { return a(level) || b(level) }
	}
	return c
}

func (p conditions) and(depth int) Condition {
	c := p.not(depth)
	for p.take("&&", "and") {
		a, b := c, p.not(depth)
		c = func(level func(string) Level) bool { return a(level) && b(level) }
	}
	return c
}

func (p conditions) not(depth int) Condition {
	if depth > maxDepth {
		p.fail(p.peek(), "", "nested too deep")
	}
	switch {
	case p.take("!"):
		c := p.not(depth + 1)
		return func(level func(string) Level) bool { return !c(level) }
	case p.take("("):
		c := p.or(depth + 1)
		if t := p.peek(); !p.take(")") {
			p.fail(t, "join conditions with && or ||", "expected a closing parenthesis")
		}
		return c
	}
	return p.comparison()
}

// operand is one side of a comparison: a factor or the text of a value.
type operand struct {
	token  token
	factor *Factor
	times  float64 // what the factor's number is multiplied by; 0: nothing
}

// operand reads one side; left: a factor may go by the end of its path.
func (p conditions) operand(left bool) operand {
	t := p.next()
	switch {
	case t.end():
		p.fail(t, p.named(), "expected a factor or a value, not the end")
	case t.operator:
		p.fail(t, example, "expected a factor or a value, not %s", quoted(t.text))
	case p.take("*"):
		o := p.operand(false)
		if o.factor == nil {
			p.noPath(o.token)
		}
		by, err := strconv.ParseFloat(t.text, 64)
		if err != nil || !(by > 0) || t.quoted || o.times != 0 || o.factor == nil || o.factor.Unit == "" {
			p.fail(t, example, "a product is a number above 0 times a factor that is a number")
		}
		o.times = by
		return o
	case t.quoted:
		return operand{token: t}
	}
	return operand{token: t, factor: p.factor(t.text, left)}
}

// noPath fails at what seems to be the path of a factor that there is not: it has a dot
// with a letter before it, where values have digits.
func (p conditions) noPath(t token) {
	if i := strings.IndexByte(t.text, '.'); !t.quoted && i > 0 && (t.text[i-1] < '0' || t.text[i-1] > '9') {
		p.fail(t, p.near(t.text), "unknown factor %s", quoted(t.text))
	}
}

// factor is that of a path, or with short also that of the end of one path alone.
func (p conditions) factor(name string, short bool) *Factor {
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

// ends are the ends of all paths.
func (p conditions) ends() []string {
	var ends []string
	for _, f := range p.factors {
		ends = append(ends, f.Path[strings.LastIndex(f.Path, ".")+1:])
	}
	slices.Sort(ends)
	return ends
}

func (p conditions) named() string { return "factors: " + strings.Join(p.ends(), ", ") }

// near is the hint for a name that is none of a factor.
func (p conditions) near(name string) string {
	var paths []string
	for _, f := range p.factors {
		paths = append(paths, f.Path)
	}
	if near := suggest.Nearest(name, p.ends()); near != "" && !strings.Contains(name, ".") {
		return "did you mean " + quoted(near) + "?"
	}
	return suggest.DidYouMean(name, paths)
}

func (p conditions) comparison() Condition {
	left, op := p.operand(true), p.next()
	switch {
	case op.is("in"):
		return p.in(left, op)
	case op.is("="):
		op.text = "=="
	case !op.operator || !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op.text):
		p.fail(op, "compare with ==, !=, <, <=, >, >= or in [a, b]", "expected a comparison after %s",
			quoted(left.token.text))
	}
	return p.compare(left, op, p.operand(false))
}

func (p conditions) in(left operand, op token) Condition {
	op.text = "=="
	if t := p.peek(); !p.take("[") {
		p.fail(t, "", "expected [ after in")
	}
	var any []Condition
	for {
		any = append(any, p.compare(left, op, p.operand(false)))
		if p.take("]") {
			break
		}
		if t := p.peek(); !p.take(",") {
			p.fail(t, "", "expected , or ] in the list")
		}
	}
	return func(level func(string) Level) bool {
		return slices.ContainsFunc(any, func(c Condition) bool { return c(level) })
	}
}

func (p conditions) compare(a operand, op token, b operand) Condition {
	typed, ordered := a.factor, op.text != "==" && op.text != "!="
	switch {
	case a.factor == nil && b.factor == nil:
		p.noPath(a.token)
		p.noPath(b.token)
		p.fail(a.token, p.near(a.token.text), "neither side of %s is a factor", op.text)
	case a.factor == nil:
		typed = b.factor
	case b.factor != nil && a.factor.Unit != b.factor.Unit:
		p.fail(b.token, "", "%s is %s, %s is %s: they do not compare", quoted(a.factor.Path), a.factor.Noun,
			quoted(b.factor.Path), b.factor.Noun)
	}
	if ordered && typed.Unit == "" {
		p.fail(op, "words only compare with == and !=", "%s has no order", quoted(typed.Path))
	}
	x, y := p.side(a, typed, ordered), p.side(b, typed, ordered)
	numbers := a.times != 0 || b.times != 0
	return func(level func(string) Level) bool {
		u, v := x(level), y(level)
		same := u.Text == v.Text
		if numbers {
			same = u.Number == v.Number
		}
		switch op.text {
		case "==":
			return same
		case "!=":
			return !same
		case "<":
			return u.Number < v.Number
		case "<=":
			return u.Number <= v.Number
		case ">":
			return u.Number > v.Number
		}
		return u.Number >= v.Number
	}
}

// side is one side as a function of the cell: the level of its factor, or a value of the
// other side's.
func (p conditions) side(o operand, typed *Factor, ordered bool) func(level func(string) Level) Level {
	if o.factor != nil {
		return func(level func(string) Level) Level {
			l := level(o.factor.Path)
			if o.times != 0 {
				l.Number *= o.times
			}
			return l
		}
	}
	fixed, err := typed.Read(o.token.text)
	if wrong, is := err.(*Error); is {
		p.noPath(o.token)
		p.fail(o.token, wrong.Fix, "%s: %s", quoted(typed.Path), wrong.Msg)
	}
	if ordered && math.IsNaN(fixed.Number) {
		p.fail(o.token, "it compares with == and != only", "%s has no order", quoted(o.token.text))
	}
	return func(func(string) Level) Level { return fixed }
}
