package report

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/report/findings"
)

// summaryTable is the study's summary table: a column for each load test, and
// one for the study where the experiment follows it.
func (r *Report) summaryTable() Table {
	t := Table{Head: []Column{{"", false}}}
	for i := range r.Loads {
		t.Head = append(t.Head, Column{r.Loads[i].name(), true})
	}
	study := r.study2018()
	if study != nil {
		t.Head = append(t.Head, Column{"the study (2018)", true})
	}
	for _, row := range summaryRows {
		entries := []Entry{{Text: row.name}}
		any := false
		for i := range r.Loads {
			e := row.of(&r.Loads[i])
			any = any || e.Text != "–"
			entries = append(entries, e)
		}
		if study != nil {
			e := Entry{Text: "–"}
			if s := study[row.name]; s != "" {
				e.Text, any = s, true
			}
			entries = append(entries, e)
		}
		if any {
			t.Rows = append(t.Rows, entries)
		}
	}
	return t
}

type summaryRow struct {
	name string
	of   func(*LoadTest) Entry
}

var none = Entry{Text: "–"}

// summaryRows are the rows of the study's table, and what a run of ours adds.
var summaryRows = []summaryRow{
	{"files", func(l *LoadTest) Entry {
		e := whole(l.Files)
		if l.Objects.Set > 0 && l.Objects.Set != l.Files {
			e.Note = "of " + count(l.Objects.Set)
		}
		return e
	}},
	{"file bytes", func(l *LoadTest) Entry { return number(l.Bytes, "B") }},
	{"absolute bytes", func(l *LoadTest) Entry { return number(l.Absolute, "B") }},
	{"absolute bytes per file", func(l *LoadTest) Entry {
		return l.efficiencyOf(func(e *Efficiency) Entry { return number(e.PerFile, "B") })
	}},
	{"storage efficiency", func(l *LoadTest) Entry {
		return l.efficiencyOf(func(e *Efficiency) Entry {
			n := tiny(e.Value.Value)
			if e.Value.Lo.Known() && e.Value.Hi != e.Value.Lo {
				n.Note = shareWords(float64(e.Value.Lo)) + "–" + shareWords(float64(e.Value.Hi))
			}
			return n
		})
	}},
	{"of it, padding", func(l *LoadTest) Entry { return l.efficiencyOf(func(e *Efficiency) Entry { return tiny(e.Padding) }) }},
	{"of it, redundancy and metadata", func(l *LoadTest) Entry {
		return l.efficiencyOf(func(e *Efficiency) Entry { return tiny(e.Redundancy) })
	}},
	{"load line of efficiency", func(l *LoadTest) Entry { return l.efficiencyOf(func(e *Efficiency) Entry { return tiny(e.Line) }) }},
	{"redundancy, mean", func(l *LoadTest) Entry {
		return l.efficiencyOf(func(e *Efficiency) Entry {
			copies := e.Copies
			if !e.Sector.Known() {
				copies = unknown // bytes on the servers that no sectors explain are not all of pieces
			}
			n := number(copies, "×")
			if e.MeanTold.Known() && !copies.Known() {
				n = number(e.MeanTold, "×")
			} else if e.MeanTold.Known() {
				n.Note = "told: " + show(float64(e.MeanTold), "×")
			}
			return n
		})
	}},
	{"redundancy, highest", func(l *LoadTest) Entry {
		return l.efficiencyOf(func(e *Efficiency) Entry { return number(e.HighestTold, "×") })
	}},
	{"contracts", func(l *LoadTest) Entry {
		if !l.Contracts.Known() {
			return none
		}
		return whole(int64(l.Contracts))
	}},
	{"spent", func(l *LoadTest) Entry { return l.moneyOf(func(m *Money) Amount { return m.Spent }) }},
	{"of it, used", func(l *LoadTest) Entry { return l.moneyOf(func(m *Money) Amount { return m.Used }) }},
	{"used per file", func(l *LoadTest) Entry { return l.moneyOf(func(m *Money) Amount { return m.PerFile }) }},
	{"per TB·month", func(l *LoadTest) Entry { return l.moneyOf(func(m *Money) Amount { return m.PerTBMonth }) }},
	{"per TB·month, at the price", func(l *LoadTest) Entry {
		if l.Money == nil || !l.Money.PerTBMonth.In.Known() {
			return none
		}
		in := float64(l.Money.PerTBMonth.In)
		return Entry{Text: moneyWords(in, l.Money.In), Raw: Plain(in)}
	}},
	{"per TB·month, with bandwidth", func(l *LoadTest) Entry { return l.moneyOf(func(m *Money) Amount { return m.WithBandwidth }) }},
	{"wallet at the end", func(l *LoadTest) Entry { return l.moneyOf(func(m *Money) Amount { return m.Wallet }) }},
	{"duration", func(l *LoadTest) Entry {
		if !l.Seconds.Known() {
			return none
		}
		e := Entry{Text: moment(l.Seconds), Raw: Plain(float64(l.Seconds))}
		if l.Downtime > 0 {
			e.Note = "of it " + moment(l.Downtime) + " between sessions"
		}
		return e
	}},
	{"file bandwidth", func(l *LoadTest) Entry { return number(l.FileRate.Value, "B/s") }},
	{"load line of file bandwidth", func(l *LoadTest) Entry { return lineEntry(l.fileLine(), l.fileLineShare(), "B/s") }},
	{"absolute bandwidth", func(l *LoadTest) Entry {
		if l.atMost() {
			return Entry{Text: "at most " + show(float64(l.AbsoluteRate.Hi), "B/s"), Note: "at least " + show(float64(l.AbsoluteRate.Lo), "B/s") + "; the first poll after the last acceptance came too late to tell"}
		}
		return estimated(l.AbsoluteRate, "B/s")
	}},
	{"file bandwidth, within sessions", func(l *LoadTest) Entry { return number(l.FileRate.Value*l.within(), "B/s") }},
	{"absolute bandwidth, within sessions", func(l *LoadTest) Entry { return number(l.AbsoluteRate.Value*l.within(), "B/s") }},
	{"time to store an object", func(l *LoadTest) Entry { return estimated(l.Accept, "s") }},
	{"time to full redundancy", func(l *LoadTest) Entry { return estimated(l.Durable, "s") }},
	{"load line of that time", func(l *LoadTest) Entry {
		took := l.Durable.Value
		if !took.Known() {
			took = l.Accept.Value
		}
		return lineEntry(l.storeLine(), l.storeLine()/took, "s")
	}},
	{"API latency at the start", func(l *LoadTest) Entry { return latencyEntry(l.LatencyFirst, l.FirstOpen) }},
	{"API latency at the end", func(l *LoadTest) Entry { return latencyEntry(l.LatencyLast, l.LastOpen) }},
	{"fetched and the same", func(l *LoadTest) Entry {
		if l.Objects.Verified+l.Objects.Unverified == 0 {
			return none
		}
		e := whole(l.Objects.Verified)
		e.Text += " of " + count(l.Objects.Verified+l.Objects.Unverified)
		if l.Objects.Unverified > 0 {
			e.Tone = Bad
		}
		return e
	}},
	{"crashes", func(l *LoadTest) Entry { return integer(l.Crashes) }},
	{"sessions of ours", func(l *LoadTest) Entry {
		e := integer(l.Sessions)
		if l.CutOff > 0 {
			e.Text += ", " + count(int64(l.CutOff)) + " cut off"
		}
		return e
	}},
	{"ended by", func(l *LoadTest) Entry {
		switch {
		case l.going():
			return Entry{Text: "not over", Raw: "not over", Tone: Warn}
		case l.Ended == "":
			return none
		}
		return Entry{Text: l.Ended, Raw: l.Ended}
	}},
}

func (l *LoadTest) efficiencyOf(of func(*Efficiency) Entry) Entry {
	if l.Efficiency == nil {
		return none
	}
	return of(l.Efficiency)
}

func (l *LoadTest) moneyOf(of func(*Money) Amount) Entry {
	if l.Money == nil {
		return none
	}
	a := of(l.Money)
	if !a.Value.Known() {
		return none
	}
	e := Entry{Text: l.money(float64(a.Value)), Raw: a.Exact}
	if a.In.Known() {
		e.Note = moneyWords(float64(a.In), l.Money.In)
	}
	return e
}

// latencyEntry is a latency, with the share of polls that timed out.
func latencyEntry(e Estimate, open Num) Entry {
	n := estimated(e, "s")
	if open > 0 {
		n.Note = strings.TrimPrefix(n.Note+"; ", "; ") + "at least: " + percent(float64(open)) + " timed out"
	}
	return n
}

// tiny is a share that may be very small.
func tiny(v Num) Entry {
	if !v.Known() {
		return none
	}
	return Entry{Text: shareWords(float64(v)), Raw: Plain(float64(v))}
}

// summaryWords say how the table's numbers come about.
func (r *Report) summaryWords() string {
	s := "File bytes are those of the objects accepted; absolute bytes are what the storage servers got, padding and redundancy included; efficiency is what of the file bytes is on servers over the absolute bytes. Both bandwidths are of the time from the first put to the last acceptance, what lies between sessions included; within sessions it is taken out. The latency of the API is that of all calls of a poll together: medians of the first and of the last polls (one in a hundred, at least five), with their middle half; a call that timed out counts with the time that it was waited for, which is the least that it would have taken. Ranges of what polls tell are what the moments of the polls leave open."
	for i := range r.Loads {
		m := r.Loads[i].Money
		if m == nil {
			continue
		}
		s += " Spent is the system's own total of what contracts cost, those that ended included; used is that without what lies unspent in them, whether the system names a purpose of it or not"
		if m.AtLeast {
			s += " (at least: contracts left the account, and the system does not tell all that they had used)"
		}
		if m.Whole {
			s += "; both count from the system's own beginning, since nothing was stored in it before."
		} else {
			s += "; both count from the first poll, since something was stored before."
		}
		if m.Months.Known() {
			if m.PerTBMonth.Value.Known() {
				s += " Per TB·month is the money for fees and storage alone, as in the study (no bandwidth, nor accounts with hosts or maintenance, which the row below has, too)"
			} else {
				s += " What storing costs for each TB·month is not told: the system charges it within another purpose; with bandwidth it is all that was used"
			}
			s += fmt.Sprintf(", divided by 10^12 file bytes and by %s months (the period of the renter's allowance; 84 days where it is not known); unspent money is assumed to come back.", digits(float64(m.Months), 3))
		}
		if m.In != "" {
			s += fmt.Sprintf(" 1 %s is taken for %s, as the experiment states.", m.Currency, m.Price)
		}
		break
	}
	for i := range r.Loads {
		if e := r.Loads[i].Efficiency; e != nil && e.Padding.Known() {
			s += " The load line of efficiency is what pieces of whole sectors and the wanted redundancy leave at most: file bytes / (objects, each rounded up to whole sectors, × n/k)"
			if !e.Sector.Known() {
				s += "; the size of a sector is not known, so nothing is rounded up"
			} else {
				s += "; a sector is taken for " + show(float64(e.Sector), "B")
			}
			s += "."
			break
		}
	}
	return s
}

func (r *Report) spendingTable() Table {
	t := Table{Head: []Column{{"load test", false}, {"kind", false}, {"amount", true}, {"of all", true}}}
	stated := false
	for i := range r.Loads {
		if m := r.Loads[i].Money; m != nil {
			stated = stated || m.In != ""
		}
	}
	if stated {
		t.Head = append(t.Head, Column{"at the stated price", true})
	}
	for i := range r.Loads {
		l := &r.Loads[i]
		if l.Money == nil {
			continue
		}
		for _, k := range l.Money.Kinds {
			row := []Entry{{Text: l.name(), Raw: l.name()}, {Text: k.Kind, Raw: k.Kind}, {Text: l.money(float64(k.Amount.Value)), Raw: k.Amount.Exact}, tiny(k.Share)}
			if stated {
				e := none
				if k.Amount.In.Known() {
					e = Entry{Text: moneyWords(float64(k.Amount.In), l.Money.In), Raw: Plain(float64(k.Amount.In))}
				}
				row = append(row, e)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func (r *Report) breakTable() Table {
	t := Table{Head: []Column{{"load test", false}, {"law", false}, {"amount", true}, {"after", true}, {"and before", true}, {"why", false}}}
	laws := map[string]string{findings.LawSum: "spending is the sum of its parts", findings.LawWealth: "wallet and contracts are constant", findings.LawLeft: "(left the account with contracts)", findings.LawWaiting: "(waits in ended contracts)"}
	for i := range r.Loads {
		l := &r.Loads[i]
		for _, b := range l.Breaks {
			law, amount := laws[b.Law], Entry{Text: moneyWords(float64(b.Amount.Value), l.currency), Raw: b.Amount.Exact, Tone: Warn}
			if b.Law == findings.LawCounter {
				law = b.Name + " only grows"
				if !b.Amount.Value.Known() {
					amount = number(-b.Fell, readingUnit(b.Name))
				}
			}
			t.Rows = append(t.Rows, []Entry{{Text: l.name(), Raw: l.name()}, {Text: law, Raw: law}, amount, {Text: moment(b.From), Raw: Plain(float64(b.From))}, {Text: moment(b.To), Raw: Plain(float64(b.To))}, {Text: b.Maybe, Raw: b.Maybe}})
		}
	}
	return t
}

func (r *Report) objectTable() Table {
	t := Table{Head: []Column{{"load test", false}, {"in the set", true}, {"accepted", true}, {"durable", true}, {"not durable in time", true}, {"failed", true}, {"refused", true}, {"unreadable", true}, {"missing", true}, {"adopted", true}, {"retried", true}, {"under way", true}, {"attempts", true}}}
	for i := range r.Loads {
		l := &r.Loads[i]
		if l.info.plan.Upload == nil {
			continue
		}
		o := l.Objects
		row := []Entry{{Text: l.name(), Raw: l.name()}, whole(o.Set), whole(o.Accepted), whole(o.Durable), whole(o.NotDurable + o.Late), whole(o.Failed), whole(o.Refused), whole(o.Unreadable), whole(o.Missing), whole(o.Adopted), whole(o.Retried), whole(o.Putting + o.Waiting), whole(o.Attempts)}
		if o.Set == 0 {
			row[1] = none
		}
		if !l.settles() {
			row[3], row[4] = none, none
		}
		for k, n := range map[int]int64{4: o.NotDurable + o.Late, 5: o.Failed, 6: o.Refused, 7: o.Unreadable, 8: o.Missing} {
			if n > 0 {
				row[k].Tone = Warn
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (r *Report) growthTable() Table {
	t := Table{Head: []Column{{"load test", false}, {"what", false}, {"points", true}, {"first quarter", true}, {"last quarter", true}, {"change", true}, {"per hour", true}}}
	for i := range r.Loads {
		l := &r.Loads[i]
		for _, g := range l.Growth {
			x := g.growing()
			change := Entry{Text: x.ChangeWords(), Raw: Plain(float64(g.Change.Value))}
			if !g.Shown {
				change.Note = "~ no change shown"
			}
			t.Rows = append(t.Rows, []Entry{{Text: l.name(), Raw: l.name()}, {Text: g.What, Raw: g.What}, integer(g.N),
				estimated(g.First, g.Unit), estimated(g.Last, g.Unit), change, estimated(g.Slope, g.Unit)})
		}
	}
	return t
}

func (r *Report) leftOutTable() Table {
	t := Table{Head: []Column{{"figure", false}, {"why", false}}}
	for _, l := range r.left {
		t.Rows = append(t.Rows, []Entry{{Text: l.Title, Raw: l.Title}, {Text: capital(l.Why) + ".", Raw: l.Why}})
	}
	return t
}

// loadSections are the tables that follow the figures.
func (r *Report) loadSections() []Section {
	var all []Section
	add := func(s Section) {
		if len(s.Table.Rows) > 0 {
			all = append(all, s)
		}
	}
	words := r.summaryWords()
	if r.study2018() != nil {
		words += " The last column is what the author of the Sia load test published in 2018, of another network, machine and decade."
	}
	add(Section{"summary", "Summary", words, r.summaryTable()})
	add(Section{"left-out", "Figures left out", "What would be drawn of a longer test, or of a system that tells more, and why it is not drawn here.", r.leftOutTable()})
	add(Section{"objects", "Objects", "What became of the objects of the data set. Durable ones are accepted, too; adopted ones were found stored after a session that ended while they were under way.", r.objectTable()})
	add(Section{"money", "Spending", "Exact amounts by the system's own account, at the last poll that told them.", r.spendingTable()})
	add(Section{"laws", "What must hold", fmt.Sprintf("Accounts and counters of the system that did what they must not. What moved between neighbouring polls is allowed for, and a change counts when it held for %d polls and %s.", heldPolls, moment(heldSeconds)), r.breakTable()})
	add(Section{"growth", "Growth", "Medians of the first and the last quarter of each series, the change from one to the other and the slope (Theil–Sen), with 95 % intervals over medians of 24 blocks.", r.growthTable()})
	return all
}

// loadTexts are the tables of the terminal.
func (r *Report) loadTexts() []textTable {
	if len(r.Loads) == 0 {
		return nil
	}
	full := r.summaryTable()
	var all []textTable
	study := len(full.Head) > 1+len(r.Loads)
	// As many load tests side by side as a terminal is wide.
	const side = 3
	for from := 0; from < len(r.Loads); from += side {
		to := min(from+side, len(r.Loads))
		t := textTable{head: []string{"load test"}, right: []bool{false}}
		for i := from; i < to; i++ {
			t.cut(len(t.head), 22)
			t.head, t.right = append(t.head, full.Head[1+i].Name), append(t.right, true)
		}
		if study {
			t.head, t.right = append(t.head, "the study (2018)"), append(t.right, true)
		}
		for _, row := range full.Rows {
			line := []string{row[0].Text}
			for i := from; i < to; i++ {
				line = append(line, row[1+i].Text)
			}
			if study {
				line = append(line, row[len(row)-1].Text)
			}
			t.rows = append(t.rows, line)
		}
		all = append(all, t)
	}
	return all
}
