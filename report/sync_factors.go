package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// syncFactor is one factor of a run of the scenario sync with its levels, the
// default first.
type syncFactor struct {
	Path, Label string
	Levels      []Factor
}

// knob reports whether a factor is something that who runs a node can choose. The
// others are the conditions that it is to be chosen under: the link, the chain, the
// peers that there are, and what goes wrong.
func (f *syncFactor) knob() bool {
	return f.Path == storagePath || f.Path == peersPath || strings.HasPrefix(f.Path, varyPath)
}

const (
	storagePath = "sync.storage"
	peersPath   = "sync.peers"
	varyPath    = "sync.vary."
)

// level is the index of a cell's level; −1: the cell does not have the factor.
func (f *syncFactor) level(c *Cell) int {
	v, ok := c.Factor(f.Path)
	if !ok {
		return -1
	}
	return slices.IndexFunc(f.Levels, func(l Factor) bool { return l.Value == v.Value })
}

// words names a level: "storage ram".
func (f *syncFactor) words(level int) string { return f.Label + " " + f.Levels[level].Text() }

// number is a level as a number, for factors that are one or look like one.
func (f *syncFactor) number(level int) (v float64, unit string, ok bool) {
	l := f.Levels[level]
	if l.Unit != "" && l.Number > 0 {
		return l.Number, l.Unit, true
	}
	if d, err := time.ParseDuration(l.Value); err == nil && d > 0 {
		return d.Seconds(), "s", true
	}
	if v, err := strconv.ParseFloat(l.Value, 64); err == nil && v > 0 {
		return v, "1", true
	}
	return 0, "", false
}

// numeric reports whether all levels are numbers of one unit, and at least three.
func (f *syncFactor) numeric() (unit string, ok bool) {
	if len(f.Levels) < 3 {
		return "", false
	}
	for i := range f.Levels {
		_, u, is := f.number(i)
		if !is || i > 0 && u != unit {
			return "", false
		}
		unit = u
	}
	return unit, true
}

// syncFactors are the factors that vary, besides the system, with their levels in
// the order of the experiment file: the first is the default.
func (r *Report) syncFactors() []syncFactor {
	var all []syncFactor
	at := map[string]int{}
	for _, c := range r.cells() {
		for _, f := range c.Factors {
			if f.Path == "system" {
				continue
			}
			i, ok := at[f.Path]
			if !ok {
				i, at[f.Path] = len(all), len(all)
				all = append(all, syncFactor{Path: f.Path, Label: f.Label})
			}
			if !slices.ContainsFunc(all[i].Levels, func(l Factor) bool { return l.Value == f.Value }) {
				all[i].Levels = append(all[i].Levels, f)
			}
		}
	}
	var plan struct{ Experiment map[string]any }
	if json.Unmarshal(r.Plan, &plan) != nil {
		return all
	}
	for i := range all {
		order := valuesAt(plan.Experiment, all[i].Path)
		place := func(l Factor) int {
			if j := slices.Index(order, l.Value); j >= 0 {
				return j
			}
			return len(order)
		}
		slices.SortStableFunc(all[i].Levels, func(a, b Factor) int { return place(a) - place(b) })
	}
	return slices.DeleteFunc(all, func(f syncFactor) bool { return len(f.Levels) < 2 })
}

// valuesAt are the values of a key of the experiment, in the order of the file; a
// fraction of a design need not have the default among its first cells.
func valuesAt(at any, path string) []string {
	head, rest, more := strings.Cut(path, ".")
	if m, ok := at.(map[string]any); ok {
		if v, there := m[path]; there { // the name of an option may have dots
			at, more = v, false
		} else if v, there := m[head]; there && more {
			return valuesAt(v, rest)
		} else {
			return nil
		}
	}
	if m, ok := at.(map[string]any); ok {
		at = m["levels"] // of an option of the system
	}
	values, ok := at.([]any)
	if !ok || more {
		return nil
	}
	var words []string
	for _, v := range values {
		if m, ok := v.(map[string]any); ok {
			v = m["value"]
		}
		switch x := v.(type) {
		case float64:
			words = append(words, strconv.FormatFloat(x, 'f', -1, 64))
		default:
			words = append(words, fmt.Sprint(x))
		}
	}
	return words
}

// changed names what a cell changes of the default: "storage ram, subscribers
// none"; empty: nothing.
func (r *Report) changed(c *Cell) string { return strings.Join(r.changes(c), ", ") }

func (r *Report) changes(c *Cell) []string {
	var words []string
	for i := range r.factors {
		f := &r.factors[i]
		if l := f.level(c); f.knob() && l > 0 {
			words = append(words, f.words(l))
		}
	}
	return words
}

// configured names a cell by what it changes.
func (r *Report) configured(c *Cell) string {
	if s := r.changed(c); s != "" {
		return s
	}
	return "default"
}

// conditions names what a cell is measured under.
func (r *Report) conditions(c *Cell) string {
	var words []string
	for i := range r.factors {
		f := &r.factors[i]
		if l := f.level(c); !f.knob() && l >= 0 {
			words = append(words, f.words(l))
		}
	}
	return strings.Join(words, ", ")
}

// chance is a p-value for people.
func chance(p Num) Entry {
	if p.Known() && p < 0.001 {
		return Entry{Text: "< 0.001", Raw: Plain(float64(p))}
	}
	return number(p, "")
}
