package gate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// Metric is a number that rules may speak of.
type Metric struct {
	Key     string
	Unit    string // of its values: "s", "B/s", "ratio"
	Neither bool   // neither way is better
	Lower   bool   // less is better
}

// Names are what a rule may speak of.
type Names struct {
	Metrics  []Metric            // nil: not known, and any may be named
	Headline string              // the metric of a rule that names none; empty: not known
	Levels   map[string][]string // of each factor by its path; "system" is one
	Fixed    map[string]string   // what could be a factor and has this level in every cell
	Gone     []string            // systems of Levels that no cell has any more: `--set systems=` took them out
	Cells    []map[string]string // the level of each factor, cell by cell; nil: not known, and a rule may mean none
	Open     bool                // factors beside those of Levels are not known
	Base     bool                // there is a base run
}

// Parse reads a rule:
//
//	METRIC < | <= | > | >= VALUE
//	METRIC within SHARE of SYSTEM
//	[METRIC] no worse than BASE [by SHARE]
//
// each of them with `where FACTOR == LEVEL`, or !=, and more conditions joined by
// `and`. A metric is its key, p95(ttfb) for ttfb_p95, or a part of a single key:
// success for success_rate. least is the SHARE of a rule that names none.
func Parse(rule string, names Names, least float64) (Rule, error) {
	p := &parser{rule: rule, names: names, tokens: tokens(rule)}
	r, err := p.parse(least)
	if err != nil {
		return Rule{}, err
	}
	r.Text = strings.TrimSpace(rule)
	return r, nil
}

type parser struct {
	rule   string
	names  Names
	tokens []token
}

// peek is the next token; at the end an empty one behind the rule.
func (p *parser) peek() token {
	if len(p.tokens) == 0 {
		return token{at: utf8.RuneCountInString(p.rule) + 1}
	}
	return p.tokens[0]
}

func (p *parser) next() token {
	t := p.peek()
	if len(p.tokens) > 0 {
		p.tokens = p.tokens[1:]
	}
	return t
}

// take takes the next token if it is this word.
func (p *parser) take(word string) bool {
	if !p.peek().is(word) {
		return false
	}
	p.next()
	return true
}

// forms are what a rule can be.
const forms = "forms: METRIC < VALUE; METRIC within 20% of SYSTEM; METRIC no worse than BASE by 5%; each with: where FACTOR == LEVEL"

// withoutGates is what to do about a rule whose system was taken out.
const withoutGates = "leave the system in, give other rules with --set 'gates=...', or none with --set gates="

func (p *parser) fail(t token, fix, format string, args ...any) error {
	return &Error{Rule: p.rule, At: t.at, Width: t.width(), Msg: fmt.Sprintf(format, args...), Fix: fix}
}

func (p *parser) expect(word, after string) error {
	if t := p.peek(); !p.take(word) {
		return p.fail(t, forms, "%s expected after %s", quoted(word), quoted(after))
	}
	return nil
}

func quoted(s string) string { return "`" + s + "`" }

func (p *parser) parse(least float64) (r Rule, err error) {
	if i := slices.IndexFunc(p.tokens, func(t token) bool { return t.open }); i >= 0 {
		return r, p.fail(p.tokens[i], "", "the quoted text does not end")
	}
	start := p.peek()
	if start.text == "" {
		return r, p.fail(start, forms, "the rule is empty")
	}
	r.Metric = p.names.Headline
	if start.text != "no" {
		if r.Metric, err = p.metric(); err != nil {
			return r, err
		}
	}
	var system token // of Within
	m := Metric{Key: r.Metric, Unit: anyUnit}
	if i := slices.IndexFunc(p.names.Metrics, func(m Metric) bool { return m.Key == r.Metric }); i >= 0 {
		m = p.names.Metrics[i]
	}
	switch t := p.next(); t.text {
	case "<", "<=", ">", ">=":
		r.Kind, r.Op = Limit, t.text
		if r.Value, err = p.value(m, t.text); err != nil {
			return r, err
		}
	case "=", "==", "!=":
		return r, p.fail(t, "use <, <=, > or >=", "%s: measured numbers cannot be tested for equality", quoted(t.text))
	case "within":
		r.Kind = Within
		if r.Share, err = p.share(m); err != nil {
			return r, err
		}
		if err = p.expect("of", "within "+strconv.FormatFloat(100*r.Share, 'g', -1, 64)+"%"); err != nil {
			return r, err
		}
		system = p.next()
		if r.System = system.text; !slices.Contains(p.names.Levels["system"], r.System) {
			fix := suggest.DidYouMean(r.System, p.names.Levels["system"])
			if system.is("BASE") {
				fix = "for another run: METRIC no worse than BASE by " + strconv.FormatFloat(100*r.Share, 'g', -1, 64) + "%"
			}
			return r, p.fail(system, fix, "the run has no system %s", quoted(r.System))
		}
		if slices.Contains(p.names.Gone, r.System) {
			return r, p.fail(system, withoutGates, "there is nothing to compare with: `--set` took %s out", quoted(r.System))
		}
	case "no":
		r.Kind, r.Share = NoWorse, least
		if m.Neither {
			return r, p.fail(t, "name a metric of which it is known which way is better", "%s is for information: neither way is better", quoted(m.Key))
		}
		for _, words := range [][2]string{{"worse", "no"}, {"than", "worse"}} {
			if err = p.expect(words[0], words[1]); err != nil {
				return r, err
			}
		}
		base := p.peek()
		if err = p.expect("BASE", "than"); err != nil {
			return r, err
		}
		if !p.names.Base {
			return r, p.fail(base, "use plimsoll compare BASE NEW --gate", "there is no base run to be worse than")
		}
		if p.take("by") {
			if r.Share, err = p.share(m); err != nil {
				return r, err
			}
		}
	default:
		return r, p.fail(t, forms, "a comparison expected after %s: <, <=, >, >=, within or no worse than", quoted(r.Metric))
	}
	where := p.peek()
	if p.take("where") {
		if r.Where, err = p.conditions(); err != nil {
			return r, err
		}
	}
	if t := p.peek(); t.text != "" {
		return r, p.fail(t, forms, "%s is not understood here", quoted(t.text))
	}
	if p.names.Cells == nil || slices.ContainsFunc(p.names.Cells, func(c map[string]string) bool {
		return r.Means(func(path string) string { return c[path] })
	}) {
		return r, nil
	}
	if len(r.Where) == 0 { // only a system is left that is compared with itself
		return r, p.fail(system, "name another system of the run, or add one", "the run has no system but %s, which is not compared with itself", quoted(r.System))
	}
	if i := slices.IndexFunc(r.Where, func(c Condition) bool { return c.Path == "system" && !c.Not && slices.Contains(p.names.Gone, c.Value) }); i >= 0 {
		return r, p.fail(where, withoutGates, "no cell of the run is meant: `--set` took %s out", quoted(r.Where[i].Value))
	}
	fix := "`and` joins conditions that one cell must meet; for several levels write a rule of each"
	if r.Kind == Within {
		fix = "a system is not compared with itself; " + fix
	}
	return r, p.fail(where, fix, "no cell of the run is meant: such a rule is never decided")
}

// metric reads a key, p95(key), or a part of a key.
func (p *parser) metric() (string, error) {
	t := p.next()
	word := t.text
	if p.take("(") {
		inner := p.next()
		if close := p.peek(); !p.take(")") {
			return "", p.fail(close, "p90(ttfb)", "%s expected", quoted(")"))
		}
		switch q, isQuantile := strings.CutPrefix(word, "p"); {
		case word == "median":
			word = inner.text + "_p50"
		case isQuantile && q != "" && strings.Trim(q, "0123456789.") == "":
			word = inner.text + "_p" + strings.ReplaceAll(q, ".", "")
		default:
			fix := "p50, p90, p95, p99 or median of a time"
			if small := strings.ToLower(word); small != word {
				fix = "did you mean " + quoted(small+"("+strings.ToLower(inner.text)+")") + "?"
			}
			return "", p.fail(t, fix, "%s is no percentile", quoted(word))
		}
	}
	if p.names.Metrics == nil {
		return word, nil
	}
	if word == "success" && slices.ContainsFunc(p.names.Metrics, func(m Metric) bool { return m.Key == "ok_rate" }) {
		return "ok_rate", nil // where what succeeds are nodes, not operations
	}
	var keys, near []string
	for _, m := range p.names.Metrics {
		if m.Key == word {
			return word, nil
		}
		keys = append(keys, m.Key)
		if slices.Contains(strings.Split(m.Key, "_"), word) {
			near = append(near, m.Key)
		}
	}
	switch {
	case len(near) == 1:
		return near[0], nil
	case len(near) > 1:
		return "", p.fail(t, "one of: "+strings.Join(near, ", "), "%s can be several metrics", quoted(word))
	}
	fix := suggest.DidYouMean(word, keys)
	if fix == "" {
		fix = "metrics: " + strings.Join(keys, ", ")
	}
	return "", p.fail(t, fix, "the run has no metric %s", quoted(word))
}

// share reads 20% or 0.2. What is better when it is less can be worse by any share;
// what is better when it is more cannot lose all.
func (p *parser) share(m Metric) (float64, error) {
	t := p.next()
	v, unit, ok := number(t.text)
	if ok && unit == "" && p.take("%") {
		unit = "%"
	}
	if unit == "%" {
		v /= 100
	}
	switch valid := ok && (unit == "" || unit == "%") && v >= 0; {
	case valid && v >= 1 && m.Lower && unit == "%":
	case valid && v >= 1 && m.Lower && unit == "":
		return 0, p.fail(t, "did you mean "+quoted(t.text+"%")+"?", "a share of 100%% and more is given in %%, not as %s", quoted(t.text))
	case !valid || v >= 1:
		return 0, p.fail(t, "such as 5%", "a share from 0 to below 100%% expected, not %s", quoted(t.text))
	}
	return v, nil
}

// value reads a number with a unit of the metric's, after an operator. What no
// number of the metric ever is cannot be a limit: a rule of it holds always or never.
func (p *parser) value(m Metric, op string) (float64, error) {
	t := p.next()
	v, unit, ok := number(t.text)
	switch {
	case t.text == "":
		return 0, p.fail(t, forms, "a number expected after %s", quoted(op))
	case !ok:
		return 0, p.fail(t, "", "a number expected, not %s", quoted(t.text))
	}
	if n := p.peek(); unit == "" && n.text != "" && !n.is("where") {
		unit = p.next().text
	}
	scale, ok := unitsOf(m.Unit)[unit]
	if m.Unit == anyUnit {
		scale, ok = 1, true // what is read again once the metric is known
	}
	switch {
	case !ok && strings.Contains(t.text+unit, ","):
		return 0, p.fail(t, "several rules are a list: gates: [RULE, RULE]", "one rule ends before the comma")
	case !ok && unit == "":
		return 0, p.fail(t, "units: "+strings.Join(unitNames(m.Unit), ", "), "%s is in %s, and %s has no unit", m.Key, unitWord(m.Unit), quoted(t.text))
	case !ok:
		return 0, p.fail(t, "units: "+strings.Join(unitNames(m.Unit), ", "), "%s is in %s, which cannot be given in %s", m.Key, unitWord(m.Unit), quoted(unit))
	}
	limit := v * scale
	if unit == "%" {
		var err error
		if limit, err = strconv.ParseFloat(strconv.FormatFloat(v, 'f', -1, 64)+"e-2", 64); err != nil { // 99.9/100 is not 0.999
			return 0, err
		}
	}
	return limit, p.possible(t, m, op, limit, v, unit)
}

// possible refuses a limit that lies where no number of the metric does.
func (p *parser) possible(t token, m Metric, op string, limit, v float64, unit string) error {
	most := mostOf(m)
	percent := strconv.FormatFloat(v, 'g', -1, 64) + "%"
	switch {
	case limit < 0 || limit == 0 && op == "<":
		return p.fail(t, "", "%s is never below 0", m.Key)
	case limit > most && unit == "" && v <= 100*most:
		return p.fail(t, "did you mean "+quoted(percent)+"?", "%s is a share: %s is %s %%", m.Key, quoted(t.text), strconv.FormatFloat(100*v, 'g', -1, 64))
	case limit > most || limit == 1 && most == 1 && op == ">":
		return p.fail(t, "", "%s is never above %s %%", m.Key, strconv.FormatFloat(100*most, 'g', -1, 64))
	}
	return nil
}

// anyUnit is the unit of a metric that is not known.
const anyUnit = "?"

var amount = regexp.MustCompile(`^[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?`)

// number splits 200ms into 200 and ms.
func number(text string) (v float64, unit string, ok bool) {
	n := len(amount.FindString(text))
	v, err := strconv.ParseFloat(text[:n], 64)
	return v, text[n:], err == nil
}

func (p *parser) conditions() ([]Condition, error) {
	var all []Condition
	for after := "where"; ; after = "and" {
		c, err := p.condition(after)
		if err != nil {
			return nil, err
		}
		if all = append(all, c); !p.take("and") {
			return all, nil
		}
	}
}

func (p *parser) condition(after string) (c Condition, err error) {
	t := p.next()
	var called []string // what factors can be called
	for path := range p.names.Levels {
		if isCalled(path, t.text) {
			c.Path = path
		}
		called = append(called, path[strings.LastIndex(path, ".")+1:])
	}
	slices.Sort(called)
	switch {
	case t.text == "":
		return c, p.fail(t, "factors: "+strings.Join(called, ", "), "a factor expected after %s", quoted(after))
	case c.Path == "" && p.names.Open:
		c.Path = t.text
	case c.Path == "":
		for path, level := range p.names.Fixed {
			if isCalled(path, t.text) {
				return c, p.fail(t, "take the condition away, or with --set gates= all rules", "%s does not vary: it is %s in every cell", path, level)
			}
		}
		return c, p.fail(t, suggest.DidYouMean(t.text, called), "%s is no factor of the run", quoted(t.text))
	}
	switch op := p.next(); op.text {
	case "=", "==":
	case "!=":
		c.Not = true
	default:
		fix := ""
		if slices.Contains([]string{"<", "<=", ">", ">="}, op.text) {
			fix = "levels are not compared by size: name one with ==, or leave one out with !="
		}
		return c, p.fail(op, fix, "%s or %s expected after %s", quoted("=="), quoted("!="), quoted(t.text))
	}
	level := p.next()
	c.Value = level.text
	levels, known := p.names.Levels[c.Path]
	switch {
	case level.text == "" && !level.quoted:
		return c, p.fail(level, levelsHint(levels), "a level of %s expected", c.Path)
	case known && !slices.Contains(levels, c.Value):
		return c, p.fail(level, levelsHint(levels), "%s has no level %s", c.Path, quoted(level.text))
	}
	return c, nil
}

// isCalled reports whether a factor goes by a name: its path, or the end of it.
func isCalled(path, name string) bool {
	return name != "" && (path == name || strings.HasSuffix(path, "."+name))
}

// levelsHint lists levels as a rule has to write them.
func levelsHint(levels []string) string {
	if len(levels) == 0 {
		return ""
	}
	all := make([]string, len(levels))
	for i, l := range levels {
		if all[i] = l; len(tokens(l)) != 1 || tokens(l)[0].quoted {
			all[i] = `"` + l + `"`
		}
	}
	return "levels: " + strings.Join(all, ", ")
}
