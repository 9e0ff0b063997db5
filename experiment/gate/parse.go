package gate

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// Parse reads a rule:
//
//	METRIC < | <= | > | >= VALUE
//	METRIC within SHARE of SYSTEM
//	[METRIC] no worse than BASE [by SHARE]
//
// each of them with `where` and a condition, such as `where concurrency == 8`. A metric is
// its key, p95(ttfb) for ttfb_p95, or a part of a single key: success for success_rate.
// least is the SHARE of a rule that names none.
func Parse(rule string, names Names, least float64) (r Rule, err error) {
	defer caught(&err)
	p := &parser{scan("gate", rule), names}
	r = p.rule(least)
	r.Text = strings.TrimSpace(rule)
	return r, nil
}

type parser struct {
	*scanner
	names Names
}

// forms are what a rule can be.
const forms = "forms: METRIC < VALUE; METRIC within 20% of SYSTEM; METRIC no worse than BASE by 5%; each with: where " +
	"FACTOR == LEVEL"

func (p *parser) expect(word, after string) {
	if t := p.peek(); !p.take(word) {
		p.fail(t, forms, "%s expected after %s", quoted(word), quoted(after))
	}
}

func quoted(s string) string { return "`" + s + "`" }

func (p *parser) rule(least float64) Rule {
	start := p.peek()
	if start.text == "" {
		p.fail(start, forms, "the rule is empty")
	}
	r := Rule{Metric: p.names.Headline}
	if !start.is("no") {
		r.Metric = p.metric()
	}
	m := Metric{Key: r.Metric, Unit: anyUnit}
	if i := slices.IndexFunc(p.names.Metrics, func(m Metric) bool { return m.Key == r.Metric }); i >= 0 {
		m = p.names.Metrics[i]
	}
	switch t := p.next(); t.text {
	case "<", "<=", ">", ">=":
		r.Kind, r.Op, r.Value = Limit, t.text, p.value(m, t.text)
	case "=", "==", "!=":
		p.fail(t, "use <, <=, > or >=", "%s: measured numbers cannot be tested for equality", quoted(t.text))
	case "within":
		r.Kind, r.Share = Within, p.share(m)
		p.expect("of", "within "+percent(r.Share))
		system := p.next()
		if r.System = system.text; !slices.Contains(p.names.Levels["system"], r.System) {
			fix := suggest.DidYouMean(r.System, p.names.Levels["system"])
			if system.is("BASE") {
				fix = "for another run: METRIC no worse than BASE by " + percent(r.Share)
			}
			p.fail(system, fix, "the run has no system %s", quoted(r.System))
		}
	case "no":
		r.Kind, r.Share = NoWorse, p.noWorse(t, m, least)
	default:
		p.fail(t, forms, "a comparison expected after %s: <, <=, >, >=, within or no worse than", quoted(r.Metric))
	}
	where := p.peek()
	if p.take("where") {
		r.Where = conditions{p.scanner, p.names.factors()}.or(0)
	}
	if t := p.peek(); t.is(",") {
		p.fail(t, "several rules are a list: gates: [RULE, RULE]", "one rule ends before the comma")
	} else if !t.end() {
		p.fail(t, forms, "%s is not understood here", quoted(t.text))
	}
	if p.names.Cells != nil && !slices.ContainsFunc(p.names.Cells, func(c map[string]string) bool {
		return r.Means(func(path string) string { return c[path] })
	}) {
		fix := "for several levels write a rule of each, or `in [a, b]`"
		if r.Kind == Within {
			fix = "a system is not compared with itself; " + fix
		}
		p.fail(where, fix, "no cell of the run is meant: such a rule is never decided")
	}
	return r
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', -1, 64) + "%" }

// noWorse reads `worse than BASE by SHARE`, behind the word no.
func (p *parser) noWorse(no token, m Metric, least float64) float64 {
	if m.Neither {
		p.fail(no, "name a metric of which it is known which way is better", "%s is for information: neither way is "+
			"better",
			quoted(m.Key))
	}
	p.expect("worse", "no")
	p.expect("than", "worse")
	base := p.peek()
	p.expect("BASE", "than")
	if !p.names.Base {
		p.fail(base, "use plimsoll compare BASE NEW --gate", "there is no base run to be worse than")
	}
	if p.take("by") {
		return p.share(m)
	}
	return least
}

// metric reads a key, p95(key), or a part of a key.
func (p *parser) metric() string {
	t := p.next()
	word := t.text
	if p.take("(") {
		inner := p.next()
		if close := p.peek(); !p.take(")") {
			p.fail(close, "p90(ttfb)", "%s expected", quoted(")"))
		}
		switch q, isQuantile := strings.CutPrefix(word, "p"); {
		case word == "median":
			word = inner.text + "_p50"
		case isQuantile && q != "" && strings.Trim(q, "0123456789.") == "":
			word = inner.text + "_p" + strings.ReplaceAll(q, ".", "")
		default:
			p.fail(t, "p50, p90, p95, p99 or median of a time", "%s is no percentile", quoted(word))
		}
	}
	if p.names.Metrics == nil {
		return word
	}
	if word == "success" && slices.ContainsFunc(p.names.Metrics, func(m Metric) bool { return m.Key == "ok_rate" }) {
		return "ok_rate" // where what succeeds are nodes, not operations
	}
	var keys, near []string
	for _, m := range p.names.Metrics {
		if m.Key == word {
			return word
		}
		keys = append(keys, m.Key)
		if slices.Contains(strings.Split(m.Key, "_"), word) {
			near = append(near, m.Key)
		}
	}
	switch {
	case len(near) == 1:
		return near[0]
	case len(near) > 1:
		p.fail(t, "one of: "+strings.Join(near, ", "), "%s can be several metrics", quoted(word))
	}
	p.fail(t, suggest.OrAll(word, keys), "the run has no metric %s", quoted(word))
	return ""
}

// share reads 20% or 0.2. What is better when it is less can be worse by any share;
// what is better when it is more cannot lose all.
func (p *parser) share(m Metric) float64 {
	t := p.next()
	v, unit, ok := number(t.text)
	if ok && unit == "" && p.take("%") {
		unit = "%"
	}
	most := 1.0
	if unit == "%" {
		v /= 100
		if m.Lower {
			most = 1000
		}
	}
	if !ok || unit != "" && unit != "%" || v < 0 || v >= most {
		p.fail(t, "such as 5%", "a share from 0 to below 100%% expected, not %s", quoted(t.text))
	}
	return v
}

// value reads a number with a unit of the metric's, after an operator.
func (p *parser) value(m Metric, op string) float64 {
	t := p.next()
	v, unit, ok := number(t.text)
	if !ok {
		p.fail(t, forms, "a number expected after %s, not %s", quoted(op), quoted(t.text))
	}
	if n := p.peek(); unit == "" && !n.end() && !n.operator && !n.is("where") {
		unit = p.next().text
	}
	scale, ok := unitsOf(m.Unit)[unit]
	if m.Unit == anyUnit {
		scale, ok = 1, true // what is read again once the metric is known
	}
	if !ok {
		p.fail(t, unitsHint(m.Unit), "%s is in %s, and %s is not", m.Key, unitWord(m.Unit), quoted(t.text))
	}
	limit := v * scale
	if unit == "%" {
		limit, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'f', -1, 64)+"e-2", 64) // 99.9/100 is not 0.999
	}
	switch most := mostOf(m); {
	case limit < 0 || limit == 0 && op == "<":
		p.fail(t, "", "%s is never below 0", m.Key)
	case limit > most && unit == "" && v <= 100*most:
		p.fail(t, "did you mean "+quoted(fmt.Sprintf("%g%%", v))+"?", "%s is a share: %s is %g %%", m.Key,
			quoted(t.text), 100*limit)
	case limit > most || limit == 1 && most == 1 && op == ">":
		p.fail(t, "", "%s is never above %g %%", m.Key, 100*most)
	}
	return limit
}

// ofAll are the metrics that are a part of a whole.
var ofAll = []string{"success_rate", "ok_rate", "recovered", "useful_share", "peer_share_max", "seeder_share"}

// mostOf is above what a metric can be: an estimated share of a line can be above 1.
func mostOf(m Metric) float64 {
	switch {
	case m.Unit != "ratio":
		return math.Inf(1)
	case slices.Contains(ofAll, m.Key):
		return 1
	}
	return 10
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
