package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/plimsoll-project/plimsoll/record"
)

// swarmTable is every cell with what the verdict rests on.
func (r *Report) swarmTable() Table {
	t := Table{Head: append(r.factorColumns(), Column{"system", false}, Column{"valid", true}, Column{"leechers done", true})}
	time := func(key, head string) {
		t.Head = append(t.Head, Column{head, true})
		if r.Baseline != "" {
			t.Head = append(t.Head, Column{"× " + r.Baseline, true})
		}
	}
	time("time_median", "half of them, after")
	time("time_last", "the last, after")
	_, goalSet := r.gateShare()
	if r.Baseline != "" && goalSet {
		t.Head = append(t.Head, Column{"goal", false})
	}
	rest := []metricColumn{{"line", "load line", ""}, {"line_share", "the last, of the line", ""}, {"speed_median", "speed, median", ""}, {"line_median_share", "half of them, of their line", ""}, {"first_byte", "first byte", ""}, {"disk_last", "all on disk", ""}, {"overhead", "link bytes per content byte", "×"}}
	var used []metricColumn
	for _, k := range rest {
		if r.measured(k.key) {
			used = append(used, k)
			t.Head = append(t.Head, Column{k.head, true})
		}
	}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		c := s.cell
		row := append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System}, c.validEntry(), s.doneEntry())
		for _, key := range gateMetrics {
			row = append(row, s.timeEntry(r, key))
			if r.Baseline != "" {
				row = append(row, c.ratioEntry(key))
			}
		}
		if r.Baseline != "" && goalSet {
			e := goalEntry(r.gateOf(s, gateMetrics[0]))
			if c.Baseline {
				e = Entry{Text: "baseline", Tone: Neutral}
			}
			row = append(row, e)
		}
		for _, k := range used {
			row = append(row, r.medianEntry(c, k))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// timeEntry is a time, or that it was never reached.
func (s *Swarm) timeEntry(r *Report, key string) Entry {
	if _, ok := s.cell.Metrics[key]; ok {
		e := r.medianEntry(s.cell, metricColumn{key: key})
		if n := s.beyond(key); n > 0 {
			e.Note = strings.TrimSpace(e.Note + fmt.Sprintf(" never in %d", n))
			e.Tone = Warn
		}
		return e
	}
	if n := s.beyond(key); n > 0 {
		return Entry{Text: "never", Raw: "Inf", Note: fmt.Sprintf("in %d of %d trials", n, s.Trials), Tone: Bad}
	}
	return Entry{Text: "–"}
}

// doneEntry is the share of the leechers that got everything.
func (s *Swarm) doneEntry() Entry {
	q := s.ok()
	e := share(q.Value)
	if q.Of == 0 {
		return e
	}
	e.Note = fmt.Sprintf("%s of %s", count(q.N), count(q.Of))
	if q.N < q.Of {
		e.Tone = Bad
		if !s.quiet() {
			e.Tone = Warn
		}
	}
	return e
}

// rateEntry is the rate of an outcome with its interval; of no leechers there is
// none.
func (s *Swarm) rateEntry(o record.Outcome) Entry {
	q, there := s.Outcomes[o.String()]
	switch {
	case s.Leechers == 0, there && q.Of == 0:
		return Entry{Text: "–"}
	case !there:
		return Entry{Text: "0 %", Raw: "0"}
	}
	e := share(q.Value)
	e.Note = count(q.N) + " of " + count(q.Of)
	if q.Lo.Known() && q.Hi.Known() {
		e.Note += fmt.Sprintf(", %.0f–%.0f %%", 100*q.Lo, 100*q.Hi)
	}
	return e
}

// leechersEntry is how many leechers the valid trials had.
func (s *Swarm) leechersEntry() Entry {
	if s.Trials == 0 {
		return Entry{Text: "–"}
	}
	return whole(s.Leechers)
}

// outcomeTable is how the leechers ended, as rates.
func (r *Report) outcomeTable() Table {
	var seen []record.Outcome
	for _, o := range record.Outcomes() {
		for i := range r.Swarms {
			if _, there := r.Swarms[i].Outcomes[o.String()]; there {
				seen = append(seen, o)
				break
			}
		}
	}
	t := Table{Head: append(r.factorColumns(), Column{"system", false}, Column{"trials", true}, Column{"leechers", true})}
	for _, o := range seen {
		t.Head = append(t.Head, Column{o.String(), true})
	}
	faults := false
	for i := range r.Swarms {
		faults = faults || !r.Swarms[i].quiet()
	}
	extra := []metricColumn{{"stalls", "stalls", ""}, {"outage", "outage", ""}, {"recovery", "recovery", ""}, {"recovered", "recovered", ""}}
	var used []metricColumn
	for _, k := range extra {
		if r.measured(k.key) {
			used = append(used, k)
			t.Head = append(t.Head, Column{k.head, true})
		}
	}
	if faults {
		t.Head = append(t.Head, Column{"the faults", false}, Column{"half of them, × without faults", true}, Column{"the last, × without faults", true})
	}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		row := append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, integer(s.Trials), s.leechersEntry())
		for _, o := range seen {
			e := s.rateEntry(o)
			if s.Outcomes[o.String()].N > 0 && o != record.OK && o != record.Cancelled {
				e.Tone = Bad
			}
			row = append(row, e)
		}
		for _, k := range used {
			row = append(row, r.medianEntry(s.cell, k))
		}
		if faults {
			row = append(row, s.faultEntry())
			for j := range 2 {
				e := Entry{Text: "–"}
				if j < len(s.Against) {
					q := s.Against[j]
					e = number(q.Value, "×")
					if q.Lo.Known() && q.Hi.Known() {
						e.Note = digits(float64(q.Lo), 3) + "–" + digits(float64(q.Hi), 3)
					}
					if q.Value.Known() && !q.Shown {
						e.Text = "~ " + e.Text
					}
					if !q.Value.Known() {
						e.Note = q.Warn
					}
				}
				row = append(row, e)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// completionTable is the time to each share of the content.
func (r *Report) completionTable() Table {
	t := Table{Head: append(r.factorColumns(), Column{"system", false}, Column{"of", false})}
	for _, share := range shares {
		t.Head = append(t.Head, Column{percent(share), true})
	}
	t.Head = append(t.Head, Column{"trials", true})
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if s.Trials == 0 {
			continue
		}
		for _, of := range []struct {
			name string
			all  []Reached
		}{{"a leecher, median", s.Leecher}, {"all together", s.Together}} {
			row := append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, Entry{Text: of.name, Raw: of.name})
			for _, q := range of.all {
				row = append(row, q.entry())
			}
			t.Rows = append(t.Rows, append(row, integer(s.Trials)))
		}
	}
	return t
}

func (q Reached) entry() Entry {
	switch {
	case q.Median.Known():
		e := estimated(Estimate{Value: q.Median, Lo: q.Lo, Hi: q.Hi}, "s")
		if q.Beyond > 0 {
			e.Note = strings.TrimSpace(e.Note + fmt.Sprintf(" never in %d", q.Beyond))
			e.Tone = Warn
		}
		return e
	case q.Beyond > 0:
		return Entry{Text: "never", Raw: "Inf", Note: fmt.Sprintf("in %d of %d", q.Beyond, q.N), Tone: Bad}
	}
	return Entry{Text: "–"}
}

// nodeTable is what nodes used.
func (r *Report) nodeTable() Table {
	t := Table{Head: append(r.factorColumns(), Column{"system", false}, Column{"kind", false}, Column{"nodes", true}, Column{"received", true}, Column{"sent", true}, Column{"sent, the busiest", true}, Column{"CPU", true}, Column{"memory", true}, Column{"memory, the largest", true}, Column{"trials", true})}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		for _, k := range s.Traffic {
			t.Rows = append(t.Rows, append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, Entry{Text: k.Kind, Raw: k.Kind}, integer(k.Nodes),
				number(k.Received, "×"), number(k.Sent, "×"), number(k.SentMost, "×"), number(k.CPU, "s"), number(k.RSS, "B"), number(k.RSSMost, "B"), integer(k.Trials)))
		}
	}
	return t
}

// swarmSections are the tables that follow the figures.
func (r *Report) swarmSections() []Section {
	var all []Section
	add := func(s Section) {
		if len(s.Table.Rows) > 0 {
			all = append(all, s)
		}
	}
	add(Section{"ends", "How the leechers ended", "Shares of the leechers of valid trials; intervals are over trials, whose leechers share their fate. Stalled: no further byte for the stall limit, and none came until the trial ended; deadline: the limit since the leecher's release passed. Cancelled are those that a fault took away for good on purpose: they are in no other share. An outage is the time from a fault's beginning until its nodes are ready again or the links are as before, the longest of a trial: longer than the fault's “for” by what starting takes. Recovery is the median time from then to the next verified byte, over the unfinished leechers that the fault had killed or kept from a seeder.", r.outcomeTable()})
	add(Section{"completion", "The way to completion", "Time until a share of the content was verified, medians over trials with their interval: for the median leecher since its own release, and for all leechers together since the first release. A moment is the end of the poll that told it, so the truth lies up to the resolution before it. Systems verify whole pieces: bytes count when the piece that they are in is whole, so that what is told at once came over a longer time, and two marks may lie closer together than the link could carry what is between them. “Never” counts as longer than any time.", r.completionTable()})
	add(Section{"nodes", "What nodes used", "Received and sent are bytes on a node's access link, headers included: what a queue of the link then drops was sent, and never received. They are divided by the size of the content; CPU and memory are those of the node's processes, from the release to the last completion. Medians over trials of the median over the kind's nodes.", r.nodeTable()})
	return all
}

// swarmTexts are the tables of the terminal: times and the goal, and how leechers
// ended where not all got everything.
func (r *Report) swarmTexts() []textTable {
	if len(r.Swarms) == 0 {
		return nil
	}
	var head []string
	var right []bool
	for _, f := range r.Cells[0].Factors {
		if f.Path != "system" {
			head, right = append(head, f.Label), append(right, f.Unit != "")
		}
	}
	long := r.longLabels()
	t := textTable{head: head, right: right, drop: map[int]int{}}
	for i, text := range long {
		t.below = append(t.below, fmt.Sprintf("[%d] %s", i+1, text))
	}
	_, goalSet := r.gateShare()
	col := func(name string, isRight bool, drop int) {
		if drop > 0 {
			t.drop[len(t.head)] = drop
		}
		t.head, t.right = append(t.head, name), append(t.right, isRight)
	}
	col("system", false, 0)
	col("half done", true, 0)
	col("", true, 1)
	if r.Baseline != "" {
		col("ratio", true, 0)
		if goalSet {
			col("goal", false, 0)
		}
	}
	col("last done", true, 0)
	col("", true, 2)
	col("of line", true, 1)
	col("speed", true, 2)
	col("done", true, 0)
	col("valid", true, 0)
	for i := range r.Swarms {
		s := &r.Swarms[i]
		c := s.cell
		row := r.factorTexts(c, long)
		time := func(key string) (string, string) {
			e := s.timeEntry(r, key)
			if m, ok := c.Metrics[key]; ok {
				return e.Text, plusMinus(m, "s")
			}
			return e.Text, ""
		}
		text, pm := time("time_median")
		t.cut(len(row), mostName)
		row = append(row, s.System, text, pm)
		if r.Baseline != "" {
			goal := "–"
			if g := r.gateOf(s, gateMetrics[0]); g != nil {
				goal = map[string]string{RulePass: "met", RuleFail: "missed", RuleOpen: "?"}[g.State]
			}
			row = append(row, c.ratioEntry("time_median").Text)
			if goalSet {
				row = append(row, goal)
			}
		}
		text, pm = time("time_last")
		row = append(row, text, pm)
		at := "–"
		if m, ok := c.Metrics["line_share"]; ok {
			at = percent(float64(m.Median))
		}
		speed := "–"
		if m, ok := c.Metrics["speed_median"]; ok {
			speed = show(float64(m.Median), "B/s")
		}
		valid := fmt.Sprintf("%d/%d", c.Valid, c.Planned)
		if c.Invalid+c.Failed > 0 {
			valid = "!" + valid
		}
		q := s.ok()
		t.rows = append(t.rows, append(row, at, speed, fmt.Sprintf("%d/%d", q.N, q.Of), valid))
	}
	all := []textTable{t}
	if e := r.endTexts(long); len(e.rows) > 0 {
		all = append(all, e)
	}
	return all
}

// endTexts are the cells that have faults, or whose leechers did not all get
// everything.
func (r *Report) endTexts(long []string) textTable {
	t := textTable{drop: map[int]int{}}
	for _, f := range r.Cells[0].Factors {
		if f.Path != "system" {
			t.head, t.right = append(t.head, f.Label), append(t.right, f.Unit != "")
		}
	}
	t.drop[len(t.head)+3] = 2
	t.head, t.right = append(t.head, "system", "done", "how the others ended", "recovery"), append(t.right, false, true, false, true)
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if s.unfinished() == 0 && s.quiet() || s.Trials == 0 {
			continue
		}
		recovery := ""
		if m, ok := s.cell.Metrics["recovery"]; ok {
			recovery = show(float64(m.Median), "s")
		}
		row := r.factorTexts(s.cell, long)
		t.cut(len(row), mostName)
		t.cut(len(row)+2, 30)
		t.rows = append(t.rows, append(row, s.System, percent(float64(s.ok().Value)), s.endWords(), recovery))
	}
	return t
}

// longLabel is from which length on a factor's value is numbered in the terminal.
const longLabel = 18

// longLabels are the values of factors that are too long for a column of the
// terminal, in the order of the cells: they often differ in their last words only.
func (r *Report) longLabels() []string {
	var long []string
	for _, c := range r.Cells {
		for _, e := range r.factorEntries(&c) {
			if utf8.RuneCountInString(e.Text) > longLabel && !slices.Contains(long, e.Text) {
				long = append(long, e.Text)
			}
		}
	}
	return long
}

// factorTexts are a cell's factors in the terminal's tables.
func (r *Report) factorTexts(c *Cell, long []string) []string {
	var row []string
	for _, e := range r.factorEntries(c) {
		text := e.Text
		if i := slices.Index(long, text); i >= 0 {
			text = fmt.Sprintf("[%d]", i+1)
		}
		row = append(row, text)
	}
	return row
}

// endWords count how those ended that did not get everything.
func (s *Swarm) endWords() string {
	var words []string
	for _, o := range record.Outcomes() {
		if q, there := s.Outcomes[o.String()]; there && o != record.OK && q.N > 0 {
			words = append(words, o.String()+" ×"+count(q.N))
		}
	}
	if len(words) == 0 {
		return "–"
	}
	return strings.Join(words, ", ")
}
