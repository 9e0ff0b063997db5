package report

import (
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// rule looks for one thing worth knowing. It says nothing when it has no evidence.
type rule func(*Report) []Finding

// find runs every rule, what spoils a result first; the catalogue of findings has
// what each looks for.
func (r *Report) find() {
	all := []rule{wrongBytes, notExecuted, notEmulated, overloaded, generatorBound, linksOff, boxBusy, machineLimited, beyondLine}
	if r.lens.failures != nil {
		all = append(all, r.lens.failures...)
	} else {
		all = append(all, deadlinesPose, serverFailures)
	}
	all = append(all, r.lens.rules...)
	for _, look := range append(all, leaking, leftOut, drift, dropped) {
		for _, f := range look(r) {
			if f.Try == "" { // what there is to try for every case of it
				f.Try = findings.Try(f.Rule)
			}
			r.Findings = append(r.Findings, f)
		}
	}
}

// notEmulated looks for trials that ran without the link that was asked for.
func notEmulated(r *Report) []Finding {
	l := findings.Links{Asked: r.link, Why: r.EnvironmentOf("testbed.why")}
	for _, t := range r.Trials {
		if slices.Contains(t.Notes, record.NoteNotEmulated) {
			l.Bare++
		}
	}
	return findings.NotEmulated(l)
}

// behind lists the open-loop cells that did not keep up with the offered load.
func (r *Report) behind() (cells []*Cell, open int) {
	for _, c := range r.cells() {
		share, ok := c.Metrics["achieved_share"]
		if !ok {
			continue
		}
		open++
		if share.Median < findings.KeptUp {
			cells = append(cells, c)
		}
	}
	return cells, open
}

func overloaded(r *Report) []Finding {
	var all []findings.Offered
	for _, c := range r.cells() {
		if share, ok := c.Metrics["achieved_share"]; ok {
			all = append(all, findings.Offered{Where: r.shape.named(c), Ended: float64(share.Median)})
		}
	}
	return findings.Overloaded(all)
}

func shortTrials(r *Report) []Finding {
	if r.headline != "throughput" {
		return nil
	}
	var all []findings.Looped
	for _, c := range r.cells() {
		all = append(all, findings.Looped{Where: r.shape.named(c), Ended: c.Success.Of, Cut: c.Outcomes[record.InFlight.String()]})
	}
	return findings.ShortTrials(all)
}

func leftOut(r *Report) []Finding {
	var all []findings.Omitted
	for _, s := range r.Skipped {
		all = append(all, findings.Omitted{System: s.System, Where: s.Where, Trials: s.Trials, Why: s.Why})
	}
	return findings.Skipped(all)
}

// wrongBytes looks at warm-up and invalid trials, too.
func wrongBytes(r *Report) []Finding {
	var all []findings.Corrupt
	for _, t := range r.Trials {
		if n := t.Outcomes[record.WrongBytes.String()]; n > 0 {
			all = append(all, findings.Corrupt{System: t.Info.System, Where: r.shape.where(t.Info), Trial: t.ID, Operations: n})
		}
	}
	if r.syncs != nil {
		return findings.WrongChains(all)
	}
	return findings.WrongBytes(all)
}

func notExecuted(r *Report) []Finding {
	var all []findings.Unexecuted
	for _, t := range r.Trials {
		if t.State == record.Failed {
			all = append(all, findings.Unexecuted{System: t.Info.System, Why: t.Error})
		}
	}
	return findings.NotExecuted(all)
}

func generatorBound(r *Report) []Finding {
	return findings.GeneratorBound(r.invalidBecause(record.ReasonGeneratorSaturated, record.ReasonGeneratorLate), r.lens.relieve)
}

func linksOff(r *Report) []Finding {
	off := slices.ContainsFunc(r.Trials, func(t Trial) bool { return !t.Warmup && slices.Contains(t.Invalid, record.ReasonLinkOff) })
	return findings.LinkOff(r.invalidBecause(record.ReasonLinkOff, record.ReasonEmulatorLate, record.ReasonEmulatorDied), !off)
}

func boxBusy(r *Report) []Finding {
	return findings.BoxBusy(r.invalidBecause(record.ReasonBoxBusy))
}

func machineLimited(r *Report) []Finding {
	return findings.MachineLimited(r.invalidBecause(record.ReasonMachineLimited))
}

// invalidBecause counts the trials of each cell that are invalid for given reasons.
func (r *Report) invalidBecause(reasons ...string) []findings.Spoiled {
	var all []findings.Spoiled
	for _, c := range r.cells() {
		n := 0
		for _, t := range r.Trials {
			if t.Info == c && !t.Warmup && slices.ContainsFunc(t.Invalid, func(s string) bool { return slices.Contains(reasons, s) }) {
				n++
			}
		}
		all = append(all, findings.Spoiled{Where: r.shape.named(c), Trials: n, Of: c.Valid + c.Invalid + c.Failed})
	}
	return all
}

func deadlinesPose(r *Report) []Finding { return findings.Deadlines(r.endings()) }

func serverFailures(r *Report) []Finding { return findings.Failures(r.endings()) }

// endings are how the operations of each cell ended.
func (r *Report) endings() []findings.Outcomes {
	var all []findings.Outcomes
	for _, c := range r.cells() {
		o := findings.Outcomes{Where: r.shape.named(c), Cut: c.Outcomes[record.Deadline.String()], Starved: c.Outcomes[record.Starved.String()], Why: c.failureWords()}
		o.OK, o.Of = c.ended()
		for _, n := range c.Outcomes {
			o.All += n
		}
		all = append(all, o)
	}
	return all
}

// ended counts all operations that came to an end of their own, fetches that check
// what was stored among them.
func (c *Cell) ended() (ok, of int64) {
	for _, o := range record.Outcomes() {
		if o.Finished() {
			of += c.Outcomes[o.String()]
		}
	}
	return c.Outcomes[record.OK.String()], of
}

// failureWords names failures by class where the recorder has one, largest first.
func (c *Cell) failureWords() string {
	counts := c.Classes
	if len(counts) == 0 || c.Success.Censored > 0 {
		// Classes also name what the experiment cut off; outcomes tell them apart.
		counts = map[string]int64{}
		for _, o := range record.Outcomes() {
			if o.ServerFailure() && c.Outcomes[o.String()] > 0 {
				counts[o.String()] = c.Outcomes[o.String()]
			}
		}
	}
	names := sortedByCount(counts)
	if len(names) > 4 {
		names = append(names[:3:3], "other")
	}
	var words []string
	for _, n := range names {
		if n == "other" && counts[n] == 0 {
			words = append(words, n)
			continue
		}
		words = append(words, n+" ×"+count(counts[n]))
	}
	return list(words)
}

func sortedByCount(counts map[string]int64) []string {
	names := make([]string, 0, len(counts))
	for n := range counts {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			if counts[a] > counts[b] {
				return -1
			}
			return 1
		}
		if a < b {
			return -1
		}
		return 1
	})
	return names
}

// some names the first few of many.
func some(all []string) string { return words.Some(all) }

// late counts the operations that passed the experiment's deadline or were starved by
// the link. Those in flight when a trial's time is up are no such sign: there always are some.
func (c *Cell) late() int64 {
	return c.Outcomes[record.Deadline.String()] + c.Outcomes[record.Starved.String()]
}

// lostShare is the share of a cell's operations that were late or failed.
func (c *Cell) lostShare() float64 {
	if n := c.Success.Of + c.Success.Censored; n > 0 {
		return float64(c.late()+c.Success.Of-c.Success.OK) / float64(n)
	}
	return 0
}

// drift looks for changes from block to block in every cell's own series, and in the
// ratios to the baseline, in which what hits all systems alike cancels.
func drift(r *Report) []Finding {
	key := r.lens.steady
	if key == "" {
		return nil
	}
	bases := map[string]*Cell{}
	for _, c := range r.cells() {
		if c.Baseline {
			bases[c.Group] = c
		}
	}
	m, _ := r.metric(key)
	d := findings.Drift{Metric: capital(m.Name), Seed: r.Run.Seed}
	for _, s := range r.Systems {
		of := findings.Drifting{System: s.Name, Against: r.Baseline}
		for _, c := range r.cells() {
			if c.System != s.Name {
				continue
			}
			own := c.Metrics[key]
			of.Where, of.Cells = append(of.Where, r.shape.where(c)), append(of.Cells, own.byBlock(nil))
			if b := bases[c.Group]; b != nil && b != c {
				base := b.Metrics[key]
				of.Ratios = append(of.Ratios, own.byBlock(&base))
			}
		}
		d.Systems = append(d.Systems, of)
	}
	return d.Find()
}

// byBlock are the values by their block, divided by another's of the same; NaN:
// none.
func (s Summary) byBlock(by *Summary) []float64 {
	var row []float64
	for i, x := range s.values {
		b := s.blocks[i]
		if by != nil {
			j := slices.Index(by.blocks, b)
			if j < 0 {
				continue
			}
			x /= by.values[j]
		}
		if b < 0 || !(x > 0) || math.IsInf(x, 0) {
			continue
		}
		for len(row) <= b {
			row = append(row, math.NaN())
		}
		row[b] = x
	}
	return row
}

func dropped(r *Report) []Finding {
	var notes []string
	for _, t := range r.Trials {
		notes = append(notes, t.Notes...)
	}
	return findings.NotCompared(notes)
}

// EnvironmentOf is what the environment says of a key; empty: nothing.
func (r *Report) EnvironmentOf(key string) string {
	for _, p := range r.Environment {
		if p.Key == key {
			return p.Value
		}
	}
	return ""
}
