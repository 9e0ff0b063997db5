package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// unfinishedFound looks at who never got everything, and why.
func unfinishedFound(r *Report) []Finding {
	var all []findings.Leechers
	for i := range r.Swarms {
		s := &r.Swarms[i]
		l := findings.Leechers{Where: s.name(), Left: s.unfinished(), Of: s.ok().Of, Trials: s.Trials, Faulted: !s.quiet(), Ends: s.endWords(), Why: s.classes()}
		for _, t := range s.trials {
			if slices.ContainsFunc(t.leechers, func(f fetched) bool { return f.wanted() && math.IsNaN(f.done) }) {
				l.In++
			}
		}
		l.Least, l.Most = s.unfinishedHad()
		all = append(all, l)
	}
	return findings.LeechersUnfinished(all)
}

// classes are the reasons of those that did not get everything, most frequent first.
func (s *Swarm) classes() string {
	counts := map[string]int64{}
	for _, t := range s.trials {
		for i := range t.leechers {
			if f := &t.leechers[i]; f.wanted() && math.IsNaN(f.done) && f.class != "" {
				counts[f.class]++
			}
		}
	}
	names := sortedByCount(counts)
	more := len(names) > 3
	if more {
		names = names[:3]
	}
	for i, n := range names {
		names[i] = n + " ×" + count(counts[n])
	}
	if more {
		names = append(names, "others")
	}
	return list(names)
}

// unfinishedHad is how much of the content those got that stopped, least and most;
// NaN: there is none of which it is known.
func (s *Swarm) unfinishedHad() (least, most float64) {
	least, most = math.NaN(), math.NaN()
	for _, t := range s.trials {
		for i := range t.leechers {
			f := &t.leechers[i]
			if !f.wanted() || !math.IsNaN(f.done) || f.outcome == record.WrongBytes || s.Size == 0 {
				continue
			}
			if at := f.got / t.size; math.IsNaN(least) {
				least, most = at, at
			} else {
				least, most = min(least, at), max(most, at)
			}
		}
	}
	return least, most
}

// goalMissed says where the goal is not met, and where it cannot be told.
func goalMissed(r *Report) []Finding {
	if _, set := r.gateShare(); !set {
		return nil
	}
	var all []findings.Goal
	for i := range r.Swarms {
		s := &r.Swarms[i]
		goal := findings.Goal{Where: s.name(), Trials: s.Trials, Unfinished: s.unfinished(), Wanted: s.ok().Of}
		for _, key := range gateMetrics {
			g := r.gateOf(s, key)
			if g == nil {
				continue
			}
			what := map[string]string{"time_median": "half of the leechers", "time_last": "the last one"}[key]
			say := fmt.Sprintf("%s %s (%s)", what, g.shown(), g.Why)
			switch g.State {
			case RulePass:
				goal.Met = append(goal.Met, say)
			case RuleFail:
				goal.Missed = append(goal.Missed, say)
			case RuleOpen:
				goal.Open = append(goal.Open, say)
			}
		}
		all = append(all, goal)
	}
	return findings.Goals(all, r.gateWords())
}

// busyHarness: what measures must not be what limits.
func busyHarness(r *Report) []Finding {
	var all []findings.CPUs
	for i := range r.Swarms {
		all = append(all, r.Swarms[i].cell.cpus(r.Swarms[i].name()))
	}
	return findings.Harness(all)
}

// cpus are what measures used of the machine's CPUs in a cell.
func (c *Cell) cpus(where string) findings.CPUs {
	all := findings.CPUs{Where: where}
	if m, ok := c.Metrics["harness_cpu"]; ok {
		all.Harness = m.values
	}
	if m, ok := c.Metrics["emulator_cpu"]; ok {
		all.Emulator = m.values
	}
	return all
}

// passesNothingOn: the leechers of the raw baseline only take; it cannot reach
// the line of a swarm.
func (r *Report) passesNothingOn(s *Swarm) bool {
	for _, sys := range r.Systems {
		if sys.Name == s.System {
			return sys.Use == "fanout"
		}
	}
	return false
}

// noSharing looks at who sent the bytes of a swarm.
func noSharing(r *Report) []Finding {
	var all []findings.Sharing
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if m, ok := s.cell.Metrics["seeder_share"]; ok && !r.passesNothingOn(s) {
			all = append(all, findings.Sharing{Where: s.name(), Seeders: s.Seeders, Leechers: s.Nodes - s.Seeders, BySeeders: float64(m.Median)})
		}
	}
	return findings.NoSharing(all)
}

// slowDisks looks at how much later than verified all is on disk.
func slowDisks(r *Report) []Finding {
	var all []findings.Written
	for i := range r.Swarms {
		s := &r.Swarms[i]
		disk, ok := s.cell.Metrics["disk_last"]
		last, has := s.cell.Metrics["time_last"]
		if ok && has {
			all = append(all, findings.Written{Where: s.name(), Verified: float64(last.Median), OnDisk: float64(disk.Median), Resolution: s.metricOr("resolution")})
		}
	}
	return findings.DiskLags(all)
}

// metricOr is a metric's median, or 0.
func (s *Swarm) metricOr(key string) float64 {
	if m, ok := s.cell.Metrics[key]; ok && m.Median.Known() {
		return float64(m.Median)
	}
	return 0
}

var faultDuration = regexp.MustCompile(` for ([0-9.]+(?:ns|us|µs|ms|s|m|h)+)`)

// faultTime is how long the longest of a cell's faults lasts, seconds; 0: none is
// undone.
func (s *Swarm) faultTime() float64 {
	longest := 0.0
	for _, m := range faultDuration.FindAllStringSubmatch(s.Faults, -1) {
		if d, err := time.ParseDuration(m[1]); err == nil {
			longest = max(longest, d.Seconds())
		}
	}
	return longest
}

// slowRecovery looks at how nodes go on after a fault.
func slowRecovery(r *Report) []Finding {
	var all []findings.Recovery
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if s.quiet() {
			continue
		}
		c := findings.Recovery{Where: s.name(), Next: s.cell.metricValue("recovery"), Outage: s.faultTime(), WentOn: s.cell.metricValue("recovered").Mid}
		if q, has := s.cell.Metrics["outage"]; has { // starting takes its time, too
			c.Outage = float64(q.Median)
		}
		all = append(all, c)
	}
	return findings.SlowRecovery(all)
}

// spreadStart looks at how leechers began that are released together.
func spreadStart(r *Report) []Finding {
	var all []findings.Release
	for i := range r.Swarms {
		if s := &r.Swarms[i]; s.together() {
			all = append(all, findings.Release{Where: s.name(), Spread: s.metricOr("start_spread"), Took: s.metricOr("time_median")})
		}
	}
	return findings.StartSpread(all)
}

// coarsePolls looks at how far apart the polls lay that tell the times.
func coarsePolls(r *Report) []Finding {
	var all []findings.PollGaps
	for i := range r.Swarms {
		s := &r.Swarms[i]
		g := findings.PollGaps{Where: s.name(), Took: s.metricOr("time_median"), Median: s.metricOr("resolution")}
		for _, t := range s.trials {
			g.Trials = append(g.Trials, t.Metrics["resolution"])
		}
		all = append(all, g)
	}
	return findings.CoarsePolls(all)
}

// imported looks at where the numbers come from.
func imported(r *Report) []Finding {
	if r.imported == nil {
		return nil
	}
	return findings.Imported(findings.Source{Format: r.imported.Format, From: r.imported.From, Unknown: r.imported.Unknown, Notes: r.imported.Notes})
}
