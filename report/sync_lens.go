package report

import (
	"fmt"
	"strings"
)

// syncLens looks at how long a fresh node takes until it can serve, and what each
// knob buys: beside the default under the same conditions, the load line, and what
// cannot be told.
func syncLens() lens {
	return lens{
		headline:  func(planView) string { return "sync_time" },
		relieve:   "Use fewer peers or slower links, or a machine with more CPUs.",
		operation: [2]string{"fresh node", "fresh nodes"},
		compared:  []string{"sync_time", "chain_time", "first_block", "net_time", "block_rate", "byte_rate", "wire_bytes", "overhead", "system_cpu", "node_rss_peak", "disk_written", "commits"},
		resources: []metricColumn{{"system_cpu", "CPU of the node", ""}, {"replay_cpu", "CPU of the replay", ""}, {"node_rss_peak", "memory of the node", ""}, {"disk_written", "written to the disk", ""},
			{"write_amplification", "written per chain byte", "×"}, {"commits", "commits", ""}, {"harness_cpu", "CPU of plimsoll", ""}, {"emulator_cpu", "CPU of the links' emulator", ""},
			{"box_cpu", "CPU of the machine", ""}, {"others_busy", "CPU of others", ""}, {"resolution", "resolution of times", ""}},
		read:       (*Report).readSyncs,
		before:     (*Report).defaults,
		work:       (*Report).sync,
		failures:   []rule{neverServed},
		rules:      []rule{byCondition, bestFound, interactionsFound, nothingGained, cannotBeTold, asGood, risks, searchTrust, mixedUp, syncStarts, boundBy, slowReplays, syncTraffic, syncBalance, uselessPeers, uShape, coarseSyncs, busyHarnessSync},
		table:      (*Report).syncTable,
		judge:      (*Report).judgeSyncs,
		answers:    (*Report).syncAnswers,
		draw:       (*Report).drawSyncs,
		sections:   (*Report).syncSections,
		textTables: (*Report).syncTexts,
		loadLine:   (*Report).syncLineWords,
	}
}

// tunings are those of single sets of conditions.
func (r *Report) tunings() []*Tuning {
	var all []*Tuning
	for i := range r.Tunings {
		if t := &r.Tunings[i]; !t.All {
			all = append(all, t)
		}
	}
	return all
}

// place names a tuning where there are several.
func (r *Report) place(t *Tuning) string {
	var words []string
	if len(r.Systems) > 1 {
		words = append(words, t.System)
	}
	switch {
	case t.Where != "":
		words = append(words, t.Where)
	case t.All:
		words = append(words, "over all conditions")
	}
	return strings.Join(words, ", ")
}

// at begins a sentence with a tuning's place.
func (r *Report) at(t *Tuning, words string) string {
	if p := r.place(t); p != "" {
		return p + ": " + words
	}
	return words
}

// syncTime is a cell's time in words.
func (r *Report) syncTime(c *Cell) string {
	s := r.synced(c)
	if s == nil {
		return "–"
	}
	m := s.time
	return showRange(m.Median, m.Lo, m.Hi, "s")
}

// judgeSyncs is the sentence to remember: the best that was found and what it
// gains, after what spoils it.
func (r *Report) judgeSyncs() *Verdict {
	if r.Run.Valid == 0 {
		return nil
	}
	tone := Neutral
	worse := func(t Tone) {
		order := map[Tone]int{Good: 0, Neutral: 1, Warn: 2, Bad: 3}
		if order[t] > order[tone] {
			tone = t
		}
	}
	var parts []string
	gained := 0
	tunings := r.tunings()
	for i, t := range tunings {
		words, better := r.verdictOf(t)
		if better {
			gained++
		}
		if i == 3 && len(tunings) > 4 {
			parts = append(parts, fmt.Sprintf("and %d more, see the findings", len(tunings)-i))
			break
		}
		parts = append(parts, r.at(t, words))
	}
	if gained > 0 {
		tone = Good
	}
	if float64(r.Run.Valid) < fewValid*float64(r.Run.Done) {
		parts = append([]string{fmt.Sprintf("only %d of %d trials are valid", r.Run.Valid, r.Run.Done)}, parts...)
		worse(Warn)
	}
	if r.finding("link-not-emulated") {
		parts = append([]string{"links were not emulated: these are numbers of the bare machine"}, parts...)
		worse(Bad)
	}
	if r.finding("beyond-line") {
		parts = append([]string{"some trials were faster than their links can be, so links or times are wrong"}, parts...)
		worse(Bad)
	}
	quiet, other := 0, 0
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if s.quiet() && !s.troubled() {
			quiet += s.unfinished()
		} else {
			other += s.unfinished()
		}
	}
	switch {
	case quiet > 0:
		parts = append(parts, fmt.Sprintf("in %s with nothing wrong the node never came to serve", plural(int64(quiet), "trial", "trials")))
		worse(Bad)
	case other > 0:
		parts = append(parts, fmt.Sprintf("in %s with faults or useless peers the node never came to serve", plural(int64(other), "trial", "trials")))
		worse(Warn)
	}
	return &Verdict{capital(strings.Join(parts, "; ")) + ".", tone}
}

// verdictOf says what was found in one tuning; better reports whether it is shown to
// gain.
func (r *Report) verdictOf(t *Tuning) (words string, better bool) {
	if t.best == nil {
		if t.Trials == 0 {
			return "no node came to serve", false
		}
		return "in each configuration a node never came to serve, so none is best", false
	}
	best := r.syncTime(t.best)
	switch {
	case len(t.factors) == 0 && t.best.Baseline && len(r.tunings()) > 1:
		return "a fresh node serves after " + best, false
	case len(t.factors) == 0 && t.best.Baseline:
		return fmt.Sprintf("a fresh node serves after %s; no knob was varied", best), false
	case t.base == nil:
		return fmt.Sprintf("%s is the best found, a fresh node serves after %s; the default has no time to compare with", r.configured(t.best), best), false
	case t.best == t.base && t.Whole < 2:
		return fmt.Sprintf("a fresh node serves after %s with the default; nothing else has a time to compare with", best), false
	case t.best == t.base && (len(t.Alike) > 0 || r.synced(t.base).time.N < 2):
		return fmt.Sprintf("of %s none is shown to serve earlier than the default (%s)", t.compared(), best), false
	case t.best == t.base:
		return fmt.Sprintf("of %s the default is the fastest: a fresh node serves after %s", t.compared(), best), false
	case t.gain.N < 2:
		return fmt.Sprintf("a fresh node serves after %s, with %s after %s: one trial of each shows nothing", r.syncTime(t.base), r.changed(t.best), best), false
	case !t.gain.Shown:
		words := fmt.Sprintf("no single configuration is significantly faster than the default (%s); the best found is %s, ~ %s", r.syncTime(t.base), r.changed(t.best), gain(t.gain.Value, t.gain.Lo, t.gain.Hi))
		for i := range t.Effects {
			if e := &t.Effects[i]; !e.interaction() && e.Shown && e.Value < 1 {
				words += fmt.Sprintf("; over all configurations %s is significant: %s", e.name(), e.words())
			}
		}
		return words, false
	}
	return fmt.Sprintf("a fresh node serves after %s instead of %s, %s, with the best found: %s", show(float64(t.after), "s"),
		show(float64(t.before), "s"), gain(t.gain.Value, t.gain.Lo, t.gain.Hi), r.changed(t.best)), true
}

// syncAnswers say of each system and its conditions what each knob buys.
func (r *Report) syncAnswers() []Answer {
	out := []Answer{}
	for _, t := range r.tunings() {
		var parts []string
		if t.base != nil {
			say := "with the default a fresh node serves after " + r.syncTime(t.base)
			if s := r.synced(t.base); s != nil && s.StartUp.Known() {
				share, mid := shareOver(s.starts())
				say += fmt.Sprintf(", %s of %s (%s) before the first block", show(mid.part, "s"), show(mid.whole, "s"), percent(share.Mid))
				if share.N > 1 {
					say += " in the middle trial" // the time before it is over all
				}
			}
			parts = append(parts, say)
		}
		if t.best != nil && t.best != t.base {
			parts = append(parts, fmt.Sprintf("with %s after %s", r.configured(t.best), r.syncTime(t.best)))
		}
		shown := 0
		for i := range t.Effects {
			if e := &t.Effects[i]; e.interaction() && e.Shown {
				shown++
			}
		}
		if shown > 0 {
			parts = append(parts, plural(int64(shown), "pair of knobs does", "pairs of knobs do")+" more or less together than each promises")
		}
		if n := len(t.Alike); n > 0 {
			parts = append(parts, plural(int64(n), "other configuration", "other configurations")+" cannot be told from the best")
		}
		if len(parts) == 0 {
			continue
		}
		text := strings.Join(parts, "; ") + "."
		if t.Where != "" {
			text = t.Where + ": " + text
		}
		out = append(out, Answer{t.System, text})
	}
	return out
}

// synced is the account of a cell; nil: it has none.
func (r *Report) synced(c *Cell) *Synced {
	for i := range r.Syncs {
		if r.Syncs[i].cell == c {
			return &r.Syncs[i]
		}
	}
	return nil
}

// syncLineWords is the paragraph on the load line.
func (r *Report) syncLineWords() string {
	link, compute := [2]Num{unknown, unknown}, [2]Num{unknown, unknown}
	for i := range r.Syncs {
		s := &r.Syncs[i]
		for key, to := range map[string]*[2]Num{"link_line": &link, "replay": &compute} {
			if m, ok := s.cell.Metrics[key]; ok {
				to[0], to[1] = least(to[0], float64(m.Median)), highest(to[1], float64(m.Median))
			}
		}
	}
	if !link[0].Known() && !compute[0].Known() {
		return ""
	}
	between := func(v [2]Num) string {
		if v[1] <= v[0]*1.02 {
			return show(float64(v[0]), "s")
		}
		return show(float64(v[0]), "s") + " to " + show(float64(v[1]), "s")
	}
	s := "The load line of a fresh node is the larger of two times: that in which its links can carry the chain's bytes, after one round trip, and that in which its own code validates, stores and indexes the same blocks from a local file, without a network and without waits (the replay). "
	var parts []string
	if link[0].Known() {
		parts = append(parts, "the links need "+between(link))
	}
	if compute[0].Known() {
		parts = append(parts, "the replay took "+between(compute))
	} else {
		parts = append(parts, "a replay was not measured, so only the links are in the line")
	}
	s += "Here " + list(parts) + ". "
	s += "A node that overlaps the two well comes near the larger; one that fetches and validates in turn cannot do better than their sum. The replay is a measurement like any other: a trial may be a little faster. It includes what subscribes, so it is compared with the time until the node can serve, waits for the first block included."
	return s
}
