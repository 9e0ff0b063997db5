package gate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// split finds the words, operators and quoted texts of a rule.
var split = regexp.MustCompile(`"[^"]*"?|'[^']*'?|[<>=!]=?|[()]|[^\s<>=!()"']+`)

// Parse reads a rule:
//
//	METRIC < | <= | > | >= VALUE
//	METRIC within SHARE of SYSTEM
//	[METRIC] no worse than BASE [by SHARE]
//
// each of them with `where FACTOR == LEVEL`, or !=, and more conditions joined by
// `and`. A metric is its key, p95(ttfb) for ttfb_p95, or a part of a single key:
// success for success_rate. least is the SHARE of a rule that names none.
func Parse(rule string, names Names, least float64) (r Rule, err error) {
	defer Caught(&err)
	p := &parser{Scan("gate", rule, split), names}
	r = p.rule(least)
	r.Text = strings.TrimSpace(rule)
	return r, nil
}

type parser struct {
	*Scanner
	names Names
}

// forms are what a rule can be.
const forms = "forms: METRIC < VALUE; METRIC within 20% of SYSTEM; METRIC no worse than BASE by 5%; each with: where FACTOR == LEVEL"

// withoutGates is what to do about a rule whose system was taken out.
const withoutGates = "leave the system in, give other rules with --set 'gates=...', or none with --set gates="

func (p *parser) expect(word, after string) {
	if t := p.Peek(); !p.Take(word) {
		p.Fail(t, forms, "%s expected after %s", quoted(word), quoted(after))
	}
}

func quoted(s string) string { return "`" + s + "`" }

func (p *parser) rule(least float64) Rule {
	start := p.Peek()
	if start.Text == "" {
		p.Fail(start, forms, "the rule is empty")
	}
	r := Rule{Metric: p.names.Headline}
	if start.Text != "no" {
		r.Metric = p.metric()
	}
	m := Metric{Key: r.Metric, Unit: anyUnit}
	if i := slices.IndexFunc(p.names.Metrics, func(m Metric) bool { return m.Key == r.Metric }); i >= 0 {
		m = p.names.Metrics[i]
	}
	var system Token // of Within
	switch t := p.Next(); t.Text {
	case "<", "<=", ">", ">=":
		r.Kind, r.Op, r.Value = Limit, t.Text, p.value(m, t.Text)
	case "=", "==", "!=":
		p.Fail(t, "use <, <=, > or >=", "%s: measured numbers cannot be tested for equality", quoted(t.Text))
	case "within":
		r.Kind, r.Share = Within, p.share(m)
		p.expect("of", "within "+percent(r.Share))
		system = p.Next()
		r.System = p.system(system, r.Share)
	case "no":
		r.Kind, r.Share = NoWorse, p.noWorse(t, m, least)
	default:
		p.Fail(t, forms, "a comparison expected after %s: <, <=, >, >=, within or no worse than", quoted(r.Metric))
	}
	where := p.Peek()
	if p.Take("where") {
		r.Where = p.conditions()
	}
	if t := p.Peek(); t.Text != "" {
		p.Fail(t, forms, "%s is not understood here", quoted(t.Text))
	}
	p.meansSome(r, system, where)
	return r
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', -1, 64) + "%" }

// system is the name that t is, of a system to compare with.
func (p *parser) system(t Token, share float64) string {
	systems := p.names.Levels["system"]
	switch {
	case slices.Contains(p.names.Gone, t.Text):
		p.Fail(t, withoutGates, "there is nothing to compare with: `--set` took %s out", quoted(t.Text))
	case t.Is("BASE") && !slices.Contains(systems, t.Text):
		p.Fail(t, "for another run: METRIC no worse than BASE by "+percent(share), "the run has no system %s", quoted(t.Text))
	case !slices.Contains(systems, t.Text):
		p.Fail(t, suggest.DidYouMean(t.Text, systems), "the run has no system %s", quoted(t.Text))
	}
	return t.Text
}

// noWorse reads `worse than BASE by SHARE`, behind the word no.
func (p *parser) noWorse(no Token, m Metric, least float64) float64 {
	if m.Neither {
		p.Fail(no, "name a metric of which it is known which way is better", "%s is for information: neither way is better", quoted(m.Key))
	}
	p.expect("worse", "no")
	p.expect("than", "worse")
	base := p.Peek()
	p.expect("BASE", "than")
	if !p.names.Base {
		p.Fail(base, "use plimsoll compare BASE NEW --gate", "there is no base run to be worse than")
	}
	if p.Take("by") {
		return p.share(m)
	}
	return least
}

// meansSome refuses a rule that no cell is meant by, where the cells are known.
func (p *parser) meansSome(r Rule, system, where Token) {
	if p.names.Cells == nil || slices.ContainsFunc(p.names.Cells, func(c map[string]string) bool {
		return r.Means(func(path string) string { return c[path] })
	}) {
		return
	}
	if len(r.Where) == 0 { // only a system is left that is compared with itself
		p.Fail(system, "name another system of the run, or add one",
			"the run has no system but %s, which is not compared with itself", quoted(r.System))
	}
	for _, c := range r.Where {
		if c.Path == "system" && !c.Not && slices.Contains(p.names.Gone, c.Value) {
			p.Fail(where, withoutGates, "no cell of the run is meant: `--set` took %s out", quoted(c.Value))
		}
	}
	fix := "`and` joins conditions that one cell must meet; for several levels write a rule of each"
	if r.Kind == Within {
		fix = "a system is not compared with itself; " + fix
	}
	p.Fail(where, fix, "no cell of the run is meant: such a rule is never decided")
}

// metric reads a key, p95(key), or a part of a key.
func (p *parser) metric() string {
	t := p.Next()
	word := t.Text
	if p.Take("(") {
		inner := p.Next()
		if close := p.Peek(); !p.Take(")") {
			p.Fail(close, "p90(ttfb)", "%s expected", quoted(")"))
		}
		switch q, isQuantile := strings.CutPrefix(word, "p"); {
		case word == "median":
			word = inner.Text + "_p50"
		case isQuantile && q != "" && strings.Trim(q, "0123456789.") == "":
			word = inner.Text + "_p" + strings.ReplaceAll(q, ".", "")
		default:
			fix := "p50, p90, p95, p99 or median of a time"
			if small := strings.ToLower(word); small != word {
				fix = "did you mean " + quoted(small+"("+strings.ToLower(inner.Text)+")") + "?"
			}
			p.Fail(t, fix, "%s is no percentile", quoted(word))
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
		p.Fail(t, "one of: "+strings.Join(near, ", "), "%s can be several metrics", quoted(word))
	}
	fix := suggest.DidYouMean(word, keys)
	if fix == "" {
		fix = "metrics: " + strings.Join(keys, ", ")
	}
	p.Fail(t, fix, "the run has no metric %s", quoted(word))
	return ""
}

// share reads 20% or 0.2. What is better when it is less can be worse by any share;
// what is better when it is more cannot lose all.
func (p *parser) share(m Metric) float64 {
	t := p.Next()
	v, unit, ok := number(t.Text)
	if ok && unit == "" && p.Take("%") {
		unit = "%"
	}
	if unit == "%" {
		v /= 100
	}
	switch valid := ok && (unit == "" || unit == "%") && v >= 0; {
	case valid && (v < 1 || m.Lower && unit == "%"):
	case valid && m.Lower:
		p.Fail(t, "did you mean "+quoted(t.Text+"%")+"?", "a share of 100%% and more is given in %%, not as %s", quoted(t.Text))
	default:
		p.Fail(t, "such as 5%", "a share from 0 to below 100%% expected, not %s", quoted(t.Text))
	}
	return v
}

// value reads a number with a unit of the metric's, after an operator. What no
// number of the metric ever is cannot be a limit: a rule of it holds always or never.
func (p *parser) value(m Metric, op string) float64 {
	t := p.Next()
	v, unit, ok := number(t.Text)
	switch {
	case t.Text == "":
		p.Fail(t, forms, "a number expected after %s", quoted(op))
	case !ok:
		p.Fail(t, "", "a number expected, not %s", quoted(t.Text))
	}
	if n := p.Peek(); unit == "" && n.Text != "" && !n.Is("where") {
		unit = p.Next().Text
	}
	scale, ok := unitsOf(m.Unit)[unit]
	if m.Unit == anyUnit {
		scale, ok = 1, true // what is read again once the metric is known
	}
	switch {
	case !ok && strings.Contains(t.Text+unit, ","):
		p.Fail(t, "several rules are a list: gates: [RULE, RULE]", "one rule ends before the comma")
	case !ok && unit == "":
		p.Fail(t, unitsHint(m.Unit), "%s is in %s, and %s has no unit", m.Key, unitWord(m.Unit), quoted(t.Text))
	case !ok:
		p.Fail(t, unitsHint(m.Unit), "%s is in %s, which cannot be given in %s", m.Key, unitWord(m.Unit), quoted(unit))
	}
	limit := v * scale
	if unit == "%" {
		limit, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'f', -1, 64)+"e-2", 64) // 99.9/100 is not 0.999
	}
	p.possible(t, m, op, limit, v, unit)
	return limit
}

// possible refuses a limit that lies where no number of the metric does.
func (p *parser) possible(t Token, m Metric, op string, limit, v float64, unit string) {
	most := mostOf(m)
	switch {
	case limit < 0 || limit == 0 && op == "<":
		p.Fail(t, "", "%s is never below 0", m.Key)
	case limit > most && unit == "" && v <= 100*most:
		p.Fail(t, "did you mean "+quoted(strconv.FormatFloat(v, 'g', -1, 64)+"%")+"?", "%s is a share: %s is %g %%", m.Key, quoted(t.Text), 100*v)
	case limit > most || limit == 1 && most == 1 && op == ">":
		p.Fail(t, "", "%s is never above %g %%", m.Key, 100*most)
	}
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

func (p *parser) conditions() []Condition {
	all := []Condition{p.condition("where")}
	for p.Take("and") {
		all = append(all, p.condition("and"))
	}
	return all
}

func (p *parser) condition(after string) (c Condition) {
	t := p.Next()
	var called []string // what factors can be called
	for path := range p.names.Levels {
		if isCalled(path, t.Text) {
			c.Path = path
		}
		called = append(called, path[strings.LastIndex(path, ".")+1:])
	}
	slices.Sort(called)
	switch {
	case t.Text == "":
		p.Fail(t, "factors: "+strings.Join(called, ", "), "a factor expected after %s", quoted(after))
	case c.Path == "" && p.names.Open:
		c.Path = t.Text
	case c.Path == "":
		for path, level := range p.names.Fixed {
			if isCalled(path, t.Text) {
				p.Fail(t, "take the condition away, or with --set gates= all rules", "%s does not vary: it is %s in every cell", path, level)
			}
		}
		p.Fail(t, suggest.DidYouMean(t.Text, called), "%s is no factor of the run", quoted(t.Text))
	}
	switch op := p.Next(); op.Text {
	case "=", "==":
	case "!=":
		c.Not = true
	default:
		fix := ""
		if slices.Contains([]string{"<", "<=", ">", ">="}, op.Text) {
			fix = "levels are not compared by size: name one with ==, or leave one out with !="
		}
		p.Fail(op, fix, "%s or %s expected after %s", quoted("=="), quoted("!="), quoted(t.Text))
	}
	level := p.Next()
	c.Value = level.Text
	levels, known := p.names.Levels[c.Path]
	switch {
	case level.Text == "" && !level.Quoted:
		p.Fail(level, levelsHint(levels), "a level of %s expected", c.Path)
	case known && !slices.Contains(levels, c.Value):
		p.Fail(level, levelsHint(levels), "%s has no level %s", c.Path, quoted(level.Text))
	}
	return c
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
		if all[i] = l; split.FindString(l) != l || strings.ContainsAny(l, `"'`) {
			all[i] = `"` + l + `"`
		}
	}
	return "levels: " + strings.Join(all, ", ")
}
