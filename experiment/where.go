package experiment

import (
	"cmp"

	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// A condition of `where:` is a small expression over the factors of a cell:
//
//	condition = and { "||" and }
//	and       = not { "&&" not }
//	not       = "!" not | "(" condition ")" | comparison
//	comparison = operand ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) operand
//	           | operand "in" "[" operand { "," operand } "]"
//	operand   = [ number "*" ] path | value
//
// A value is written as it would be in the file. A comparison has at least one
// path, which says what the value means; what is multiplied must be a number,
// and then numbers are compared. Words that stand for no limit
// (unlimited) order above every number, whole orders as the size of the
// object, and an unknown size orders above every number. Words that leave a
// choice (auto) equal only themselves and order nowhere.

// condition is a compiled expression.
type condition func(env func(path string) level) bool

// level is the value that a cell has for a path.
type level struct {
	text   string  // canonical
	number float64 // for order; NaN for words
}

var whereSplit = regexp.MustCompile(`"[^"]*"?|'[^']*'?|[=!<>]=?|&&|\|\||[()\[\],*&|]|[^\s"'=!<>&|()\[\],*]+`)

// maxConditionDepth bounds the recursion on hostile input.
const maxConditionDepth = 100

type whereParser struct {
	*gate.Scanner
	factors []axisRef
}

// compileWhere compiles one condition over the factors.
func compileWhere(src string, factors []axisRef) (keep condition, err error) {
	defer gate.Caught(&err)
	p := &whereParser{gate.Scan("where", src, whereSplit), factors}
	keep = p.or(0)
	if t := p.Peek(); !t.End() {
		p.misplaced(t)
	}
	return keep, nil
}

const timesHint = "write the number first, and multiply only: 2 * disseminate.seeders <= disseminate.nodes"

// instead is what to write for what people try.
func instead(t gate.Token) string {
	switch {
	case t.Quoted:
	case t.Text == "*" || strings.HasPrefix(t.Text, "/"):
		return timesHint
	case t.Text == "=":
		return "compare with =="
	case t.Text == "&" || t.Text == "|":
		return "write " + t.Text + t.Text
	case t.Text == "and" || t.Text == "or":
		return "write && for and, || for or"
	}
	return ""
}

func (p *whereParser) misplaced(t gate.Token) {
	p.Fail(t, cmp.Or(instead(t), "join conditions with && or ||"), "unexpected %q", t.Text)
}

func (p *whereParser) or(depth int) condition {
	c := p.and(depth)
	for p.Take("||") {
		a, b := c, p.and(depth)
		c = func(env func(string) level) bool { return a(env) || b(env) }
	}
	return c
}

func (p *whereParser) and(depth int) condition {
	c := p.not(depth)
	for p.Take("&&") {
		a, b := c, p.not(depth)
		c = func(env func(string) level) bool { return a(env) && b(env) }
	}
	return c
}

func (p *whereParser) not(depth int) condition {
	if depth > maxConditionDepth {
		p.Fail(p.Peek(), "", "nested too deep")
	}
	switch {
	case p.Take("!"):
		c := p.not(depth + 1)
		return func(env func(string) level) bool { return !c(env) }
	case p.Take("("):
		c := p.or(depth + 1)
		if t := p.Peek(); !p.Take(")") {
			p.Fail(t, instead(t), "expected a closing parenthesis")
		}
		return c
	}
	return p.comparison()
}

// operand is one side of a comparison: a factor or the text of a value.
type operand struct {
	token  gate.Token
	factor *axisRef
	times  float64 // what the factor's number is multiplied by; 0: nothing
}

func (p *whereParser) factor(path string) *axisRef {
	if i := slices.IndexFunc(p.factors, func(a axisRef) bool { return a.path == path }); i >= 0 {
		return &p.factors[i]
	}
	return nil
}

func (p *whereParser) operand() operand {
	t := p.Next()
	switch before, _, divided := strings.Cut(t.Text, "/"); {
	case t.End():
		p.Fail(t, "a comparison is like retrieve.range <= data.size", "expected a factor or a value, not the end")
	case t.Operator:
		p.Fail(t, "a comparison is like retrieve.range <= data.size", "expected a factor or a value, not %q", t.Text)
	case p.Peek().Is("*"):
		return p.product(t)
	case t.Quoted:
	case divided && p.factor(before) != nil:
		p.Fail(t, timesHint, "unexpected `/`")
	default:
		factor := p.factor(t.Text)
		// A dot with a letter before it is a path: values have digits there.
		if i := strings.IndexByte(t.Text, '.'); factor == nil && i > 0 && !isDigits(t.Text[i-1:i]) {
			p.Fail(t, suggest.DidYouMean(t.Text, p.paths()), "unknown factor `%s`", t.Text)
		}
		return operand{token: t, factor: factor}
	}
	return operand{token: t}
}

func (p *whereParser) paths() []string {
	paths := make([]string, len(p.factors))
	for i, f := range p.factors {
		paths[i] = f.path
	}
	return paths
}

// product is a number, the times sign that comes next, and the factor after it.
func (p *whereParser) product(number gate.Token) operand {
	times := p.Next()
	by, err := strconv.ParseFloat(number.Text, 64)
	if _, _, unit, ok := splitNumber(number.Text); !ok || unit != "" || number.Quoted {
		p.Fail(times, timesHint, "unexpected %q after %q", "*", number.Text)
	}
	if err != nil || by == 0 {
		p.Fail(number, "a number above 0", "%q cannot be multiplied by", number.Text)
	}
	o := p.operand()
	switch {
	case o.times != 0:
		p.Fail(o.token, "multiply the numbers yourself", "one number is enough before `%s`", o.token.Text)
	case o.factor == nil:
		p.Fail(o.token, timesHint, "%q is not a factor: nothing else can be multiplied", o.token.Text)
	case o.factor.field.kind().unit == "":
		p.Fail(o.token, "", "`%s` has no number to multiply", o.token.Text)
	}
	o.times = by
	return o
}

func (p *whereParser) comparison() condition {
	left := p.operand()
	op := p.Next()
	switch {
	case op.Is("in"):
		return p.in(left, op)
	case op.Operator && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op.Text):
		return p.compare(left, op, p.operand())
	case instead(op) != "":
		p.misplaced(op)
	}
	p.Fail(op, "compare with ==, !=, <, <=, >, >= or in [a, b]", "expected a comparison after %q", left.token.Text)
	return nil
}

func (p *whereParser) in(left operand, op gate.Token) condition {
	op.Text = "=="
	if t := p.Peek(); !p.Take("[") {
		p.Fail(t, "", "expected [ after in")
	}
	var any []condition
	for {
		any = append(any, p.compare(left, op, p.operand()))
		if p.Take("]") {
			break
		}
		if t := p.Peek(); !p.Take(",") {
			p.Fail(t, "", "expected , or ] in the list")
		}
	}
	return func(env func(string) level) bool {
		return slices.ContainsFunc(any, func(c condition) bool { return c(env) })
	}
}

func (p *whereParser) compare(a operand, op gate.Token, b operand) condition {
	typed := a
	switch {
	case a.factor != nil && b.factor != nil:
		if ka, kb := a.factor.field.kind(), b.factor.field.kind(); ka.unit != kb.unit {
			p.Fail(b.token, "", "`%s` is %s, `%s` is %s: they do not compare", a.token.Text, ka.noun, b.token.Text, kb.noun)
		}
	case b.factor != nil:
		typed = b
	case a.factor == nil:
		hint := suggest.DidYouMean(a.token.Text, p.paths())
		for _, path := range p.paths() {
			if strings.HasSuffix(path, "."+a.token.Text) || strings.HasSuffix(path, "."+b.token.Text) {
				hint = "did you mean `" + path + "`?"
			}
		}
		p.Fail(a.token, hint, "neither side of %s is a factor", op.Text)
	}
	if typed.factor.field.kind().unit == "" && op.Text != "==" && op.Text != "!=" {
		p.Fail(op, "words only compare with == and !=", "`%s` has no order", typed.token.Text)
	}
	x, y := p.side(a, typed), p.side(b, typed)
	numbers := a.times != 0 || b.times != 0
	return func(env func(string) level) bool {
		u, v := x(env), y(env)
		same := u.text == v.text
		if numbers {
			same = u.number == v.number
		}
		switch op.Text {
		case "==":
			return same
		case "!=":
			return !same
		case "<":
			return u.number < v.number
		case "<=":
			return u.number <= v.number
		case ">":
			return u.number > v.number
		}
		return u.number >= v.number
	}
}

// side is one side as a function of the cell: the level of its factor, or a value of the
// other side's.
func (p *whereParser) side(o, typed operand) func(env func(string) level) level {
	path := typed.token.Text
	if o.factor != nil {
		return func(env func(string) level) level {
			l := env(o.token.Text)
			if o.times != 0 {
				l.number *= o.times
			}
			return l
		}
	}
	f := typed.factor.compared()
	v := reflect.New(f.typ).Elem()
	if err := f.parse(o.token.Text, v); err != nil {
		wrong := err.(*unitError)
		p.Fail(o.token, wrong.hint, "`%s`: %s", path, wrong.msg)
	}
	fixed := levelOf(f, v)
	return func(env func(string) level) level {
		if path == rangePath && v.IsZero() {
			return level{fixed.text, env(dataSizePath).number}
		}
		return fixed
	}
}

// compared is how values of the factor are read in a condition.
func (a axisRef) compared() field {
	f := a.field
	f.min, f.max = "", ""
	if f.compound() {
		f.typ, f.enum, f.zero = reflect.TypeFor[string](), []string{f.zero}, ""
		for i := range a.values.Len() {
			f.enum = append(f.enum, a.field.text(a.values.Index(i)))
		}
	}
	return f
}

const (
	dataSizePath = "data.size"
	rangePath    = "retrieve.range"
)

// levelOf is the level of a value of f. Whole is ordered by the caller, who
// knows the object's size.
func levelOf(f field, v reflect.Value) level {
	l := level{text: f.text(v), number: number(v)}
	switch {
	case f.zero == "unlimited" && v.IsZero():
		l.number = math.Inf(1)
	case v.Kind() == reflect.String || f.kind().unit == "" || f.zero != "" && v.IsZero():
		l.number = math.NaN()
	}
	return l
}
