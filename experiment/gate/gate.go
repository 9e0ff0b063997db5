// Package gate reads the rules that runs are held to: "p95(ttfb) < 200ms". It
// knows the words of a rule and what they mean; what runs have been measured, and
// which interval decides, is the matter of the package report.
package gate

import "slices"

// Kind is what a rule compares a metric with.
type Kind int

const (
	Limit   Kind = iota // a value
	Within              // another system of the same run
	NoWorse             // the base run
)

// FewestTrials is how many valid trials of a cell decide a rule: the interval of a
// median whose ends each hold with 95 % needs as many (1/2⁵ < 5 %).
const FewestTrials = 5

// Rule is one condition that every cell it speaks of must meet.
type Rule struct {
	Text   string
	Metric string // its key
	Kind   Kind
	Op     string      // of a Limit: "<", "<=", ">" or ">="
	Value  float64     // of a Limit, in the metric's unit
	Share  float64     // of the others: how much worse it may be, 0.2 for 20 %
	System string      // of Within
	Where  []Condition // all must hold of a cell
}

// Condition picks cells by the level of a factor.
type Condition struct {
	Path  string // "system", or the factor's path
	Value string // its level
	Not   bool
}

// Means reports whether a rule speaks of a cell, given the level that it has of each
// factor. A system is not compared with itself.
func (r Rule) Means(level func(path string) string) bool {
	if r.Kind == Within && level("system") == r.System {
		return false
	}
	return !slices.ContainsFunc(r.Where, func(c Condition) bool { return (level(c.Path) == c.Value) == c.Not })
}

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

// AddLevel makes a level of a factor known.
func (n *Names) AddLevel(path, level string) {
	if !slices.Contains(n.Levels[path], level) {
		n.Levels[path] = append(n.Levels[path], level)
	}
}
