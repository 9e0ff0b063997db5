package report

import (
	"fmt"
	"strings"
)

// disseminateLens looks at how content spreads through a swarm: how long the
// half of the leechers and the last of them wait, beside the load line and the
// baseline, and what became of each.
func disseminateLens() lens {
	return lens{
		headline:  func(planView) string { return "time_median" },
		steady:    "time_median",
		relieve:   "Use fewer nodes or slower links, or a machine with more CPUs.",
		operation: [2]string{"leecher", "leechers"},
		axis:      []string{nodesPath, "data.size", seedersPath, "link.rate", "disseminate.up", "link.delay", "disseminate.slow"},
		facets:    byRatio,
		compared:  []string{"time_median", "time_last", "speed_median", "disk_last", "first_byte", "overhead", "system_cpu_per_gb", "node_rss_peak"},
		resources: []metricColumn{{"system_cpu", "system CPU", ""}, {"system_cpu_per_gb", "per GB", ""}, {"node_rss_peak", "memory, largest node", ""},
			{"harness_cpu", "CPU of plimsoll", ""}, {"emulator_cpu", "CPU of the links' emulator", ""}, {"others_busy", "CPU of others", ""},
			{"start_spread", "spread of the start", ""}, {"resolution", "resolution of times", ""}},
		read:       (*Report).readSwarms,
		before:     (*Report).successOfLeechers,
		work:       (*Report).swarm,
		failures:   []rule{imported, unfinishedFound, partialFaults},
		rules:      []rule{goalMissed, swarmBounds, swarmTraffic, noSharing, swarmBalance, swarmStarts, slowDisks, slowRecovery, spreadStart, coarsePolls, busyHarness},
		table:      (*Report).swarmTable,
		judge:      (*Report).judgeSwarms,
		answers:    (*Report).swarmAnswers,
		draw:       (*Report).drawSwarms,
		sections:   (*Report).swarmSections,
		textTables: (*Report).swarmTexts,
		loadLine:   (*Report).fluidWords,
	}
}

// fluidWords is the paragraph on the load line of a swarm.
func (r *Report) fluidWords() string {
	lo, hi, n := unknown, unknown, 0
	for i := range r.Swarms {
		if l := r.Swarms[i].Line; l.Known() {
			lo, hi = least(lo, float64(l)), highest(hi, float64(l))
			n++
		}
	}
	if n == 0 {
		return ""
	}
	s := "The load line of a swarm is the least time in which the content can reach the last leecher, if every link carries payload without pause and nothing is sent in vain: the largest of the content over the up-rates of the seeders, over the slowest down-rate, and of all copies over all up-rates (the fluid bound). "
	if hi <= lo*1.02 {
		s += fmt.Sprintf("Here it is %s. ", show(float64(lo), "s"))
	} else {
		s += fmt.Sprintf("Here it is %s to %s, depending on the cell. ", show(float64(lo), "s"), show(float64(hi), "s"))
	}
	return s + r.closest("line_share", "The closest approach of a last leecher is") + r.halfLine() + "Both are of trials without faults whose leechers start together; single leechers may well be faster."
}

// halfLine says where the load line of half of the leechers lies.
func (r *Report) halfLine() string {
	at := r.atLine("line_median")
	if at == "" {
		return ""
	}
	return "Half of the leechers, whichever these are, need fewer copies and the faster links: their line lies " + at + ". " + r.closest("line_median_share", "The closest approach of a median leecher is")
}

// judgeSwarms is the sentence to remember: who got everything, and the goal.
func (r *Report) judgeSwarms() *Verdict {
	if r.Run.Valid == 0 {
		return nil
	}
	tone := Good
	worse := func(t Tone) {
		order := map[Tone]int{Good: 0, Neutral: 1, Warn: 2, Bad: 3}
		if order[t] > order[tone] {
			tone = t
		}
	}
	var parts []string
	if float64(r.Run.Valid) < fewValid*float64(r.Run.Done) {
		parts = append(parts, fmt.Sprintf("only %d of %d trials are valid", r.Run.Valid, r.Run.Done))
		worse(Warn)
	}
	if r.finding("link-not-emulated") {
		parts = append(parts, "links were not emulated: these are numbers of the bare machine")
		worse(Bad)
	}
	if r.finding("imported") {
		parts = append(parts, "these numbers were imported: neither links nor machine were measured by this program")
		worse(Warn)
	}
	if r.finding("beyond-line") {
		parts = append(parts, "some trials were faster than their links can be, so links or times are wrong")
		worse(Bad)
	}
	served, t := r.leechersServed()
	parts = append(parts, served)
	worse(t)
	compared, t := r.goals()
	if _, set := r.gateShare(); !set {
		t = Good
		slower := false
		if compared, slower = r.againstBaseline(); slower {
			t = Neutral
		}
	}
	parts = append(parts, compared...)
	worse(t)
	return &Verdict{capital(strings.Join(parts, "; ")) + ".", tone}
}

// leechersServed says how many leechers got everything.
func (r *Report) leechersServed() (string, Tone) {
	type counts struct{ n, of, faulted int64 }
	each := map[string]*counts{}
	all := counts{}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		e := each[s.System]
		if e == nil {
			e = &counts{}
			each[s.System] = e
		}
		q := s.ok()
		e.n, e.of, all.n, all.of = e.n+q.N, e.of+q.Of, all.n+q.N, all.of+q.Of
		if !s.quiet() {
			e.faulted += q.Of - q.N
		}
	}
	switch {
	case all.of == 0:
		return "no leecher was watched to an end", Warn
	case all.n == all.of:
		var unseen []string
		for _, s := range r.Systems {
			if e := each[s.Name]; e != nil && e.of == 0 {
				unseen = append(unseen, s.Name)
			}
		}
		if unseen != nil {
			return "every leecher of valid trials got everything, and " + list(unseen) + " had none", Warn
		}
		return "every leecher got everything", Good
	}
	var failing []string
	tone := Warn
	for _, s := range r.Systems {
		if e := each[s.Name]; e != nil && e.n < e.of {
			words := fmt.Sprintf("%s of %s of %s did not get everything", count(e.of-e.n), plural(e.of, "leecher", "leechers"), s.Name)
			if e.faulted > 0 {
				words += fmt.Sprintf(" (%s of them in cells with faults)", count(e.faulted))
			}
			failing = append(failing, words)
			if e.of-e.n > e.faulted {
				tone = Bad
			}
		}
	}
	return list(failing), tone
}

// goals says of each system in how many cells it meets the goal.
func (r *Report) goals() ([]string, Tone) {
	if r.Baseline == "" {
		return []string{"there is no baseline, so the goal is asked of nobody"}, Neutral
	}
	tone := Good
	var parts []string
	goal := func() string { // in full where it is said first
		if parts == nil {
			return "the goal (" + r.gateWords() + ")"
		}
		return "it"
	}
	for _, sys := range r.Systems {
		counts, cells := map[string]int{}, 0
		for i := range r.Swarms {
			if s := &r.Swarms[i]; s.System == sys.Name {
				if g := r.gateOf(s, gateMetrics[0]); g != nil {
					counts[g.State]++
					cells++
				}
			}
		}
		if cells == 0 {
			continue
		}
		switch {
		case counts[RuleFail] > 0:
			parts, tone = append(parts, fmt.Sprintf("%s misses %s%s", sys.Name, goal(), ofCells(counts[RuleFail], cells))), Warn
		case counts[RulePass] > 0:
			parts = append(parts, fmt.Sprintf("%s meets %s%s", sys.Name, goal(), ofCells(counts[RulePass], cells)))
		}
		if n := counts[RuleOpen]; n > 0 {
			if n == cells {
				where := ""
				if cells > 1 {
					where = " in any cell"
				}
				parts = append(parts, fmt.Sprintf("whether %s meets %s cannot be told%s", sys.Name, goal(), where))
			} else {
				parts[len(parts)-1] += fmt.Sprintf(", and in %d that cannot be told", n)
			}
			if tone == Good {
				tone = Neutral
			}
		}
	}
	return parts, tone
}

// swarmAnswers say of each system how long its leechers wait.
func (r *Report) swarmAnswers() []Answer {
	out := []Answer{}
	for _, sys := range r.Systems {
		lo, hi := r.extremes(sys.Name)
		if lo == nil {
			if q := r.answerUnfinished(sys.Name); q != "" {
				out = append(out, Answer{sys.Name, q})
			}
			continue
		}
		say := "half of the leechers have everything within " + r.timeWords(lo)
		if lo != hi {
			say = fmt.Sprintf("half of the leechers have everything within %s (%s) to %s (%s)", r.timeWords(lo), r.shape.where(lo), r.timeWords(hi), r.shape.where(hi))
		}
		if o, ok := r.overall(sys.Name, r.headline); ok {
			say += fmt.Sprintf("; %s what %s takes", o.words(), r.Baseline)
			if lo != hi {
				say += ", over all cells that can be compared"
			}
			say += r.leftOut(sys.Name, r.headline)
			if !o.Shown {
				say += o.notShown()
			}
			say += o.spread()
			if n, of := r.notCompared(sys.Name); n > 0 {
				say += fmt.Sprintf("; in that ratio are not: %d of its %d cells, where it or %s has no trial, or not all of them came to it", n, of, r.Baseline)
			}
		}
		best, worst := unknown, unknown
		for _, c := range r.cells() {
			if m, ok := c.Metrics["line_share"]; ok && c.System == sys.Name {
				best, worst = highest(best, float64(m.Median)), least(worst, float64(m.Median))
			}
		}
		if best.Known() {
			if percent(float64(best)) == percent(float64(worst)) {
				say += fmt.Sprintf("; the last leecher at %s of the load line", percent(float64(best)))
			} else {
				say += fmt.Sprintf("; the last leecher at %s to %s of the load line", percent(float64(worst)), percent(float64(best)))
			}
		}
		if q := r.answerUnfinished(sys.Name); q != "" {
			say += "; " + strings.TrimSuffix(q, ".")
		}
		out = append(out, Answer{sys.Name, say + "."})
	}
	return out
}

// notCompared counts the cells of a system of which there is no ratio, often those
// in which it is worst.
func (r *Report) notCompared(system string) (n, of int) {
	for i := range r.Swarms {
		if s := &r.Swarms[i]; s.System == system {
			of++
			if q, ok := s.cell.Ratios[r.headline]; !ok || !q.Value.Known() {
				n++
			}
		}
	}
	return n, of
}

func (r *Report) timeWords(c *Cell) string {
	m := c.Metrics[r.headline]
	return showRange(m.Median, m.Lo, m.Hi, "s")
}

func (r *Report) answerUnfinished(system string) string {
	var n, of int64
	for i := range r.Swarms {
		if s := &r.Swarms[i]; s.System == system {
			n, of = n+s.unfinished(), of+s.ok().Of
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s did not get everything.", count(n), plural(of, "leecher", "leechers"))
}
