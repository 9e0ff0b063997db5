// Package gate parses rules for the results of runs, such as "p95(ttfb) < 200ms", and conditions
// between factors. It defines the words of a rule and their meaning; package analysis knows the
// results of runs and decides which interval is used.
package gate

import (
	"math"
	"slices"
	"strings"
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
