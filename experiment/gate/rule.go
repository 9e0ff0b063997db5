// Package gate parses rules for the results of runs, such as "p95(ttfb) < 200ms", and conditions
// between factors. It defines the words of a rule and their meaning; package analysis knows the
// results of runs and decides which interval is used.
package gate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// Kind is what a rule compares a metric with.
type Kind int

const (
	Limit   Kind = iota // a value
	Within              // another system of the same run
	NoWorse             // the base run
)

// FewestTrials is the number of valid trials of a cell that a rule needs: the interval of a median
// whose ends each hold with 95 % needs as many (1/2⁵ < 5 %).
const FewestTrials = 5

// Rule is one condition that every cell it applies to must meet.
type Rule struct {
	Text   string
	Metric string // its key
	Kind   Kind
	Op     string    // of a Limit: "<", "<=", ">" or ">="
	Value  float64   // of a Limit, in the metric's unit
	Share  float64   // of the other kinds: how much worse it may be, 0.2 for 20 %
	System string    // of Within
	Where  Condition // nil: all cells
}

// AppliesTo reports whether a rule applies to a cell with these levels of its factors. A system is not
// compared with itself.
func (r Rule) AppliesTo(level func(path string) string) bool {
	if r.Kind == Within && level("system") == r.System {
		return false
	}
	return r.Where == nil || r.Where(func(path string) Level { return Level{level(path), math.NaN()} })
}

// Metric is a number that rules may use.
type Metric struct {
	Key     string
	Unit    string // of its values: "s", "B/s", "ratio"
	Neither bool   // neither direction is better
	Lower   bool   // less is better
}

// Names are the names that a rule may use.
type Names struct {
	Metrics  []Metric            // nil: unknown, and any name is accepted
	Headline string              // the metric of a rule that names none; empty: unknown
	Cells    []map[string]string // the level of each factor by its path, for each cell; "system" is one
	Dropped  []string            // systems that were left out of the run; conditions may still name them
	Base     bool                // there is a base run
}

// levels returns the levels of each factor, by its path.
func (n Names) levels() map[string][]string {
	all := map[string][]string{}
	for _, cell := range n.Cells {
		for path, level := range cell {
			if !slices.Contains(all[path], level) {
				all[path] = append(all[path], level)
			}
		}
	}
	return all
}

// forms describes the forms of a rule.
const forms = "forms: METRIC < VALUE; METRIC within 20% of SYSTEM; METRIC no worse than BASE by 5%; each with: where " +
	"FACTOR == LEVEL; several rules are a list: [RULE, RULE]"

// form matches all forms.
var form = regexp.MustCompile(`^\s*(?:(?P<metric>[^\s<>=!]+)\s*)??(?:` +
	`(?P<op>[<>]=?)\s*(?P<number>[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(?P<unit>[^\s,<>=]*)` +
	`|\s(?P<within>within)\s+(?P<apart>[^\s,]+)\s+of\s+(?P<system>[^\s,]+)` +
	`|(?P<no>no)\s+worse\s+than\s+(?P<base>BASE)(?:\s+by\s+(?P<by>[^\s,]+))?` +
	`)(?P<where>\s+where\b.*)?\s*$`)

// quantile is a metric such as p95(ttfb).
var quantile = regexp.MustCompile(`^(?:p([0-9.]+)|median)\((\w+)\)$`)

// rule is a rule during parsing.
type rule struct {
	text   string
	parts  []int // the indices of form's groups
	names  Names
	metric Metric
}

// Parse parses a rule:
//
//	METRIC < | <= | > | >= VALUE
//	METRIC within SHARE of SYSTEM
//	[METRIC] no worse than BASE [by SHARE]
//
// each optionally with `where` and a condition, such as `where concurrency == 8`. A metric is its
// key, p95(ttfb) for ttfb_p95, or a part of a single key: success for success_rate. least is the
// SHARE of a rule without one.
func Parse(text string, names Names, least float64) (r Rule, err error) {
	defer caught(&err)
	p := rule{text: text, parts: form.FindStringSubmatchIndex(text), names: names}
	if p.parts == nil {
		fail("gate", text, 1, forms, "the rule is not understood")
	}
	r = Rule{Text: strings.TrimSpace(text), Metric: p.key(), Op: p.part("op"), Share: least}
	p.metric = Metric{Key: r.Metric, Unit: p.part("unit")} // any, if the metric is unknown
	if i := slices.IndexFunc(names.Metrics, func(m Metric) bool { return m.Key == r.Metric }); i >= 0 {
		p.metric = names.Metrics[i]
	}
	switch {
	case r.Op != "":
		r.Value, r.Share = p.limit(), 0
	case p.part("within") != "":
		r.Kind, r.Share, r.System = Within, p.share("apart"), p.part("system")
		if systems := names.levels()["system"]; !slices.Contains(systems, r.System) {
			fix := suggest.DidYouMean(r.System, systems)
			switch {
			case r.System == "BASE":
				fix = "for another run: METRIC no worse than BASE by " + p.part("apart")
			case slices.Contains(names.Dropped, r.System):
				fix = "--set gates= leaves out the rules of the file, --set gates=RULE replaces them"
			}
			p.fail("system", fix, "the run has no system %s", quoted(r.System))
		}
	default:
		r.Kind = NoWorse
		if p.metric.Neither {
			p.fail("no", "name a metric of which it is known which way is better",
				"%s is for information: neither way is better", quoted(r.Metric))
		}
		if !names.Base {
			p.fail("base", "use plimsoll compare BASE NEW --gate", "there is no base run to be worse than")
		}
		if p.part("by") != "" {
			r.Share = p.share("by")
		}
	}
	if where := p.part("where"); where != "" {
		from := p.parts[2*form.SubexpIndex("where")] + strings.Index(where, "where") + len("where")
		if r.Where, err = parseCondition("gate", text, from, names.factors()); err != nil {
			return r, err
		}
	}
	if !slices.ContainsFunc(names.Cells, func(c map[string]string) bool {
		return r.AppliesTo(func(path string) string { return c[path] })
	}) {
		p.fail("where", "a system is not compared with itself; for several levels write a rule of each, or `in [a, b]`",
			"no cell of the run is meant: such a rule is never decided")
	}
	return r, nil
}

func quoted(s string) string { return "`" + s + "`" }

// part returns the text of a part of the rule; empty if it is missing.
func (p *rule) part(name string) string {
	i := 2 * form.SubexpIndex(name)
	return p.text[max(0, p.parts[i]):max(0, p.parts[i+1])]
}

// fail ends parsing with a mistake in a part of the rule, or at its end.
func (p *rule) fail(part, fix, format string, args ...any) {
	at := p.parts[2*form.SubexpIndex(part)]
	if at < 0 {
		at = len(p.text)
	}
	for at < len(p.text) && p.text[at] == ' ' {
		at++
	}
	fail("gate", p.text, utf8.RuneCountInString(p.text[:at])+1, fix, format, args...)
}

// key returns the key of the metric, which may be written as the key, as p95(key), or as a part of
// a key.
func (p *rule) key() string {
	word := p.part("metric")
	if word == "" {
		return p.names.Headline
	}
	if m := quantile.FindStringSubmatch(word); m != nil {
		word = m[2] + "_p" + cmp.Or(strings.ReplaceAll(m[1], ".", ""), "50")
	}
	if p.names.Metrics == nil {
		return word
	}
	var keys, near []string
	for _, m := range p.names.Metrics {
		keys = append(keys, m.Key)
		if slices.Contains(strings.Split(m.Key, "_"), word) {
			near = append(near, m.Key)
		}
	}
	switch {
	case word == "success" && slices.Contains(keys, "ok_rate"):
		return "ok_rate" // if nodes succeed, not operations
	case slices.Contains(keys, word):
		return word
	case len(near) == 1:
		return near[0]
	case len(near) > 1:
		p.fail("metric", "one of: "+strings.Join(near, ", "), "%s can be several metrics", quoted(word))
	}
	p.fail("metric", suggest.DidYouMean(word, keys), "the run has no metric %s", quoted(word))
	return ""
}

// share parses 20% or 0.2. A metric that is better when lower can get worse by any share; one that
// is better when higher cannot lose everything.
func (p *rule) share(part string) float64 {
	text := p.part(part)
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	most := 1.0
	if percent {
		v /= 100
		if p.metric.Lower {
			most = 1000
		}
	}
	if err != nil || !(v >= 0) || v >= most {
		p.fail(part, "such as 5%", "a share from 0 to below 100%% expected, not %s", quoted(text))
	}
	return v
}

// limit parses the number after an operator, with a unit of the metric.
func (p *rule) limit() float64 {
	m, number, unit := p.metric, p.part("number"), p.part("unit")
	units := unitsOf(m.Unit)
	v, err := strconv.ParseFloat(number, 64)
	scale, is := units[unit]
	if err != nil || !is {
		known := strings.Join(slices.Sorted(maps.Keys(units)), ", ")
		p.fail("number", "units: "+strings.TrimPrefix(known, ", "), "%s is in %s, and %s is not", m.Key,
			cmp.Or(unitWords[m.Unit], m.Unit), quoted(number+unit))
	}
	if m.Unit == "ratio" && unit == "" && v > 10 { // an estimated share of a line can be above 1
		p.fail("number", "did you mean "+quoted(number+"%")+"?", "%s is a share: %s is %g %%", m.Key, quoted(number), 100*v)
	}
	if unit == "%" { // 99.9/100 is not 0.999
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'f', -1, 64)+"e-2", 64)
		return v
	}
	return v * scale
}

var unitWords = map[string]string{"ratio": "a share", "1": "a count"}

// scales holds the units in which a value of a metric may be given, with their factors to the
// metric's own unit. "" is a bare number, in the metric's own unit.
var scales = map[string]map[string]float64{
	"s":     {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600},
	"ratio": {"": 1, "%": 0.01}, "×": {"": 1, "x": 1, "×": 1}, "1": {"": 1},
}

func unitsOf(unit string) map[string]float64 {
	switch unit {
	case "B", "B/s", "bit/s", "1/s":
		suffix := strings.TrimPrefix(unit, "1")
		all := map[string]float64{suffix: 1}
		for i, prefix := range []string{"k", "M", "G", "T"} {
			all[prefix+suffix] = math.Pow(1000, float64(i+1))
			if unit != "1/s" {
				all[strings.ToUpper(prefix)+"i"+suffix] = math.Pow(1024, float64(i+1))
			}
		}
		return all
	}
	if all := scales[unit]; all != nil {
		return all
	}
	return map[string]float64{"": 1, unit: 1}
}

// Error is an expression that cannot be parsed, with the position.
type Error struct {
	What string // "gate" (also if empty) or "where"
	Rule string
	At   int // column, from 1
	Msg  string
	Fix  string // how to fix it; may be empty
}

// Error returns the expression with a mark under the position.
func (e *Error) Error() string {
	return fmt.Sprintf("%s, column %d: %s\n  %s\n  %s^", cmp.Or(e.What, "gate"), e.At, e.Msg, e.Rule,
		strings.Repeat(" ", max(0, e.At-1)))
}

// Hint returns Fix.
func (e *Error) Hint() string { return e.Fix }

// fail ends the parsing of an expression.
func fail(what, text string, at int, fix, format string, args ...any) {
	panic(&Error{What: what, Rule: text, At: at, Msg: fmt.Sprintf(format, args...), Fix: fix})
}

// caught recovers from fail and returns its error; it must be deferred.
func caught(err *error) {
	if r := recover(); r != nil {
		e, is := r.(*Error)
		if !is {
			panic(r)
		}
		*err = e
	}
}

// factors returns the factors for conditions.
func (n Names) factors() []Factor {
	var all []Factor
	for path, levels := range n.levels() {
		all = append(all, Factor{Path: path, Noun: "a word", Read: func(text string) (Level, error) {
			if !slices.Contains(levels, text) && !(path == "system" && slices.Contains(n.Dropped, text)) {
				return Level{}, &Error{Msg: "it has no level " + quoted(text), Fix: levelsHint(levels)}
			}
			return Level{text, math.NaN()}, nil
		}})
	}
	slices.SortFunc(all, func(a, b Factor) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// levelsHint lists levels as they must be written in a rule.
func levelsHint(levels []string) string {
	all := make([]string, len(levels))
	for i, l := range levels {
		if all[i] = l; split.FindString(l) != l {
			all[i] = `"` + l + `"`
		}
	}
	return "levels: " + strings.Join(all, ", ")
}
