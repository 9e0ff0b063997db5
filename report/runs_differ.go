package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Difference is something in which the runs differ beside what they measured. New
// has one entry for each new run.
type Difference struct {
	Kind string   `json:"kind"` // "settings", "plan", "plimsoll", "system", "machine", "links", "busyness" or "trials"
	What string   `json:"what"`
	Base string   `json:"base"`
	New  []string `json:"new"`
}

// differences says what differed, in the order of how much it may change a
// result.
func (c *RunComparison) differences() {
	c.settingsDiffer()
	c.add("plan", "seed", func(r *Report) string { return strconv.FormatUint(r.Run.Seed, 10) })
	c.add("plan", "repetitions", func(r *Report) string { return strconv.Itoa(r.Run.Planned / max(1, len(r.Cells))) })
	c.add("plan", "gates", func(r *Report) string { return strings.Join(r.held, "; ") })
	c.add("plan", "state", func(r *Report) string { return r.Run.State })
	c.add("plan", "interrupted and resumed", func(r *Report) string {
		if n := len(r.resumed); n > 0 {
			return plural(int64(n), "time", "times")
		}
		return "never"
	})
	c.add("plimsoll", "version", func(r *Report) string { return r.EnvironmentOf("plimsoll") })
	c.environments("system", "systems.")
	c.environments("machine", "cpu.", "kernel", "os", "clocksource", "memory.MemTotal", "memory.SwapTotal", "testbed.", "limit.", "link.", "machine.", "host.")
	c.add("links", "checks that were off", (*Report).linksOff)
	c.add("links", "worst round trip", (*Report).linksWorst)
	c.add("busyness", "CPU of others, median", (*Report).othersBusy)
	c.add("trials", "valid", (*Report).validTrials)
}

// add notes a difference, if it is one.
func (c *RunComparison) add(kind, what string, value func(*Report) string) {
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

// settingUnits are how settings that are plain numbers in a plan are said, by the
// last name of their path.
var settingUnits = map[string]func(float64) string{
	"size": bytesWords, "queue": bytesWords, "bytes": bytesWords, "range_of": bytesWords, "range": wholeOrSize,
	"delay": secondsWords, "jitter": secondsWords, "duration": secondsWords, "time": secondsWords, "longest": secondsWords, "deadline": secondsWords, "stall": secondsWords, "settle": secondsWords,
}

func bytesWords(v float64) string { return experiment.Bytes(v).String() }
func secondsWords(v float64) string {
	return experiment.Duration(math.Round(v * float64(time.Second))).String()
}

// wholeOrSize is a range: none is the whole object.
func wholeOrSize(v float64) string {
	if v == 0 {
		return "whole"
	}
	return bytesWords(v)
}

// settingWords is a setting as an experiment file says it.
func settingWords(path, value string) string {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return value
	}
	if path == "link.rate" {
		return experiment.BitRate(v).String()
	}
	if say := settingUnits[path[strings.LastIndexByte(path, '.')+1:]]; say != nil {
		return say(v)
	}
	return value
}

// said is the difference with its settings in words.
func (d Difference) said() Difference {
	if d.Kind != "settings" {
		return d
	}
	path, _, _ := strings.Cut(d.What, " ")
	news := slices.Clone(d.New)
	for i, v := range news {
		news[i] = settingWords(path, v)
	}
	d.Base, d.New = settingWords(path, d.Base), news
	return d
}

// settingsDiffer says once what differs between cells that are called alike.
func (c *RunComparison) settingsDiffer() {
	type change struct{ path, base, other, in string }
	count := map[change]int{}
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
		d := Difference{Kind: "settings", What: fmt.Sprintf("%s (%s)", k.path, plural(int64(count[k]), "cell", "cells")), Base: k.base}
		for _, n := range c.New {
			v := k.base
			if n.Dir == k.in {
				v = k.other
			}
			d.New = append(d.New, v)
		}
		c.Differs = append(c.Differs, d)
	}
}

// environments compares what the runs know of themselves under these names.
func (c *RunComparison) environments(kind string, prefixes ...string) {
	keys := map[string]bool{}
	for _, r := range append([]*Report{c.base}, c.news...) {
		for _, p := range r.Environment {
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(p.Key, prefix) }) && !passing(p.Key) {
				keys[p.Key] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		known := c.base.EnvironmentOf(key)
		for _, r := range c.news {
			if known == "" { // nothing is known to differ where one run does not tell it
				known = r.EnvironmentOf(key)
			}
		}
		c.add(kind, key, func(r *Report) string { return cmp.Or(r.EnvironmentOf(key), known) })
	}
}

// passing reports whether a value is of the moment, and never the same twice.
func passing(key string) bool {
	words := strings.FieldsFunc(strings.ToLower(key), func(r rune) bool { return r == '.' || r == ' ' || r == '_' })
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"mhz", "pid", "started", "uptime", "port", "address", "dir", "directory"}, w)
	})
}

func (r *Report) linksOff() string {
	off, all := 0, 0
	for _, l := range r.Links {
		off, all = off+l.Off, all+l.Checks
	}
	if all == 0 {
		return "none made"
	}
	return fmt.Sprintf("%d of %d", off, all)
}

// linksWorst is how far the round trip of the worst check was from what was
// wanted; of links that held, which a short round trip does with more than the
// tolerance, it is not told apart.
func (r *Report) linksWorst() string {
	worst := 0.0
	for _, l := range r.Links {
		if l.Off > 0 && l.WantRTT > 0 && l.RTTWorst.Known() {
			off := float64(l.RTTWorst/l.WantRTT) - 1
			if max(off, -off) > float64(l.Tolerance) && max(off, -off) > max(worst, -worst) {
				worst = off
			}
		}
	}
	if worst == 0 {
		return "within the tolerance"
	}
	return fmt.Sprintf("%+.0f %%", 100*worst)
}

// othersBusy is the CPU that others used, in steps of five percent of the machine
// (from 1 %): finer ones differ between any two runs.
func (r *Report) othersBusy() string {
	var all []float64
	for _, t := range r.Trials {
		if v, ok := t.Metrics["others_busy"]; ok && !t.Warmup {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return "not told"
	}
	m := stats.Median(all)
	if m < 0.05 {
		return "under 5 %"
	}
	low := min(int(m*20)*5, 95)
	return fmt.Sprintf("%d to %d %%", low, low+5)
}

func (r *Report) validTrials() string {
	s := fmt.Sprintf("%d of %d", r.Run.Valid, r.Run.Done)
	if why := r.reasonWords(); why != "" {
		s += " (" + why + ")"
	}
	return s
}
