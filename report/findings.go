package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/report/internal/words"
)

// rule looks for one thing worth knowing. It says nothing when it has no evidence.
type rule func(*Report) []Finding

// find runs every rule, what spoils a result first; the catalogue of findings has
// what each looks for.
func (r *Report) find() {
	all := []rule{wrongBytes, notExecuted, notEmulated, overloaded, generatorBound, linksOff, boxBusy}
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
	why := r.EnvironmentOf("testbed.why")
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
		Text: "Requests came faster than answers in these cells, so they queued, and every time grew with the length of the trial: medians there are no property of the system."}
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
		Text: "Fewer than ten requests of each connection ended within a trial. What its end cuts off counts with the bytes that had come, so these throughputs move in steps of a request: they are a little low, and their intervals narrower than the truth."}
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
		Text: plural(int64(len(r.Skipped)), "cell was", "cells were") + " left out on purpose, whole or in part, because one operation takes too long there. That is neither invalid nor failed; what is said of a system is said without them."}
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
		Text: "These trials yielded nothing."}
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
	return r.invalidBecause(Finding{Rule: "generator-bound", Tone: Warn, Title: "The load generator was the limit",
		Text: "in these cells the generator itself was too busy or too late; their invalid trials say how fast the generator is, not the server, and are left out.",
		Try:  r.lens.relieve}, record.ReasonGeneratorSaturated, record.ReasonGeneratorLate)
}

func linksOff(r *Report) []Finding {
	title := "A link was not what was asked for"
	if !slices.ContainsFunc(r.Trials, func(t Trial) bool { return !t.Warmup && slices.Contains(t.Invalid, record.ReasonLinkOff) }) {
		title = "The links' emulator was late or ended"
	}
	return r.invalidBecause(Finding{Rule: "link-off", Tone: Warn, Title: title,
		Text: "the link measured before these trials, or the emulator during them, was off by more than the tolerance; the trials are left out."},
		record.ReasonLinkOff, record.ReasonEmulatorLate, record.ReasonEmulatorDied)
}

func boxBusy(r *Report) []Finding {
	return r.invalidBecause(Finding{Rule: "box-busy", Tone: Warn, Title: "Something else was using the machine",
		Text: "other processes took CPU time during these trials; they are left out. Small differences between the others are not to be believed yet."},
		record.ReasonBoxBusy)
}

// invalidBecause lists the cells with trials that are invalid for given reasons,
// and begins the finding's text with their number.
func (r *Report) invalidBecause(f Finding, reasons ...string) []Finding {
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
	f.Text = plural(int64(total), "trial", "trials") + ": " + f.Text
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
	f.Text = "The experiment's own deadline ended operations that were still receiving. Under a burst that shares the link fairly all operations end late together; that is the link's arithmetic, not the server's failure."
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
func some(all []string) string { return words.Some(all) }

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

// drift compares blocks: what hits all systems alike cancels in the ratios to the
// baseline, unequal drift does not.
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
		if s.Baseline {
			continue
		}
		of := findings.Drifting{System: s.Name}
		for _, c := range r.cells() {
			if c.System != s.Name {
				continue
			}
			var base *Summary
			if b := bases[c.Group]; b != nil {
				m := b.Metrics[key]
				base, of.Against = &m, r.Baseline
			}
			of.Cells = append(of.Cells, c.Metrics[key].byBlock(base))
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

// EnvironmentOf is what the environment says of a key; empty: nothing.
func (r *Report) EnvironmentOf(key string) string {
	for _, p := range r.Environment {
		if p.Key == key {
			return p.Value
		}
	}
	return ""
}
