package gate

import (
	"fmt"
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
}

// Names are what a rule may speak of.
type Names struct {
	Metrics  []Metric            // nil: not known, and any may be named
	Headline string              // the metric of a rule that names none; empty: not known
	Levels   map[string][]string // of each factor by its path; "system" is one
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
		return token{"", utf8.RuneCountInString(p.rule) + 1}
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
	if p.peek().text != word {
		return false
	}
	p.next()
	return true
}

// forms are what a rule can be.
const forms = "forms: METRIC < VALUE; METRIC within 20% of SYSTEM; METRIC no worse than BASE by 5%; each with: where FACTOR == LEVEL"

func (p *parser) fail(t token, fix, format string, args ...any) error {
	return &Error{Rule: p.rule, At: t.at, Width: max(1, utf8.RuneCountInString(t.text)), Msg: fmt.Sprintf(format, args...), Fix: fix}
}

func (p *parser) expect(word, after string) error {
	if t := p.peek(); !p.take(word) {
		return p.fail(t, forms, "%s expected after %s", quoted(word), quoted(after))
	}
	return nil
}

func quoted(s string) string { return "`" + s + "`" }

func (p *parser) parse(least float64) (r Rule, err error) {
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
	m := Metric{Key: r.Metric, Unit: anyUnit}
	if i := slices.IndexFunc(p.names.Metrics, func(m Metric) bool { return m.Key == r.Metric }); i >= 0 {
		m = p.names.Metrics[i]
	}
	switch t := p.next(); t.text {
	case "<", "<=", ">", ">=":
		r.Kind, r.Op = Limit, t.text
		if r.Value, err = p.value(m); err != nil {
			return r, err
		}
	case "=", "==", "!=":
		return r, p.fail(t, "use <, <=, > or >=", "%s: whether a measured number equals another cannot be told", quoted(t.text))
	case "within":
		r.Kind = Within
		if r.Share, err = p.share(); err != nil {
			return r, err
		}
		if err = p.expect("of", "within "+strconv.FormatFloat(100*r.Share, 'g', -1, 64)+"%"); err != nil {
			return r, err
		}
		s := p.next()
		if r.System = s.text; !slices.Contains(p.names.Levels["system"], s.text) {
			return r, p.fail(s, suggest.DidYouMean(s.text, p.names.Levels["system"]), "the run has no system %s", quoted(s.text))
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
			if r.Share, err = p.share(); err != nil {
				return r, err
			}
		}
	default:
		return r, p.fail(t, forms, "a comparison expected after %s: <, <=, >, >=, within or no worse than", quoted(r.Metric))
	}
	if p.take("where") {
		if r.Where, err = p.conditions(); err != nil {
			return r, err
		}
	}
	if t := p.peek(); t.text != "" {
		return r, p.fail(t, forms, "%s is not understood here", quoted(t.text))
	}
	return r, nil
}

// metric reads a key, p95(key), or a part of a key.
func (p *parser) metric() (string, error) {
	t := p.next()
	word := t.text
	if p.take("(") {
		inner := p.next()
		if close := p.peek(); !p.take(")") {
			return "", p.fail(close, "p95(ttfb)", "%s expected", quoted(")"))
		}
		switch q, isQuantile := strings.CutPrefix(word, "p"); {
		case word == "median":
			word = inner.text + "_p50"
		case isQuantile && q != "" && strings.Trim(q, "0123456789.") == "":
			word = inner.text + "_p" + strings.ReplaceAll(q, ".", "")
		default:
			return "", p.fail(t, "p50, p95, p99 or median of a time", "%s is no percentile", quoted(word))
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

// share reads 20% or 0.2.
func (p *parser) share() (float64, error) {
	t := p.next()
	v, unit, ok := number(t.text)
	if ok && unit == "" && p.take("%") {
		unit = "%"
	}
	if unit == "%" {
		v /= 100
	}
	if !ok || unit != "" && unit != "%" || v < 0 || v >= 1 {
		return 0, p.fail(t, "such as 5%", "a share from 0 to below 100%% expected, not %s", quoted(t.text))
	}
	return v, nil
}

// value reads a number with a unit of the metric's.
func (p *parser) value(m Metric) (float64, error) {
	t := p.next()
	v, unit, ok := number(t.text)
	if !ok {
		return 0, p.fail(t, "", "a number expected, not %s", quoted(t.text))
	}
	if n := p.peek().text; unit == "" && n != "" && n != "where" {
		unit = p.next().text
	}
	scale, ok := unitsOf(m.Unit)[unit]
	if m.Unit == anyUnit {
		scale, ok = 1, true // what is read again once the metric is known
	}
	if !ok {
		return 0, p.fail(t, "units: "+strings.Join(unitNames(m.Unit), ", "), "%s is in %s, which cannot be given in %s", m.Key, unitWord(m.Unit), quoted(unit))
	}
	if m.Key == "success_rate" && unit == "" && v > 1 {
		return 0, p.fail(t, "did you mean "+t.text+"%?", "success_rate is a share, which cannot be above 1")
	}
	if unit == "%" {
		return strconv.ParseFloat(strings.TrimSuffix(t.text, "%")+"e-2", 64) // 99.9/100 is not 0.999
	}
	return v * scale, nil
}

// anyUnit is the unit of a metric that is not known.
const anyUnit = "?"

// number splits 200ms into 200 and ms.
func number(text string) (v float64, unit string, ok bool) {
	n := len(text) - len(strings.TrimLeft(text, "+-0123456789.,"))
	v, err := strconv.ParseFloat(text[:n], 64)
	return v, text[n:], err == nil
}

func (p *parser) conditions() ([]Condition, error) {
	var all []Condition
	for {
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		if all = append(all, c); !p.take("and") {
			return all, nil
		}
	}
}

func (p *parser) condition() (c Condition, err error) {
	t := p.next()
	var called []string // what factors can be called
	for path := range p.names.Levels {
		if path == t.text || strings.HasSuffix(path, "."+t.text) {
			c.Path = path
		}
		called = append(called, path[strings.LastIndex(path, ".")+1:])
	}
	slices.Sort(called)
	if c.Path == "" && p.names.Open {
		c.Path = t.text
	} else if c.Path == "" {
		return c, p.fail(t, suggest.DidYouMean(t.text, called), "%s is no factor of the run", quoted(t.text))
	}
	switch op := p.next(); op.text {
	case "=", "==":
	case "!=":
		c.Not = true
	default:
		return c, p.fail(op, "", "%s or %s expected after %s", quoted("=="), quoted("!="), quoted(t.text))
	}
	level := p.next()
	c.Value = level.text
	if levels, known := p.names.Levels[c.Path]; known && !slices.Contains(levels, c.Value) {
		return c, p.fail(level, "levels: "+strings.Join(p.names.Levels[c.Path], ", "), "%s has no level %s", c.Path, quoted(level.text))
	}
	return c, nil
}
