package report

import (
	"fmt"
	"strings"
)

// unpaired is a cell that has no ratio because not all of its trials, or of the
// baseline's, came to the moment that is compared.
type unpaired struct {
	swarm *Swarm
	base  bool // it is the baseline that did not
	why   string
}

// Marks of cells without a ratio: their leechers, or the baseline's, did not come
// to it.
const (
	slowerThanAny = "triangle-up"
	fasterThanAny = "triangle-down"
)

func (u unpaired) kind() string {
	if u.base {
		return fasterThanAny
	}
	return slowerThanAny
}

// unpaired are the cells of swarms that drop out of a comparison because leechers
// did not finish: those that were worse than any ratio says.
func (r *Report) unpaired(key string) []unpaired {
	var all []unpaired
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if _, has := s.cell.Ratios[key]; has || s.cell.Baseline || !ofSwarm(key) {
			continue
		}
		for j := range r.Swarms {
			b := &r.Swarms[j]
			if b.cell.Baseline && b.cell.Group == s.cell.Group && s.beyond(key)+b.beyond(key) > 0 {
				all = append(all, unpaired{s, s.beyond(key) == 0, r.whyNoRatio(s, b, key)})
			}
		}
	}
	return all
}

func (u unpaired) words() string {
	if u.swarm.Where == "" {
		return u.why
	}
	return u.swarm.Where + ": " + u.why
}

// leftOut says which cells of a system a pooled ratio leaves out because leechers
// did not finish; empty: none.
func (r *Report) leftOut(system, key string) string {
	var words []string
	for _, u := range r.unpaired(key) {
		if u.swarm.System == system {
			words = append(words, u.words())
		}
	}
	if words == nil {
		return ""
	}
	return fmt.Sprintf(", without %s (%s)", plural(int64(len(words)), "cell that has no ratio", "cells that have no ratio"), few(words, 3))
}

// few lists the first of some things.
func few(words []string, most int) string {
	if more := len(words) - most; more > 0 {
		return strings.Join(words[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(words, "; ")
}

// unpaired tells in a figure of ratios of the cells that have none.
func (f *Figure) unpaired(all []unpaired, baseline string) {
	if len(all) == 0 {
		return
	}
	var words []string
	for _, u := range all {
		words = append(words, u.swarm.System+", "+u.words())
	}
	f.Reads += fmt.Sprintf(" Triangles at the edge have no ratio, because not all trials came to it: of the system itself at the upper edge, worse than any ratio; of %s alone at the lower. Without a ratio %s: %s.", baseline,
		map[bool]string{true: "is", false: "are"}[len(all) == 1], few(words, 6))
	seen := map[string]bool{}
	for _, u := range all {
		if label := map[bool]string{true: baseline + " not done", false: "not done"}[u.base]; !seen[label] {
			seen[label] = true
			f.Legend = append(f.Legend, Legend{label, "var(--ink)", u.kind()})
		}
	}
}
