package report

import (
	"fmt"
)

// fitTable is what every operation costs.
func (r *Report) fitTable() Table {
	t := Table{Head: []Column{{"system", false}, {"operation", false}, {"connections", false}, {"A", true}, {"R, round trips", true}, {"1/B", true}}}
	lined := false
	for i := range r.Fits {
		lined = lined || r.Fits[i].LineShare.Value.Known()
	}
	if lined {
		t.Head = append(t.Head, Column{"of the load line", true})
	}
	if r.Baseline != "" {
		t.Head = append(t.Head, Column{"× " + r.Baseline, true})
	}
	t.Head = append(t.Head, Column{"residuals", true}, Column{"trials", true}, Column{"holds", false})
	for i := range r.Fits {
		f := &r.Fits[i]
		row := []Entry{{Text: f.System, Raw: f.System}, {Text: f.Operation, Raw: f.Operation}, {Text: f.Connections, Raw: f.Connections},
			f.constantEntry(), f.roundsEntry(), estimated(f.Rate, "B/s")}
		if lined {
			row = append(row, f.lineEntry())
		}
		if r.Baseline != "" {
			row = append(row, r.againstEntry(f))
		}
		row = append(row, share(f.Spread), integer(f.Points), f.holdsEntry())
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (r *Report) againstEntry(f *Fit) Entry {
	switch {
	case f.System == r.Baseline:
		return Entry{Text: "baseline", Tone: Neutral}
	case f.Inline.whole():
		return Entry{Text: "–", Note: "nothing crossed the link"}
	case f.Against == nil:
		return Entry{Text: "–"}
	}
	e := estimated(f.Against.Ratio, "×")
	if f.Against.Operation != f.Operation {
		e.Note += " of its " + f.Against.Operation
	}
	return e
}

func (f *Fit) lineEntry() Entry {
	e := share(f.LineShare.Value)
	if f.LineShare.Lo.Known() && f.LineShare.Hi.Known() {
		e.Note = fmt.Sprintf("%.0f–%.0f", 100*f.LineShare.Lo, 100*f.LineShare.Hi)
	}
	return e
}

func (f *Fit) roundsEntry() Entry {
	r := f.Rounds
	if !r.Value.Known() {
		return Entry{Text: "–"}
	}
	e := Entry{Text: decimals(float64(r.Value)), Raw: Plain(float64(r.Value))}
	if r.Lo.Known() && r.Hi.Known() {
		e.Note = decimals(float64(r.Lo)) + "–" + decimals(float64(r.Hi))
	}
	return e
}

// untold is the misfit of a cell from which on a test that rejects nothing shows
// nothing either: the trials are too noisy to tell.
const untold = 0.25

func (f *Fit) holdsEntry() Entry {
	switch {
	case f.model == nil:
		return Entry{Text: "no fit", Raw: "no fit", Note: f.Why, Tone: Neutral}
	case !f.Holds && !f.tested:
		return Entry{Text: "not known", Raw: "not known", Note: f.Why, Tone: Neutral}
	case f.near():
		return Entry{Text: "no", Raw: "no", Note: "worst cell off by " + percent(float64(f.Misfit)), Tone: Neutral}
	case !f.Holds:
		return Entry{Text: "no", Raw: "no", Note: "worst cell off by " + percent(float64(f.Misfit)), Tone: Warn} // the findings say why
	}
	if float64(f.Misfit) > untold {
		return Entry{Text: "not known", Raw: "not known", Note: "trials of a cell differ so much that a cell off by " + percent(float64(f.Misfit)) + " passes", Tone: Neutral}
	}
	return Entry{Text: "yes", Raw: "yes", Note: f.Why}
}

// constantEntry is A. No time is below 0: an interval that reaches there says nothing.
func (f *Fit) constantEntry() Entry {
	if f.A.Lo < 0 {
		return Entry{Text: "n too small"}
	}
	return estimated(f.A, "s")
}

// estimated is a number with its interval beside it, in one unit.
func estimated(e Estimate, unit string) Entry {
	n := number(e.Value, unit)
	if e.Value.Known() && e.Lo.Known() && e.Hi.Known() {
		f := conversion(float64(e.Value), unit)
		n.Note = digits(float64(e.Lo)*f, 3) + "–" + digits(float64(e.Hi)*f, 3)
	}
	return n
}

func (r *Report) memoryTable() Table {
	t := Table{Head: []Column{{"system", false}, {"process", false}, {"of them", true}, {"at rest, RSS", true}, {"at rest, PSS", true}, {"between loads, RSS", true}, {"peak, one upload", true}, {"peak, several", true},
		{"per file byte", true}, {"grows", false}}}
	for i := range r.Memory {
		m := &r.Memory[i]
		one, several := estimated(m.One, "B"), estimated(m.Several, "B")
		if m.OneSize.Known() {
			one.Note = m.Operation + " of " + sizeWords(float64(m.OneSize))
		}
		if m.AtOnce > 0 {
			several.Note = fmt.Sprintf("%d of %s", m.AtOnce, sizeWords(float64(m.AtSize)))
		}
		grows := m.Grows
		if grows == "" {
			grows = "not shown"
		}
		t.Rows = append(t.Rows, []Entry{{Text: m.System, Raw: m.System}, {Text: m.Process, Raw: m.Process}, integer(m.Processes), number(m.RestRSS.Value, "B"), number(m.RestPSS.Value, "B"), number(m.Between.Value, "B"),
			one, several, m.growthEntry(), {Text: grows, Raw: m.Grows, Note: m.Why}})
	}
	return t
}

// growthEntry is a slope, or what bounds it.
func (m *Memory) growthEntry() Entry {
	e := estimated(m.Growth, "B")
	switch {
	case m.AtLeast:
		e.Text = "≥ " + e.Text
	case !m.Growth.Value.Known() && m.AtMost <= 1: // more than every byte is no bound worth telling
		e = number(m.AtMost, "B")
		e.Text = "≤ " + e.Text
	}
	return e
}

func (r *Report) trendTable() Table {
	t := Table{Head: []Column{{"system", false}, {"cells", false}, {"operation", false}, {"objects, from", true}, {"to", true}, {"median", true}, {"per 1,000 objects", true}, {"slope", false}, {"trials", true}}}
	for _, s := range r.Trends {
		word := "~ not shown"
		switch {
		case !s.Slope.Lo.Known():
			word = "too few trials"
		case s.Shown && s.Slope.Value > 0:
			word = "slower"
		case s.Shown:
			word = "faster"
		}
		trials := integer(s.N)
		if s.Cut > 0 {
			trials.Note, trials.Tone = fmt.Sprintf("+ %d cut off", s.Cut), Warn
		}
		t.Rows = append(t.Rows, []Entry{{Text: s.System, Raw: s.System}, {Text: s.Where}, {Text: s.Operation, Raw: s.Operation}, objects(s.From), objects(s.To),
			number(s.Median, "s"), estimated(s.Slope, "s"), {Text: word, Raw: word}, trials})
	}
	return t
}

// overheadSections are the tables that follow the figures.
func (r *Report) overheadSections() []Section {
	var all []Section
	add := func(s Section) {
		if len(s.Table.Rows) > 0 {
			all = append(all, s)
		}
	}
	add(Section{"cost", "What an operation costs", "Time = A + R·RTT + B·size, fitted to the valid trials with one operation under way: A is the time that neither distance nor size explains, R the sequential round trips, 1/B the rate of the bytes.", r.fitTable()})
	add(Section{"memory", "Memory", "Each process of its kind: resident set (RSS) and proportional set (PSS, shared pages divided among those who share them) once it was ready and before anything was stored; between loads, with what earlier ones left behind; and the highest resident set during uploads, which is never less than what was still held before them.", r.memoryTable()})
	add(Section{"objects", "Objects per server", "How the time of an operation changes with the number of objects that the servers hold.", r.trendTable()})
	add(r.studySection())
	return all
}

// objects is a number of them, if it is known.
func objects(n Num) Entry {
	if !n.Known() {
		return Entry{Text: "–"}
	}
	return whole(int64(n))
}
