package experiment

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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

// conditionError is a mistake at a byte offset of an expression.
type conditionError struct {
	offset, width int
	msg, hint     string
}

func (e *conditionError) Error() string {
	if e.hint != "" {
		return e.msg + " (" + e.hint + ")"
	}
	return e.msg
}

// wherePath is a path that conditions may use.
type wherePath struct {
	field field
	words []string // the only values there are, if they are known
}

type whereToken struct {
	kind   byte // 'p'ath or value, 's'tring, 'o'perator, 0 at the end
	text   string
	offset int
}

// arithmetic reports whether t is an operator that people try behind a factor.
func (t whereToken) arithmetic() bool {
	return t.kind == 'o' && t.text == "*" || t.kind == 'p' && strings.HasPrefix(t.text, "/")
}

type whereParser struct {
	paths  map[string]wherePath
	order  []string // the paths in the order of the format
	src    string
	tokens []whereToken
}

// compileWhere compiles one condition. A panic with a *conditionError keeps
// the descent readable; it never leaves this function.
func compileWhere(src string, paths map[string]wherePath, order []string) (c condition, err error) {
	p := &whereParser{paths: paths, order: order, src: src}
	defer func() {
		if r := recover(); r != nil {
			ce, ok := r.(*conditionError)
			if !ok {
				panic(r)
			}
			c, err = nil, ce
		}
	}()
	p.lex()
	c = p.or(0)
	if t := p.peek(); t.arithmetic() {
		p.fail(t, timesHint, "unexpected %q", t.text)
	} else if t.kind != 0 {
		p.fail(t, "join conditions with && or ||", "unexpected %q", t.text)
	}
	return c, nil
}

func (p *whereParser) fail(t whereToken, hint, format string, args ...any) {
	panic(&conditionError{offset: t.offset, width: max(1, utf8.RuneCountInString(t.text)), msg: fmt.Sprintf(format, args...), hint: hint})
}

const operatorChars = "=!<>&|()[],*"

func (p *whereParser) lex() {
	ops := []string{"==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "(", ")", "[", "]", ",", "*"}
next:
	for i := 0; i < len(p.src); {
		switch c := p.src[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case c == '"' || c == '\'':
			end := strings.IndexByte(p.src[i+1:], c)
			if end < 0 {
				p.fail(whereToken{offset: i}, "", "the quoted text does not end")
			}
			p.tokens = append(p.tokens, whereToken{'s', p.src[i+1 : i+1+end], i})
			i += end + 2
			continue
		}
		for _, op := range ops {
			if strings.HasPrefix(p.src[i:], op) {
				p.tokens = append(p.tokens, whereToken{'o', op, i})
				i += len(op)
				continue next
			}
		}
		if strings.IndexByte(operatorChars, p.src[i]) >= 0 {
			hint := map[byte]string{'=': "compare with ==", '&': "write &&", '|': "write ||"}[p.src[i]]
			p.fail(whereToken{offset: i, text: p.src[i : i+1]}, hint, "unexpected %q", p.src[i:i+1])
		}
		end := strings.IndexAny(p.src[i:], operatorChars+" \t\r\n\"'")
		if end < 0 {
			end = len(p.src) - i
		}
		p.tokens = append(p.tokens, whereToken{'p', p.src[i : i+end], i})
		i += end
	}
}

func (p *whereParser) peek() whereToken {
	if len(p.tokens) == 0 {
		return whereToken{offset: len(p.src)}
	}
	return p.tokens[0]
}

func (p *whereParser) take() whereToken {
	t := p.peek()
	if len(p.tokens) > 0 {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *whereParser) is(op string) bool {
	t := p.peek()
	if t.kind == 'o' && t.text == op {
		p.take()
		return true
	}
	return false
}

// maxConditionDepth bounds the recursion on hostile input.
const maxConditionDepth = 100

func (p *whereParser) or(depth int) condition {
	c := p.and(depth)
	for {
		t := p.peek()
		switch {
		case p.is("||"):
			a, b := c, p.and(depth)
			c = func(env func(string) level) bool { return a(env) || b(env) }
		case t.kind == 'p' && (t.text == "or" || t.text == "and"):
			p.fail(t, "write && for and, || for or", "unexpected %q", t.text)
		default:
			return c
		}
	}
}

func (p *whereParser) and(depth int) condition {
	c := p.not(depth)
	for p.is("&&") {
		a, b := c, p.not(depth)
		c = func(env func(string) level) bool { return a(env) && b(env) }
	}
	return c
}

func (p *whereParser) not(depth int) condition {
	t := p.peek()
	if depth > maxConditionDepth {
		p.fail(t, "", "nested too deep")
	}
	switch {
	case p.is("!"):
		c := p.not(depth + 1)
		return func(env func(string) level) bool { return !c(env) }
	case p.is("("):
		c := p.or(depth + 1)
		if t := p.peek(); !p.is(")") {
			p.fail(t, "", "expected a closing parenthesis")
		}
		return c
	}
	return p.comparison()
}

// operand is one side of a comparison: a path or the text of a value.
type operand struct {
	token whereToken
	path  *wherePath
	times float64 // what the path's number is multiplied by; 0: nothing
}

const timesHint = "write the number first, and multiply only: 2 * disseminate.seeders <= disseminate.nodes"

func (p *whereParser) operand() operand {
	t := p.take()
	if t.kind != 'p' && t.kind != 's' {
		what := "the end"
		if t.kind != 0 {
			what = fmt.Sprintf("%q", t.text)
		}
		p.fail(t, "a comparison is like retrieve.range <= data.size", "expected a factor or a value, not %s", what)
	}
	if next := p.peek(); next.kind == 'o' && next.text == "*" {
		return p.product(t, p.take())
	}
	if t.kind == 'p' {
		if w, ok := p.paths[t.text]; ok {
			return operand{token: t, path: &w}
		}
		if strings.Contains(t.text, "/") && p.begins(t.text) {
			p.fail(t, timesHint, "unexpected `/`")
		}
		// A dot with a letter before it is a path: values have digits there.
		if i := strings.IndexByte(t.text, '.'); i > 0 && !strings.Contains("0123456789", t.text[i-1:i]) {
			p.fail(t, suggest.DidYouMean(t.text, p.order), "unknown factor `%s`", t.text)
		}
	}
	return operand{token: t}
}

// begins reports whether the text before the first slash is a path.
func (p *whereParser) begins(text string) bool {
	before, _, _ := strings.Cut(text, "/")
	_, ok := p.paths[before]
	return ok
}

// product is a number, the times sign that was taken, and the path after it.
func (p *whereParser) product(number, times whereToken) operand {
	_, _, unit, ok := splitNumber(number.text)
	if !ok || unit != "" || number.kind != 'p' {
		p.fail(times, timesHint, "unexpected %q after %q", "*", number.text)
	}
	by, err := strconv.ParseFloat(number.text, 64)
	if err != nil || by == 0 {
		p.fail(number, "a number above 0", "%q cannot be multiplied by", number.text)
	}
	o := p.operand()
	if o.times != 0 {
		p.fail(o.token, "multiply the numbers yourself", "one number is enough before `%s`", o.token.text)
	}
	if o.path == nil {
		p.fail(o.token, timesHint, "%q is not a factor: nothing else can be multiplied", o.token.text)
	}
	if o.path.field.kind().unit == "" {
		p.fail(o.token, "", "`%s` has no number to multiply", o.token.text)
	}
	o.times = by
	return o
}

func (p *whereParser) comparison() condition {
	left := p.operand()
	t := p.take()
	switch {
	case t.kind == 'p' && t.text == "in":
		return p.in(left)
	case t.arithmetic():
		p.fail(t, timesHint, "unexpected %q", t.text)
	}
	if t.kind != 'o' || !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text) {
		p.fail(t, "compare with ==, !=, <, <=, >, >= or in [a, b]", "expected a comparison after %q", left.token.text)
	}
	return p.compare(left, t, p.operand())
}

func (p *whereParser) in(left operand) condition {
	eq := whereToken{'o', "==", left.token.offset}
	if t := p.peek(); !p.is("[") {
		p.fail(t, "", "expected [ after in")
	}
	var any []condition
	for {
		any = append(any, p.compare(left, eq, p.operand()))
		if p.is("]") {
			break
		}
		if t := p.peek(); !p.is(",") {
			p.fail(t, "", "expected , or ] in the list")
		}
	}
	return func(env func(string) level) bool {
		return slices.ContainsFunc(any, func(c condition) bool { return c(env) })
	}
}

func (p *whereParser) compare(a operand, op whereToken, b operand) condition {
	if a.path == nil && b.path == nil {
		hint := ""
		for _, t := range []whereToken{a.token, b.token} {
			for _, path := range p.order {
				if strings.HasSuffix(path, "."+t.text) {
					hint = "did you mean `" + path + "`?"
				}
			}
		}
		if hint == "" {
			hint = suggest.DidYouMean(a.token.text, p.order)
		}
		p.fail(a.token, hint, "neither side of %s is a factor", op.text)
	}
	typed := a
	if a.path == nil {
		typed = b
	}
	if a.path != nil && b.path != nil {
		if ka, kb := a.path.field.kind(), b.path.field.kind(); ka.unit != kb.unit {
			p.fail(b.token, "", "`%s` is %s, `%s` is %s: they do not compare", a.token.text, ka.noun, b.token.text, kb.noun)
		}
	}
	isText := typed.path.field.kind().unit == ""
	if isText && op.text != "==" && op.text != "!=" {
		p.fail(op, "words only compare with == and !=", "`%s` has no order", typed.token.text)
	}
	x, y := p.side(a, typed), p.side(b, typed)
	numbers := a.times != 0 || b.times != 0
	return func(env func(string) level) bool {
		u, v := x(env), y(env)
		same := u.text == v.text
		if numbers {
			same = u.number == v.number
		}
		switch op.text {
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

// side is one side as a function of the cell; the value of the other side's
// factor when it is not a factor itself.
func (p *whereParser) side(o, typed operand) func(env func(string) level) level {
	if o.path != nil {
		path := o.token.text
		return func(env func(string) level) level {
			l := env(path)
			if o.times != 0 {
				l.number *= o.times
			}
			return l
		}
	}
	w := typed.path
	if w.words != nil && !slices.Contains(w.words, o.token.text) {
		p.fail(o.token, suggest.DidYouMean(o.token.text, w.words), "`%s` has no value %q", typed.token.text, o.token.text)
	}
	if w.field.compound() {
		fixed := level{o.token.text, math.NaN()}
		return func(func(string) level) level { return fixed }
	}
	v := reflect.New(w.field.typ).Elem()
	f := w.field
	f.min, f.max = "", ""
	if err := f.parse(o.token.text, v); err != nil {
		hint := ""
		msg := err.Error()
		if u, ok := err.(*unitError); ok {
			msg, hint = u.msg, u.hint
		}
		p.fail(o.token, hint, "`%s`: %s", typed.token.text, msg)
	}
	fixed := levelOf(f, v)
	if typed.token.text == rangePath && v.IsZero() {
		return func(env func(string) level) level {
			return level{text: fixed.text, number: env(dataSizePath).number}
		}
	}
	return func(func(string) level) level { return fixed }
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
