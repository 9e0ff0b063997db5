package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// joined puts parts of a name together.
func joined(words []string) string {
	var said []string
	for _, w := range words {
		if w != "" {
			said = append(said, w)
		}
	}
	return strings.Join(said, ", ")
}

// syncTable is every cell with what the verdict rests on.
func (r *Report) syncTable() Table {
	t := Table{Head: append(r.factorColumns(), Column{"system", false}, Column{"valid", true}, Column{"served", true}, Column{"serves after", true}, Column{"× default", true})}
	rest := []metricColumn{{"first_block", "first block", ""}, {"net_time", "net", ""}, {"index_lag", "index behind", ""}, {"block_rate", "blocks/s", ""}, {"byte_rate", "bytes/s", ""}, {"line_share", "of the load line", ""},
		{"wire_bytes", "on the link", ""}, {"overhead", "link bytes per chain byte", "×"}, {"disk_written", "written", ""}, {"node_rss_peak", "memory", ""}}
	var used []metricColumn
	for _, k := range rest {
		if r.measured(k.key) {
			used = append(used, k)
			t.Head = append(t.Head, Column{k.head, true})
		}
	}
	t.Head = append(t.Head, Column{"bound by", false})
	for i := range r.Syncs {
		s := &r.Syncs[i]
		c := s.cell
		row := append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System}, c.validEntry(), s.servedEntry(), s.timeEntry(r), s.ratioEntry())
		for _, k := range used {
			e := r.medianEntry(c, k)
			if k.key == "first_block" || k.key == "net_time" { // the mean that the time to serve has
				e = number(s.timeOf(k.key).Median, "s")
			}
			row = append(row, e)
		}
		t.Rows = append(t.Rows, append(row, Entry{Text: s.boundWords(), Raw: s.Bound}))
	}
	return t
}

func (s *Synced) boundWords() string {
	switch s.Bound {
	case boundLink:
		return "the link"
	case boundCompute:
		return "validation"
	case boundMachine:
		return "the machine"
	case boundCPU:
		return "about one CPU"
	case boundDisk:
		return "the disk"
	case boundWaits:
		return "waits"
	}
	return "–"
}

// servedEntry is in how many valid trials the node came to serve.
func (s *Synced) servedEntry() Entry {
	if s.Trials == 0 {
		return Entry{Text: "–"}
	}
	n := s.Outcomes[record.OK.String()]
	e := Entry{Text: fmt.Sprintf("%d/%d", n, s.Trials), Raw: fmt.Sprint(n)}
	if n < s.Trials {
		e.Tone = Bad
		if !s.quiet() || s.troubled() {
			e.Tone = Warn
		}
	}
	return e
}

// timeEntry is the time until it serves, or that it never did.
func (s *Synced) timeEntry(r *Report) Entry {
	n := s.unfinished()
	if s.time.Median.Known() {
		e := number(s.time.Median, "s")
		e.Note = plusMinus(s.time, "s")
		if n > 0 {
			e.Note, e.Tone = joined([]string{e.Note, fmt.Sprintf("never in %d", n)}), Warn
		}
		return e
	}
	if n > 0 {
		return Entry{Text: "never", Raw: "Inf", Note: fmt.Sprintf("in %d of %d trials", n, s.Trials), Tone: Bad}
	}
	return Entry{Text: "–"}
}

// ratioEntry is the time's ratio to that of the default cell.
func (s *Synced) ratioEntry() Entry {
	if s.Default {
		return Entry{Text: "default", Tone: Neutral}
	}
	return s.cell.ratioEntry("sync_time")
}

// syncSections are the tables that follow the figures.
func (r *Report) syncSections() []Section {
	var all []Section
	add := func(s Section) {
		if len(s.Table.Rows) > 0 {
			all = append(all, s)
		}
	}
	add(Section{"effects", "Effects", "Ratios of the time to serve. Of a level: to the default, a geometric mean over all combinations of the other factors. Of a pair: by what the ratio of the one is multiplied when the other is not at its default; below 1, the two gain more together than each promises alone. Intervals have 95 % each; p is corrected for all effects of the table (Holm), and “~” stands where it or the interval does not exclude 1. Trials of one block are compared with each other.", r.effectsTable()})
	add(Section{"design", "Design", "What the effects rest on. σ is the standard deviation of a trial around the model, in percent of its time; that between blocks is what trials of one repetition have in common, which cancels in all ratios.", r.designTable()})
	add(Section{"ends", "How the trials ended", "Stalled: no further block for the stall limit, with no fault to come or to be undone, and none came until the trial ended; deadline: the limit passed.", r.syncEndTable()})
	add(Section{"peers", "Peers", "What peers of one kind delivered in all valid trials of a cell: peers that are honest, silent (they answer nothing) or strangers (they have another chain), by the rate of their link towards the node; rates that were drawn are put together by the powers of two between them. Means per peer and trial.", r.peersTable()})
	add(Section{"walk", "The way of the search", "The races of the search: one value of a knob against that where it stood, all else being equal, in trials of the same repetitions, until one was faster beyond the interval or the repetitions were used up. The ratio is that of the time with what was tried to the time without.", r.walkTable()})
	add(r.syncStudySection())
	add(Section{"constants", "Constants of the systems", "Numbers in the code of a system that decide about these results and cannot be set. No run of this program varies them: to change them is to build the system anew.", r.constantsTable()})
	return all
}

func (r *Report) effectsTable() Table {
	t := Table{Head: []Column{{"system", false}, {"conditions", false}, {"effect", false}, {"ratio", true}, {"low", true}, {"high", true}, {"p (Holm)", true}, {"shown", false}, {"mixed with", false}}}
	for i := range r.Tunings {
		tu := &r.Tunings[i]
		where := tu.Where
		if tu.All {
			where = "all"
		}
		for j := range tu.Effects {
			e := &tu.Effects[j]
			word := Entry{Text: "~", Raw: "no"}
			switch {
			case !e.Value.Known() || !e.Lo.Known():
				word = Entry{Text: "not known", Raw: "", Note: e.Warn}
			case e.Survivors:
				word = Entry{Text: "~", Raw: "no", Note: e.Warn, Tone: Warn}
			case e.Shown && e.interaction():
				word = Entry{Text: "yes", Raw: "yes"}
			case e.Shown && e.Value < 1:
				word = Entry{Text: "faster", Raw: "yes", Tone: Good}
			case e.Shown:
				word = Entry{Text: "slower", Raw: "yes", Tone: Bad}
			case e.small():
				word.Note = "within " + percent(EffectFloor)
			}
			t.Rows = append(t.Rows, []Entry{{Text: tu.System, Raw: tu.System}, {Text: where, Raw: where}, {Text: e.name(), Raw: e.name()}, number(e.Value, "×"), number(e.Lo, "×"), number(e.Hi, "×"), chance(e.PHolm), word,
				{Text: strings.Join(e.Aliases, ", ")}})
		}
	}
	return t.withoutEmpty()
}

// withoutEmpty leaves out the columns in which nothing stands.
func (t Table) withoutEmpty() Table {
	var out Table
	var kept []int
	for i := range t.Head {
		if slices.ContainsFunc(t.Rows, func(row []Entry) bool { return row[i].Text != "" }) {
			kept, out.Head = append(kept, i), append(out.Head, t.Head[i])
		}
	}
	for _, row := range t.Rows {
		var cells []Entry
		for _, i := range kept {
			cells = append(cells, row[i])
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

func (r *Report) designTable() Table {
	t := Table{Head: []Column{{"system", false}, {"conditions", false}, {"design", false}, {"resolution", true}, {"combinations", true}, {"without a trial", true}, {"trials", true}, {"never served", true}, {"σ", true}, {"between blocks", true}, {"degrees of freedom", true}, {"two at a time say all, p", true}}}
	design, resolution := r.design()
	for i := range r.Tunings {
		tu := &r.Tunings[i]
		if len(tu.Factors) == 0 {
			continue
		}
		where := tu.Where
		if tu.All {
			where = "all"
		}
		sigma := Entry{Text: "–"}
		if tu.Sigma.Known() {
			sigma = share(tu.Sigma)
		}
		blocks := Entry{Text: "–"}
		if tu.BlockSD.Known() {
			blocks = share(tu.BlockSD)
		}
		t.Rows = append(t.Rows, []Entry{{Text: tu.System, Raw: tu.System}, {Text: where, Raw: where}, {Text: design}, {Text: resolution}, integer(tu.Cells), integer(tu.Absent), integer(tu.Trials), integer(tu.Unfinished), sigma, blocks, integer(tu.Freedom), chance(tu.LackOfFit)})
	}
	return t.withoutEmpty()
}

// design is what the plan says of its combinations, and the resolution of a
// fraction, in Roman numerals as is the custom.
func (r *Report) design() (name, resolution string) {
	if r.searched() {
		return "search", "–"
	}
	var plan experiment.Plan
	if json.Unmarshal(r.Plan, &plan) != nil || plan.Experiment.Sync == nil {
		return "full", "–"
	}
	f, ok := plan.Fractions()
	if !ok {
		return "full", "–"
	}
	roman := []string{"–", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"}
	return plan.Experiment.Sync.Design, roman[min(f.Resolution, len(roman)-1)]
}

func (r *Report) syncEndTable() Table {
	var seen []record.Outcome
	ended := false
	for _, o := range record.Outcomes() {
		for i := range r.Syncs {
			if r.Syncs[i].Outcomes[o.String()] > 0 {
				seen, ended = append(seen, o), ended || o != record.OK
				break
			}
		}
	}
	if !ended {
		return Table{}
	}
	t := Table{Head: append(r.factorColumns(), Column{"system", false}, Column{"trials", true})}
	for _, o := range seen {
		t.Head = append(t.Head, Column{o.String(), true})
	}
	t.Head = append(t.Head, Column{"why", false})
	for i := range r.Syncs {
		s := &r.Syncs[i]
		row := append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, integer(s.Trials))
		for _, o := range seen {
			e := integer(s.Outcomes[o.String()])
			if o != record.OK && s.Outcomes[o.String()] > 0 {
				e.Tone = Bad
			}
			row = append(row, e)
		}
		why := ""
		if s.unfinished() > 0 {
			why = s.endWords()
		}
		t.Rows = append(t.Rows, append(row, Entry{Text: why, Raw: why}))
	}
	return t
}

func (r *Report) peersTable() Table {
	t := Table{Head: append(r.factorColumns(), Column{"system", false}, Column{"kind", false}, Column{"link", true}, Column{"peers", true}, Column{"useful", true}, Column{"share of the blocks", true}, Column{"busy", true}, Column{"timeouts", true}, Column{"failed", true})}
	several := false
	for i := range r.Syncs {
		s := &r.Syncs[i]
		several = several || s.cell.plan.Sync.Peers > 1
		for _, p := range s.Peers {
			useful := integer(p.Useful)
			if p.Peers > 0 {
				useful.Note = percent(float64(p.Useful) / float64(p.Peers))
			}
			t.Rows = append(t.Rows, append(r.factorEntries(s.cell), Entry{Text: s.System, Raw: s.System}, Entry{Text: p.Kind, Raw: p.Kind}, p.rateEntry(), integer(p.Peers), useful,
				share(p.Share), number(p.Busy, "s"), number(p.Timeouts, "1"), number(p.Failed, "1")))
		}
	}
	if !several {
		return Table{}
	}
	return t
}

// rateEntry is the rate of the links of peers, or the range of their rates.
func (p *PeerUsed) rateEntry() Entry {
	if p.RateTo > p.Rate {
		return Entry{Text: show(float64(p.Rate), "bit/s") + " – " + show(float64(p.RateTo), "bit/s"), Raw: Plain(float64(p.Rate)) + "–" + Plain(float64(p.RateTo))}
	}
	return rateEntry(p.Rate)
}

// rateEntry is the rate of a link; 0 has none.
func rateEntry(v Num) Entry {
	if v == 0 {
		return Entry{Text: "unlimited", Raw: "0"}
	}
	return number(v, "bit/s")
}

func (r *Report) constantsTable() Table {
	t := Table{Head: []Column{{"system", false}, {"constant", false}, {"value", false}, {"why", false}}}
	for _, sys := range r.Systems {
		for _, c := range r.constants[sys.Name] {
			t.Rows = append(t.Rows, []Entry{{Text: sys.Name, Raw: sys.Name}, {Text: c.Name, Raw: c.Name}, {Text: c.Value, Raw: c.Value}, {Text: c.What, Raw: c.What}})
		}
	}
	return t
}

// readConstants takes what the run recorded of its systems' code.
func readConstants(meta map[string]string) map[string][]system.Constant {
	var all map[string][]system.Constant
	_ = json.Unmarshal([]byte(meta[constantsKey]), &all) // an older run has none
	return all
}

// constantsKey is where the engine keeps them.
const constantsKey = "constants"
