package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// Limits from which on something is said of a swarm.
const (
	// From this share of all bytes on, seeders do all the work.
	nearlyAll = 0.90
	// The disk may lag behind the last verified byte by this share of the time.
	diskLag = 0.10
	// Leechers whose starts lie this share of the time apart did not start together.
	muchSpread = 0.05
	// A time told by polls this share of it apart is a coarse one.
	coarse = 0.10
	// In one trial a gap of this share is worth a word, whatever the others had.
	blind = 0.25
)

// unfinishedFound: who never got everything, and why. In cells with faults that
// may be the fault's doing.
func unfinishedFound(r *Report) []Finding {
	bad := Finding{Rule: "leechers-unfinished", Tone: Bad, Title: "Leechers did not get everything",
		Text: "Nothing was done to these swarms, and still some leechers were stalled, ran out of time or failed. Times of such cells count them as longer than any."}
	faulted := Finding{Rule: "leechers-unfinished-faults", Tone: Warn, Title: "Faults left leechers without the content",
		Text: "With these faults some leechers did not get everything. Where the only seeder dies before all pieces are out nobody can; what counts is that the others go on, and that nobody waits for ever."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		n := s.unfinished()
		if n == 0 {
			continue
		}
		trials := 0
		for _, t := range s.trials {
			for k := range t.leechers {
				if f := &t.leechers[k]; f.wanted() && math.IsNaN(f.done) {
					trials++
					break
				}
			}
		}
		words := fmt.Sprintf("%s: %s of %s in %d of %s: %s", s.name(), count(n), plural(s.ok().Of, "leecher", "leechers"), trials, plural(int64(s.Trials), "trial", "trials"), s.endWords())
		if why := s.classes(); why != "" {
			words += " (" + why + ")"
		}
		if best := s.bestUnfinished(); best != "" {
			words += "; " + best
		}
		if s.quiet() {
			bad.Evidence = append(bad.Evidence, words)
		} else {
			faulted.Evidence = append(faulted.Evidence, words)
		}
	}
	return withEvidence(bad, faulted)
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

// bestUnfinished says how far those got that stopped: all at the same point is
// the sign of pieces that nobody has any more.
func (s *Swarm) bestUnfinished() string {
	lo, hi, n := 1.0, 0.0, 0
	for _, t := range s.trials {
		for i := range t.leechers {
			f := &t.leechers[i]
			if !f.wanted() || !math.IsNaN(f.done) || f.outcome == record.WrongBytes {
				continue
			}
			at := f.got / t.size
			lo, hi, n = min(lo, at), max(hi, at), n+1
		}
	}
	switch {
	case n == 0 || s.Size == 0:
		return ""
	case hi == 0:
		return "none of them had a byte"
	case hi-lo < 0.005:
		return "each had " + percent(hi)
	}
	return fmt.Sprintf("they had %s to %s", percent(lo), percent(hi))
}

// goalMissed says where the goal is not met, and where it cannot be told.
func goalMissed(r *Report) []Finding {
	missed := Finding{Rule: "goal-missed", Tone: Bad, Title: "The goal is not met",
		Text: "The goal is to be " + r.gateWords() + ". In these cells the whole interval of the ratio lies beyond it, or the system never came to the end at all."}
	half := Finding{Rule: "goal-met-unfinished", Tone: Warn, Title: "The goal is met by those who got everything",
		Text: "Half of the leechers are as fast as the goal asks, but not all leechers got everything."}
	open := Finding{Rule: "goal-open", Tone: Neutral, Title: "Whether the goal is met cannot be told",
		Text: "The goal is to be " + r.gateWords() + ". In these cells the trials do not decide it."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		words := map[string][]string{}
		for _, key := range gateMetrics {
			if g := r.gateOf(s, key); g != nil {
				what := map[string]string{"time_median": "half of the leechers", "time_last": "the last one"}[key]
				words[g.State] = append(words[g.State], fmt.Sprintf("%s %s (%s)", what, g.shown(), g.Why))
			}
		}
		if w := words[RuleFail]; w != nil {
			missed.Evidence = append(missed.Evidence, s.name()+": "+strings.Join(w, "; "))
		}
		if w := words[RuleOpen]; w != nil && s.Trials > 0 {
			open.Evidence = append(open.Evidence, s.name()+": "+strings.Join(w, "; "))
		}
		if w := words[RulePass]; w != nil && s.unfinished() > 0 {
			half.Evidence = append(half.Evidence, fmt.Sprintf("%s: %s; %s of %s did not get everything", s.name(), strings.Join(w, "; "), count(s.unfinished()), plural(s.ok().Of, "leecher", "leechers")))
		}
	}
	return withEvidence(missed, half, open)
}

// fasterThanLine is an alarm: nothing is faster than its links.
func fasterThanLine(r *Report) []Finding {
	f := Finding{Rule: "beyond-line", Tone: Bad, Title: "Faster than the links can be",
		Text: "In these trials the last leecher had everything before the load line allows it, by more than the link's tolerance. A link was not what it should be, bytes went another way, or the measurement is wrong. Do not believe these trials."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		tolerance := float64(s.cell.plan.Link.Tolerance)
		if tolerance == 0 {
			tolerance = EffectFloor
		}
		n, most := 0, 0.0
		for _, t := range s.trials {
			line, last := t.Metrics["line"], t.Metrics["time_last"]
			if line > 0 && last > 0 && last < line*(1-tolerance-findings.BeyondSlack) {
				n++
				most = max(most, line/last)
			}
		}
		if n > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %d of %s, at up to %s of the line", s.name(), n, plural(int64(s.Trials), "trial", "trials"), percent(most)))
		}
	}
	return withEvidence(f)
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

// noSharing: a swarm whose leechers pass nothing on is none.
func noSharing(r *Report) []Finding {
	f := Finding{Rule: "no-sharing", Tone: Warn, Title: "Leechers pass hardly anything on",
		Text: "Nearly all bytes came from the seeders although there were several leechers: more leechers will take proportionally longer."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		m, ok := s.cell.Metrics["seeder_share"]
		if ok && m.Median > nearlyAll && s.Nodes-s.Seeders > 1 && !r.passesNothingOn(s) {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of all bytes were sent by %s", s.name(), percent(float64(m.Median)), plural(int64(s.Seeders), "seeder", "seeders")))
		}
	}
	return withEvidence(f)
}

// slowDisks: verified is not yet kept.
func slowDisks(r *Report) []Finding {
	f := Finding{Rule: "disk-lags", Tone: Neutral, Title: "Files were complete on disk later than verified",
		Text: "The last leecher had verified everything well before all was on its disk. Times here are those of verified bytes, for all systems alike; who needs the file waits longer."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		disk, ok := s.cell.Metrics["disk_last"]
		last, has := s.cell.Metrics["time_last"]
		if ok && has && float64(disk.Median) > (1+diskLag)*float64(last.Median) && float64(disk.Median-last.Median) > 2*s.metricOr("resolution") {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: verified after %s, on disk after %s", s.name(), show(float64(last.Median), "s"), show(float64(disk.Median), "s")))
		}
	}
	return withEvidence(f)
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

// slowRecovery: nodes that need longer to go on than they were disturbed for.
func slowRecovery(r *Report) []Finding {
	f := Finding{Rule: "slow-recovery", Tone: Warn, Title: "Nodes are slow to go on after a fault",
		Text: "After the fault was undone, the nodes that it touched got no further verified byte for longer than they had been without, or never got one."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if s.quiet() {
			continue
		}
		var words []string
		m, ok := s.cell.Metrics["recovery"]
		lasted := s.faultTime()
		if q, has := s.cell.Metrics["outage"]; has { // starting takes its time, too
			lasted = float64(q.Median)
		}
		if ok && lasted > 0 && float64(m.Median) > lasted {
			words = append(words, fmt.Sprintf("%s to the next verified byte after an outage of %s", showRange(m.Median, m.Lo, m.Hi, "s"), show(lasted, "s")))
		}
		if q, has := s.cell.Metrics["recovered"]; has && q.Median < 1 {
			words = append(words, fmt.Sprintf("%s of the nodes went on at all", percent(float64(q.Median))))
		}
		if words != nil {
			f.Evidence = append(f.Evidence, s.name()+": "+list(words))
		}
	}
	return withEvidence(f)
}

// spreadStart: leechers that did not start together.
func spreadStart(r *Report) []Finding {
	f := Finding{Rule: "start-spread", Tone: Warn, Title: "Leechers did not start together",
		Text: "They were released at one barrier, but the last began so much later than the first that it matters for their times, which count from the release."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		spread, at := s.metricOr("start_spread"), s.metricOr("time_median")
		if s.together() && at > 0 && spread > muchSpread*at {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s apart, with a median time of %s", s.name(), show(spread, "s"), show(at, "s")))
		}
	}
	return withEvidence(f)
}

// coarsePolls: a time is no finer than the polls that tell it.
func coarsePolls(r *Report) []Finding {
	f := Finding{Rule: "coarse", Tone: Warn, Title: "Times are coarse",
		Text: "Polls lay so far apart that they decide these times as much as the systems do: each is too long by up to that, and so late may a fault have struck that waits for a share of the content."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		gap, at := s.metricOr("resolution"), s.metricOr("time_median")
		if at > 0 && gap > coarse*at {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: polls up to %s apart, with a median time of %s", s.name(), show(gap, "s"), show(at, "s")))
			continue
		}
		n, most := 0, 0.0
		for _, t := range s.trials {
			if gap := t.Metrics["resolution"]; at > 0 && gap > blind*at {
				n, most = n+1, max(most, gap)
			}
		}
		if n > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: in %d of %s nobody was asked for up to %s, with a median time of %s", s.name(), n, plural(int64(s.Trials), "trial", "trials"), show(most, "s"), show(at, "s")))
		}
	}
	return withEvidence(f)
}

// imported: numbers that another program measured.
func imported(r *Report) []Finding {
	from := r.imported
	if from == nil {
		return nil
	}
	f := Finding{Rule: "imported", Tone: Warn, Title: "These numbers were imported",
		Text: fmt.Sprintf("They were read from %s (%s), not measured by this program: what it would have checked is not known.", from.Format, list(from.From))}
	f.Evidence = append(slices.Clone(from.Unknown), from.Notes...)
	return []Finding{f}
}
