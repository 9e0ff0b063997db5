package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Difference is a difference between runs other than their results. New has one entry for each
// new run.
type Difference struct {
	Kind string   `json:"kind"` // "settings", "plan", "plimsoll", "system", "machine", "links" or "trials"
	What string   `json:"what"`
	Base string   `json:"base"`
	New  []string `json:"new"`
}

// differences lists what differed, in the order of how much it may affect results.
func (c *Comparison) differences() {
	type change struct{ path, base, other, in string }
	count := map[change]int64{}
	var order []change
	for _, u := range c.Unlike {
		for _, s := range u.Settings {
			k := change{s.Path, s.Base, s.New, u.New}
			if count[k] == 0 {
				order = append(order, k)
			}
			count[k]++
		}
	}
	for _, k := range order {
		d := Difference{Kind: "settings", What: fmt.Sprintf("%s (%s)", k.path, words.Plural(count[k], "cell", "cells")),
			Base: k.base}
		for _, n := range c.New {
			v := k.base
			if n.Dir == k.in {
				v = k.other
			}
			d.New = append(d.New, v)
		}
		c.Differs = append(c.Differs, d)
	}
	c.differ("plan", "seed", func(r *Result) string { return strconv.FormatUint(r.Run.Seed, 10) })
	c.differ("plan", "repetitions", func(r *Result) string { return strconv.Itoa(r.Frame.Plan.Blocks) })
	c.differ("plan", "gates", func(r *Result) string { return strings.Join(r.Frame.Plan.Experiment.Gates, "; ") })
	c.differ("plan", "state", func(r *Result) string { return r.Run.State })
	c.differ("plimsoll", "version", func(r *Result) string { return r.Environ("plimsoll") })
	c.environments("system", "systems.")
	c.environments("machine", "cpu.", "kernel", "os", "clocksource", "memory.MemTotal", "memory.SwapTotal", "testbed.",
		"limit.", "link.", "machine.", "host.")
	c.differ("links", "checks outside the tolerance", func(r *Result) string {
		off, all := 0, 0
		for _, l := range r.Links {
			off, all = off+l.Off, all+l.Checks
		}
		return fmt.Sprintf("%d of %d", off, all)
	})
	c.differ("trials", "valid", func(r *Result) string { return fmt.Sprintf("%d of %d", r.Run.Valid, r.Run.Done) })
}

func (c *Comparison) differ(kind, what string, value func(*Result) string) {
	d := Difference{Kind: kind, What: what, Base: value(c.base)}
	differs := false
	for _, r := range c.news {
		v := value(r)
		d.New = append(d.New, v)
		differs = differs || v != d.Base
	}
	if differs {
		c.Differs = append(c.Differs, d)
	}
}

// environments compares the parts of the environment with these prefixes.
func (c *Comparison) environments(kind string, prefixes ...string) {
	keys := map[string]bool{}
	for _, r := range append([]*Result{c.base}, c.news...) {
		for _, p := range r.Environment {
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(p.Key, prefix) }) &&
				!strings.HasSuffix(p.Key, ".directory") { // which says where, not what
				keys[p.Key] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		known := c.base.Environ(key)
		for _, r := range c.news { // if one run did not record it, it is unknown whether it differs
			known = cmp.Or(known, r.Environ(key))
		}
		c.differ(kind, key, func(r *Result) string { return cmp.Or(r.Environ(key), known) })
	}
}
