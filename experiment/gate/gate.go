// Package gate reads the rules that runs are held to, "p95(ttfb) < 200ms", and conditions
// between factors. It knows the words of a rule and what they mean; what runs have been
// measured, and which interval decides, is the matter of the package analysis.
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

// FewestTrials is how many valid trials of a cell decide a rule: the interval of a
// median whose ends each hold with 95 % needs as many (1/2⁵ < 5 %).
const FewestTrials = 5

// Rule is one condition that every cell it speaks of must meet.
type Rule struct {
	Text   string
	Metric string // its key
	Kind   Kind
	Op     string    // of a Limit: "<", "<=", ">" or ">="
	Value  float64   // of a Limit, in the metric's unit
	Share  float64   // of the others: how much worse it may be, 0.2 for 20 %
	System string    // of Within
	Where  Condition // nil: of all cells
}

// Means reports whether a rule speaks of a cell, given the level that it has of each
// factor. A system is not compared with itself.
func (r Rule) Means(level func(path string) string) bool {
	if r.Kind == Within && level("system") == r.System {
		return false
	}
	return r.Where == nil || r.Where(func(path string) Level { return Level{level(path), math.NaN()} })
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
	Cells    []map[string]string // the level of each factor, cell by cell; nil: not known, and a rule may mean none
	Gone     []string            // systems that were left out of the run: conditions may still name them
	Base     bool                // there is a base run
}

// AddCell makes a cell known, by its level of each factor.
func (n *Names) AddCell(levels map[string]string) {
	if n.Levels == nil {
		n.Levels = map[string][]string{}
	}
	for path, level := range levels {
		if !slices.Contains(n.Levels[path], level) {
			n.Levels[path] = append(n.Levels[path], level)
		}
	}
	n.Cells = append(n.Cells, levels)
}

// factors are the factors as conditions know them.
func (n Names) factors() []Factor {
	var all []Factor
	for path, levels := range n.Levels {
		all = append(all, Factor{Path: path, Noun: "a word", Read: func(text string) (Level, error) {
			if !slices.Contains(levels, text) && !(path == "system" && slices.Contains(n.Gone, text)) {
				return Level{}, &Error{Msg: "it has no level " + quoted(text), Fix: levelsHint(levels)}
			}
			return Level{text, math.NaN()}, nil
		}})
	}
	slices.SortFunc(all, func(a, b Factor) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// levelsHint lists levels as a rule has to write them.
func levelsHint(levels []string) string {
	all := make([]string, len(levels))
	for i, l := range levels {
		if all[i] = l; split.FindString(l) != l {
			all[i] = `"` + l + `"`
		}
	}
	return "levels: " + strings.Join(all, ", ")
}
