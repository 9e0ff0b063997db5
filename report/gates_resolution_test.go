package report

import (
	"math"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// A limit that lies within what polls tell late decides nothing, however little the
// trials differ; the interval says what polls let know, and more trials are not asked for.
func TestALimitWithinTheResolution(t *testing.T) {
	t.Parallel()
	const told, base = 0.56, 0.469 // a ratio of 1.194
	of := func(resolution float64) *Report {
		return swarmTruth{metrics: func(c *experiment.Cell, _ int, m map[string]float64) {
			m["time_median"], m["time_last"], m["resolution"] = told, told, resolution
			if c.System == "deluge" {
				m["time_median"], m["time_last"] = base, base
			}
			m["speed_median"] = 1e6 / m["time_median"]
		}}.build(t)
	}
	fine, coarse := of(0), of(0.02)
	for _, c := range []struct {
		rule         string
		fine, coarse string
		lo, hi       float64 // of the coarse
	}{
		{"time_last within 20% of deluge", RulePass, RuleOpen, 0.54 / base, told / (base - 0.02)},
		{"time_last within 19% of deluge", RuleFail, RuleOpen, 0.54 / base, told / (base - 0.02)},
		{"time_last within 30% of deluge", RulePass, RulePass, 0.54 / base, told / (base - 0.02)},
		{"time_last within 10% of deluge", RuleFail, RuleFail, 0.54 / base, told / (base - 0.02)},
		{"speed_median within 17% of deluge", RulePass, RuleOpen, (base - 0.02) / told, base / 0.54},
		{"time_last < 565ms where system == boxo", RulePass, RulePass, 0.54, told}, // the truth is below what is told
		{"time_last < 550ms where system == boxo", RuleFail, RuleOpen, 0.54, told},
		{"time_last < 530ms where system == boxo", RuleFail, RuleFail, 0.54, told},
		{"speed_median < 1.8MB/s where system == boxo", RulePass, RuleOpen, 1e6 / told, 1e6 / 0.54},
	} {
		for r, want := range map[*Report]string{fine: c.fine, coarse: c.coarse} {
			all, err := r.Hold([]string{c.rule})
			must(t, err)
			d := all[0].Cells[0]
			if d.State != want {
				t.Errorf("%s: %s, want %s: %+v", c.rule, d.State, want, d)
			}
			if r == fine {
				continue
			}
			if !within(d.Lo, c.lo, 1e-6) || !within(d.Hi, c.hi, 1e-6) {
				t.Errorf("%s: from %v to %v, want %v to %v", c.rule, d.Lo, d.Hi, c.lo, c.hi)
			}
			if !strings.Contains(d.Why, "polls tell moments up to 20.0 ms late") || d.helps || (want == RuleOpen) != strings.Contains(d.Why, "within the resolution of the times") {
				t.Errorf("%s: more repetitions help %v: %s", c.rule, d.helps, d.Why)
			}
		}
	}
	if all, _ := MoreHelps(coarse.Gates); all {
		t.Error("more repetitions are said to decide the goal")
	}
}

// What lies between two polls may be shorter and longer than told; what no poll tells
// is as it is.
func TestWhatPollsLetKnow(t *testing.T) {
	c := &Cell{Metrics: map[string]Summary{}}
	for key, v := range map[string]float64{"resolution": 0.5, "sync_time": 10, "chain_time": 9, "first_block": 1, "index_lag": 1, "block_rate": 100, "overhead": 1.1} {
		c.Metrics[key] = Summary{N: 5, Median: Num(v)}
	}
	for key, want := range map[string][2]float64{
		"sync_time": {9.5, 10}, "index_lag": {0.5, 1.5}, "block_rate": {800 / 8.5, 800 / 7.5}, "overhead": {1.1, 1.1}, "resolution": {0.5, 0.5},
	} {
		p, v := c.pollBounds(record.Metric{Key: key}), float64(c.Metrics[key].Median)
		if got := [2]float64{p.lower(v), p.upper(v)}; math.Abs(got[0]-want[0]) > 1e-9 || math.Abs(got[1]-want[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}
