package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// rule looks for one thing worth knowing. It says nothing when it has no evidence.
type rule func(*Report) []Finding

// find runs every rule, what spoils a result first.
func (r *Report) find() {
	all := []rule{wrongBytes, notExecuted, notEmulated, overloaded, generatorBound, linksOff, boxBusy}
	if r.lens.failures != nil {
		all = append(all, r.lens.failures...)
	} else {
		all = append(all, deadlinesPose, serverFailures)
	}
	all = append(all, r.lens.rules...)
	for _, look := range append(all, leftOut, drift, dropped) {
		r.Findings = append(r.Findings, look(r)...)
	}
}

// notEmulated: a number of the bare machine must not pass for one of the link
// that was asked for.
func notEmulated(r *Report) []Finding {
	n := int64(0)
	for _, t := range r.Trials {
		if slices.Contains(t.Notes, record.NoteNotEmulated) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	why := r.environment("testbed.why")
	if why == "" {
		why = "this machine has no emulator"
	}
	return []Finding{{Rule: "link-not-emulated", Tone: Bad, Title: "Links were not emulated",
		Text: fmt.Sprintf("The plan asks for %s; %s of this machine had no such link (%s). Their numbers are those of the bare machine.", r.link, plural(n, "trial", "trials"), why)}}
}

// keptUp is the share of the offered load from which on a system counts as
// keeping up with it.
const keptUp = 0.95

// behind lists the open-loop cells that did not keep up with the offered load.
func (r *Report) behind() (cells []*Cell, open int) {
	for _, c := range r.cells() {
		share, ok := c.Metrics["achieved_share"]
		if !ok {
			continue
		}
		open++
		if share.Median < keptUp {
			cells = append(cells, c)
		}
	}
	return cells, open
}

// overloaded: in an open loop the times of what did end say little while more
// and more is waiting.
func overloaded(r *Report) []Finding {
	cells, _ := r.behind()
	if len(cells) == 0 {
		return nil
	}
	f := Finding{Rule: "overloaded", Tone: Bad, Title: "The offered load was not kept up with",
		Text: "Requests came faster than answers in these cells, so they queued, and every time grew with the length of the trial: medians there are no property of the system. Offer less."}
	for _, c := range cells {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of the offered load ended within the trial", r.shape.named(c), percent(float64(c.Metrics["achieved_share"].Median))))
	}
	return []Finding{f}
}

// fewRequests is how many requests of each connection a trial needs before the
// one that its end cuts off matters little.
const fewRequests = 10

// shortTrials: in a closed loop that a duration ends, as many requests are under
// way at the end as there are connections. They count with the bytes that had
// come, a waiting one with none, so the throughput of a short trial moves in
// steps of a request, the same in every trial.
func shortTrials(r *Report) []Finding {
	if r.headline != "throughput" {
		return nil
	}
	f := Finding{Rule: "short-trials", Tone: Neutral, Title: "Trials are short",
		Text: "Fewer than ten requests of each connection ended within a trial. What its end cuts off counts with the bytes that had come, so these throughputs move in steps of a request: they are a little low, and their intervals narrower than the truth. Longer trials mend it (retrieve.duration)."}
	for _, c := range r.cells() {
		cut := c.Outcomes[record.InFlight.String()]
		if cut == 0 {
			continue
		}
		if each := float64(c.Success.Of) / float64(cut); each < fewRequests {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s requests of each connection in a trial", r.shape.named(c), digits(each, 2)))
		}
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}

// leftOut: a cell without trials must not pass for one without a problem.
func leftOut(r *Report) []Finding {
	if len(r.Skipped) == 0 {
		return nil
	}
	f := Finding{Rule: "skipped", Tone: Neutral, Title: "Cells were left out",
		Text: plural(int64(len(r.Skipped)), "cell was", "cells were") + " left out on purpose, whole or in part, because one operation takes too long there. That is neither invalid nor failed; what is said of a system is said without them (overhead.longest allows more)."}
	for _, s := range r.Skipped {
		part := ""
		if s.Trials > 0 {
			part = ", " + plural(int64(s.Trials), "trial", "trials")
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s, %s%s: %s", s.System, s.Where, part, s.Why))
	}
	return []Finding{f}
}

// wrongBytes: corruption is never a detail.
func wrongBytes(r *Report) []Finding {
	f := Finding{Rule: "wrong-bytes", Tone: Bad, Title: "Wrong bytes were served"}
	total := int64(0)
	for _, t := range r.Trials {
		if n := t.Outcomes[record.WrongBytes.String()]; n > 0 {
			total += n
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s, %s, trial %d: %s", t.Info.System, r.shape.where(t.Info), t.ID, plural(n, "operation", "operations")))
		}
	}
	if total == 0 {
		return nil
	}
	did := "delivered all bytes, and they were not the object's"
	if r.syncs != nil {
		f.Title, did = "Another chain at the right height", "came to the height of the chain, and its last block was another"
	}
	f.Text = plural(total, "operation", "operations") + " " + did + ". Nothing else about that system matters until this is explained; warm-up and invalid trials are counted here too."
	return []Finding{f}
}

// notExecuted names why trials could not run at all.
func notExecuted(r *Report) []Finding {
	f := Finding{Rule: "not-executed", Tone: Bad, Title: "Trials could not be executed",
		Text: "These trials yielded nothing; the logs of the run directory have the processes' own words."}
	type kind struct{ system, why string }
	counts := map[kind]int64{}
	var order []kind
	for _, t := range r.Trials {
		if t.State != record.Failed {
			continue
		}
		k := kind{t.Info.System, t.Error}
		if counts[k] == 0 {
			order = append(order, k)
		}
		counts[k]++
	}
	if order == nil {
		return nil
	}
	for _, k := range order {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s, %s: %s", k.system, plural(counts[k], "trial", "trials"), k.why))
	}
	return []Finding{f}
}

// generatorBound: a result about the generator is not one about the server.
func generatorBound(r *Report) []Finding {
	f := r.invalidBecause("generator-bound", "The load generator was the limit",
		"in these cells the generator itself was too busy or too late; their invalid trials say how fast the generator is, not the server, and are left out. "+r.lens.relieve,
		record.ReasonGeneratorSaturated, record.ReasonGeneratorLate)
	return f
}

func linksOff(r *Report) []Finding {
	return r.invalidBecause("link-off", "A link was not what was asked for",
		"the link measured before these trials, or the emulator during them, was off by more than the tolerance; the trials are left out.",
		record.ReasonLinkOff, record.ReasonEmulatorLate, record.ReasonEmulatorDied)
}

func boxBusy(r *Report) []Finding {
	return r.invalidBecause("box-busy", "Something else was using the machine",
		"other processes took CPU time during these trials; they are left out. Run again on a quiet machine before believing small differences.",
		record.ReasonBoxBusy)
}

// invalidBecause lists the cells with trials that are invalid for given reasons.
func (r *Report) invalidBecause(id, title, text string, reasons ...string) []Finding {
	f := Finding{Rule: id, Tone: Warn, Title: title}
	total := 0
	for _, c := range r.cells() {
		n := 0
		for _, t := range r.Trials {
			if t.Info == c && !t.Warmup && slices.ContainsFunc(t.Invalid, func(s string) bool { return slices.Contains(reasons, s) }) {
				n++
			}
		}
		if n > 0 {
			total += n
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of %d", r.shape.named(c), plural(int64(n), "trial", "trials"), c.Valid+c.Invalid+c.Failed))
		}
	}
	if total == 0 {
		return nil
	}
	f.Text = plural(int64(total), "trial", "trials") + ": " + text
	return []Finding{f}
}

// deadlinesPose: a client that counts its own deadline as a failure blames a
// healthy server.
func deadlinesPose(r *Report) []Finding {
	f := Finding{Rule: "deadlines", Tone: Warn, Title: "Deadlines, not failures"}
	for _, c := range r.cells() {
		cut, all := c.Outcomes[record.Deadline.String()], int64(0)
		for _, n := range c.Outcomes {
			all += n
		}
		if cut == 0 || float64(cut) < 0.01*float64(all) {
			continue
		}
		failed := c.Success.Of - c.Success.OK
		naive := float64(c.Success.OK) / float64(all)
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of %s operations passed the deadline while bytes still came; the server failed %s. Counted together they would read as %s success",
			r.shape.named(c), count(cut), count(all), count(failed), percent(naive)))
	}
	if f.Evidence == nil {
		return nil
	}
	f.Text = "The experiment's own deadline ended operations that were still receiving. Under a burst that shares the link fairly all operations end late together; that is the link's arithmetic, not the server's failure. Give them more time (limits.deadline) or ask for less at once."
	return []Finding{f}
}

func serverFailures(r *Report) []Finding {
	f := Finding{Rule: "failures", Tone: Bad, Title: "Operations failed"}
	for _, c := range r.cells() {
		failed := c.Success.Of - c.Success.OK
		if failed == 0 {
			continue
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of %s (%s): %s", r.shape.named(c), count(failed), count(c.Success.Of),
			percent(float64(failed)/float64(c.Success.Of)), c.failureWords()))
	}
	if f.Evidence == nil {
		return nil
	}
	f.Text = "The server refused, broke off, stalled or answered with an error. These count against it."
	return []Finding{f}
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
func some(words []string) string {
	if len(words) > 3 {
		return strings.Join(words[:3], "; ") + fmt.Sprintf("; and %d more", len(words)-3)
	}
	return strings.Join(words, "; ")
}

// pastDeadline counts the operations that the experiment's deadline ended. Those
// in flight when a trial's time is up are no such sign: there always are some.
func (c *Cell) pastDeadline() int64 { return c.Outcomes[record.Deadline.String()] }

// lostShare is the share of a cell's operations that passed the deadline or failed.
func (c *Cell) lostShare() float64 {
	if n := c.Success.Of + c.Success.Censored; n > 0 {
		return float64(c.pastDeadline()+c.Success.Of-c.Success.OK) / float64(n)
	}
	return 0
}

// driftLimit is how far the blocks of a run may differ before drift is named.
const driftLimit = 1.10

// drift compares blocks: each trial is divided by its cell's median, and the
// median of these over a block is what that block was like for a system. Equal
// drift hits all alike and cancels in the ratios; unequal drift does not.
func drift(r *Report) []Finding {
	key := r.lens.steady
	if key == "" {
		return nil
	}
	m, _ := r.metric(key)
	levels := map[string]map[int][]float64{}
	for _, c := range r.cells() {
		s, ok := c.Metrics[key]
		if !ok || s.N < 3 || s.Median <= 0 {
			continue
		}
		if levels[c.System] == nil {
			levels[c.System] = map[int][]float64{}
		}
		for i, x := range s.values {
			b := s.blocks[i]
			levels[c.System][b] = append(levels[c.System][b], x/float64(s.Median))
		}
	}
	spread := func(of, by map[int][]float64) (lo, hi float64, at string) {
		lo, hi = math.Inf(1), math.Inf(-1)
		var blo, bhi int
		for b, xs := range of {
			v := middle(xs)
			if by != nil {
				if len(by[b]) == 0 {
					continue
				}
				v /= middle(by[b])
			}
			if v < lo || v == lo && b < blo {
				lo, blo = v, b
			}
			if v > hi || v == hi && b < bhi {
				hi, bhi = v, b
			}
		}
		return lo, hi, fmt.Sprintf("%s at %s, %s at %s of its median", record.BlockName(blo), percent(lo), record.BlockName(bhi), percent(hi))
	}
	f := Finding{Rule: "drift", Tone: Warn, Title: "Blocks differ, and not alike for all systems"}
	for _, s := range r.Systems {
		of := levels[s.Name]
		if len(of) < 3 || s.Baseline {
			continue
		}
		var by map[int][]float64
		against := ""
		if r.Baseline != "" && len(levels[r.Baseline]) >= 3 {
			by, against = levels[r.Baseline], " relative to "+r.Baseline
		}
		if lo, hi, at := spread(of, by); hi > lo*driftLimit && !math.IsInf(lo, 0) {
			f.Evidence = append(f.Evidence, s.Name+against+": "+at)
		}
	}
	if f.Evidence == nil {
		return nil
	}
	f.Text = capital(m.Name) + " changed between blocks by more than " + percent(driftLimit-1) + ", differently for different systems: something changed during the run (heat, caches, growth, another load). Ratios are taken within blocks, which removes only what hits all alike."
	return []Finding{f}
}

// dropped: what was not compared cannot have been seen to be wrong.
func dropped(r *Report) []Finding {
	if !slices.ContainsFunc(r.Trials, func(t Trial) bool {
		return slices.ContainsFunc(t.Notes, func(n string) bool { return len(n) >= 13 && n[:13] == "receive: drop" })
	}) {
		return nil
	}
	return []Finding{{Rule: "not-compared", Tone: Neutral, Title: "Content was not compared",
		Text: "Trials with receive: drop check status, headers and length and let the kernel discard the bytes. Wrong content would not have been seen in them."}}
}

func (r *Report) environment(key string) string {
	for _, p := range r.Environment {
		if p.Key == key {
			return p.Value
		}
	}
	return ""
}
