package report

import (
	"fmt"
	"strconv"
	"strings"
)

// overheadLens looks at what one object costs before its bytes count: the fit of
// each operation, the memory of the processes, and what many objects do.
func overheadLens() lens {
	return lens{
		headline:  func(planView) string { return "duration_p50" },
		steady:    "duration_p50",
		relieve:   "Shape the link, or run on a machine with more CPUs.",
		operation: [2]string{"operation", "operations"},
		axis:      []string{"data.size", "overhead.concurrency", "link.delay", "link.rate"},
		compared:  []string{"duration_p50", "first_byte_p50", "ops_rate", "system_cpu_per_op", "system_rss_peak"},
		columns: []metricColumn{{"duration_p50", "duration, median", ""}, {ratioColumn, "ratio", ""}, {"first_byte_p50", "first byte, median", ""},
			{"wire_bytes", "on the link", ""}, {"expansion", "expansion", "×"}, {"put_p50", "put", ""}, {"get_p50", "get", ""}, {"stat_p50", "stat", ""}},
		resources: []metricColumn{{"system_cpu_per_op", "system CPU", ""}, {"system_rss_peak", "system memory, peak", ""}, {"generator_cpu_per_op", "generator CPU", ""},
			{"disk_per_byte", "disk per file byte", "×"}, {"entries_per_object", "entries per object", ""}, {"inodes_per_object", "inodes per object", ""}, {"others_busy", "CPU of others", ""}},
		text: func(*Report) []textMetric {
			return []textMetric{{"duration_p50", "duration", 0}, {ratioColumn, "ratio", 0}, {"first_byte_p50", "first byte", 2}, {"put_p50", "put", 1}, {"get_p50", "get", 1}, {"stat_p50", "stat", 1}}
		},
		work: func(r *Report, in *input) {
			r.fit(in)
			r.account()
			r.footprint()
			r.trends()
		},
		rules:      []rule{modelFails, inlined, unequal, memoryGrows, slowsDown},
		verdict:    (*Report).costClause,
		answers:    (*Report).costs,
		draw:       (*Report).drawOverhead,
		sections:   (*Report).overheadSections,
		textTables: (*Report).overheadTables,
	}
}

// main are the round trips of the smallest objects that have the constant part
// of all; unknown when the round trip did not vary.
func (f *Fit) main() Estimate {
	if len(f.Rounds) == 0 {
		return noEstimate
	}
	if f.ownA && len(f.Rounds) > 1 {
		return f.Rounds[1].R
	}
	return f.Rounds[0].R
}

// before says what an operation costs before its bytes count: "9.1 round trips
// and 2.1 ms". What its interval leaves open is not told as a number.
func (f *Fit) before() string {
	a := show(float64(f.A.Value), "s")
	switch {
	case !f.A.Lo.Known() || !f.A.Hi.Known() || f.A.Hi <= 0:
		a = "an undetermined time"
	case f.A.Lo <= 0:
		a = "up to " + show(float64(f.A.Hi), "s")
	}
	r := f.main()
	switch {
	case !r.Value.Known():
		return a
	case !counted(r):
		return "an undetermined number of round trips and " + a
	}
	return roundWords(float64(r.Value)) + " and " + a
}

// counted reports whether an interval is narrow enough to speak of so many
// round trips: to a half, or to a fifth of them.
func counted(r Estimate) bool {
	return r.Lo.Known() && r.Hi.Known() && max(r.Hi-r.Value, r.Value-r.Lo) <= max(0.5, r.Value/5)
}

// roundWords counts round trips: "9.1 round trips".
func roundWords(v float64) string {
	if n := decimals(v); n != "1.0" {
		return n + " round trips"
	}
	return "1.0 round trip"
}

// decimals prints a count of round trips with one decimal.
func decimals(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	if s == "-0.0" {
		return "0.0"
	}
	return s
}

// costClause is what the verdict says of the first operation that was fitted.
func (r *Report) costClause() string {
	var first *Fit
	var parts []string
	for i := range r.Fits {
		f := &r.Fits[i]
		if f.model == nil || first != nil && (f.Operation != first.Operation || f.Connections != first.Connections) {
			continue
		}
		if first == nil {
			first = f
		}
		parts = append(parts, f.System+" "+f.before())
	}
	if first == nil {
		return ""
	}
	what := article(first.Operation)
	if r.nameOf(first) != first.Operation {
		what += " over connections that are " + map[string]string{"keep": "kept", "fresh": "fresh"}[first.Connections]
	}
	return "before its bytes count, " + what + " takes " + list(parts)
}

func article(operation string) string {
	if strings.ContainsAny(operation[:1], "aeiou") {
		return "an " + operation
	}
	return "a " + operation
}

// fewCosts is how many operations of a system the answer tells.
const fewCosts = 4

// costs say what each system's operations cost.
func (r *Report) costs() []Answer {
	out := []Answer{}
	for _, s := range r.Systems {
		var parts []string
		n := 0
		for i := range r.Fits {
			f := &r.Fits[i]
			if f.System != s.Name || f.model == nil {
				continue
			}
			if n++; n <= fewCosts {
				parts = append(parts, r.nameOf(f)+": "+f.words())
			}
		}
		if n > fewCosts {
			parts = append(parts, fmt.Sprintf("and %d more", n-fewCosts))
		}
		if parts != nil {
			out = append(out, Answer{s.Name, strings.Join(parts, "; ") + "."})
		}
	}
	if len(out) == 0 {
		return r.comparisons()
	}
	return out
}

// nameOf names a fit among those of its system.
func (r *Report) nameOf(f *Fit) string {
	for i := range r.Fits {
		if r.Fits[i].Connections != f.Connections {
			return f.Operation + " (" + f.Connections + ")"
		}
	}
	return f.Operation
}

func (f *Fit) words() string {
	s := f.before()
	if f.Rate.Lo.Known() && f.Rate.Hi.Known() {
		s += ", then " + show(float64(f.Rate.Value), "B/s")
	}
	if a := f.Against; a != nil && a.Ratio.Lo.Known() {
		s += fmt.Sprintf(", %s what %s takes for the same absolute bytes", show(float64(a.Ratio.Value), "×"), a.System)
	}
	return s
}

// modelFails says where one line does not describe an operation.
func modelFails(r *Report) []Finding {
	bad := Finding{Rule: "model", Tone: Warn, Title: "The cost model does not hold",
		Text: "What is left of these times after A + R·RTT + B·size is more than what repeated trials differ by: their A, R and B describe no trial well. The figure of residuals shows where it fails."}
	grows := Finding{Rule: "segments", Tone: Neutral, Title: "Round trips grow with the size",
		Text: "One number of round trips does not fit all sizes: each further segment, window or block of a large object waits for an answer of its own."}
	none := Finding{Rule: "no-fit", Tone: Neutral, Title: "Not everything could be fitted", Text: "There is too little to tell what these operations cost."}
	untested := Finding{Rule: "model-untested", Tone: Neutral, Title: "Whether the cost model holds is not known",
		Text: "There are too few trials of a cell, or too few cells, to tell a model that misses from trials that differ. Repeat more, or add sizes and round trips."}
	for i := range r.Fits {
		f := &r.Fits[i]
		name := f.System + ", " + r.nameOf(f)
		switch {
		case f.model == nil:
			none.Evidence = append(none.Evidence, name+": "+f.Why)
		case !f.tested && !f.Holds:
			untested.Evidence = append(untested.Evidence, name+": "+f.Why)
		case !f.Holds:
			bad.Evidence = append(bad.Evidence, name+": "+f.Why)
		}
		if len(f.Rounds) > 1 {
			var steps []string
			for _, s := range f.Rounds {
				steps = append(steps, roundWords(float64(s.R.Value))+" from "+sizeWords(float64(s.From)))
			}
			grows.Evidence = append(grows.Evidence, name+": "+strings.Join(steps, ", "))
		}
	}
	return withEvidence(bad, untested, grows, none)
}

// withEvidence keeps the findings that have some.
func withEvidence(all ...Finding) []Finding {
	var out []Finding
	for _, f := range all {
		if f.Evidence != nil {
			out = append(out, f)
		}
	}
	return out
}

// inlined: a time that contains no upload must not pass for a fast one.
func inlined(r *Report) []Finding {
	f := Finding{Rule: "inline", Tone: Neutral, Title: "Some objects never cross the link",
		Text: "These operations ended before an answer could have come, and the link carried nothing to speak of. Such sizes are left out of the fits where larger ones cross."}
	for i := range r.Fits {
		if t := &r.Fits[i]; t.Inline != nil {
			f.Evidence = append(f.Evidence, t.System+", "+r.nameOf(t)+": "+t.Inline.words())
		}
	}
	return withEvidence(f)
}

// unequal compares with the baseline for the same absolute bytes.
func unequal(r *Report) []Finding {
	f := Finding{Rule: "same-bytes", Tone: Neutral, Title: "Against " + r.Baseline + " for the same absolute bytes",
		Text: "The time of an operation divided by what the baseline's fit gives for as many bytes as the system sends to its storage nodes: what remains is not the price of redundancy. Geometric mean over cells."}
	for i := range r.Fits {
		t := &r.Fits[i]
		a := t.Against
		if a == nil {
			continue
		}
		what := ""
		if a.Operation != t.Operation {
			what = " (its " + a.Operation + ")"
		}
		s := fmt.Sprintf("%s, %s: %s%s", t.System, r.nameOf(t), showRange(a.Ratio.Value, a.Ratio.Lo, a.Ratio.Hi, "×"), what)
		if base := r.fitOf(task{a.System, a.Operation, t.Connections}); base != nil && base.tested && !base.Holds {
			s += ", by a fit of the baseline that does not hold"
		}
		if a.Least.Where != a.Most.Where {
			s += fmt.Sprintf("; from %s (%s) to %s (%s)", show(float64(a.Least.Value), "×"), a.Least.Where, show(float64(a.Most.Value), "×"), a.Most.Where)
		}
		f.Evidence = append(f.Evidence, s)
	}
	return withEvidence(f)
}

// memoryGrows says whether a process keeps more of a larger object.
func memoryGrows(r *Report) []Finding {
	yes := Finding{Rule: "memory-grows", Tone: Warn, Title: "Memory grows with the file",
		Text: "The peak of these processes during one upload rises with the size of the object: the slope over trials (Theil–Sen), with its interval."}
	no := Finding{Rule: "memory-flat", Tone: Good, Title: "Memory does not grow with the file",
		Text: "The peak of these processes during one upload does not rise by more than a tenth of each further file byte."}
	for _, m := range r.Memory {
		s := fmt.Sprintf("%s, %s: %s of memory for each file byte, up to %s; peak %s", m.System, m.Process,
			showRange(m.Growth.Value, m.Growth.Lo, m.Growth.Hi, "B"), sizeWords(float64(m.OneSize)), show(float64(m.One.Value), "B"))
		switch m.Grows {
		case "yes":
			yes.Evidence = append(yes.Evidence, s)
		case "no":
			no.Evidence = append(no.Evidence, s)
		}
	}
	return withEvidence(yes, no)
}

// slowsDown says whether an operation takes longer the more objects there are.
func slowsDown(r *Report) []Finding {
	up := Finding{Rule: "objects-slope", Tone: Warn, Title: "It slows down with the number of objects",
		Text: "The time of an operation rises with the number of objects that the servers hold: the slope over trials (Theil–Sen), with its interval."}
	flat := Finding{Rule: "objects-flat", Tone: Neutral, Title: "No slope with the number of objects is shown",
		Text: "The interval of the slope over trials (Theil–Sen) has 0 in it, or lies below it: within what was stored, the servers do not slow down by more than its upper end."}
	for _, t := range r.Trends {
		if !t.Slope.Lo.Known() {
			continue
		}
		s := fmt.Sprintf("%s, %s: %s per 1,000 objects, from %s to %s objects; median %s", t.System, t.Operation, slopeWords(t.Slope), count(int64(t.From)), count(int64(t.To)), show(float64(t.Median), "s"))
		if t.Where != "" {
			s = fmt.Sprintf("%s (%s)", s, t.Where)
		}
		if t.Shown && t.Slope.Value > 0 {
			up.Evidence = append(up.Evidence, s)
		} else {
			flat.Evidence = append(flat.Evidence, s)
		}
	}
	return withEvidence(up, flat)
}

func slopeWords(e Estimate) string { return showRange(e.Value, e.Lo, e.Hi, "s") }

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
			estimated(f.A, "s"), f.roundsEntry(), estimated(f.Rate, "B/s")}
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
	r := f.main()
	if !r.Value.Known() {
		return Entry{Text: "–"}
	}
	e := Entry{Text: decimals(float64(r.Value)), Raw: plain(float64(r.Value))}
	if r.Lo.Known() && r.Hi.Known() {
		e.Note = strconv.FormatFloat(float64(r.Lo), 'f', 2, 64) + "–" + strconv.FormatFloat(float64(r.Hi), 'f', 2, 64)
	}
	for i, s := range f.Rounds {
		switch {
		case i == 0 && f.ownA:
			e.Note += ", " + decimals(float64(s.R.Value)) + " up to " + sizeWords(float64(s.To))
		case s.R != r:
			e.Note += ", " + decimals(float64(s.R.Value)) + " from " + sizeWords(float64(s.From))
		}
	}
	return e
}

func (f *Fit) holdsEntry() Entry {
	switch {
	case f.model == nil:
		return Entry{Text: "no fit", Raw: "no fit", Note: f.Why, Tone: Neutral}
	case !f.Holds && !f.tested:
		return Entry{Text: "not known", Raw: "not known", Note: f.Why, Tone: Neutral}
	case !f.Holds:
		return Entry{Text: "no", Raw: "no", Tone: Warn} // the findings say why
	}
	return Entry{Text: "yes", Raw: "yes", Note: f.Why}
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
	t := Table{Head: []Column{{"system", false}, {"process", false}, {"of them", true}, {"at rest, RSS", true}, {"at rest, PSS", true}, {"peak, one upload", true}, {"peak, several", true},
		{"per file byte", true}, {"grows", false}}}
	for _, m := range r.Memory {
		one, several := estimated(m.One, "B"), estimated(m.Several, "B")
		if m.OneSize.Known() {
			one.Note = "of " + sizeWords(float64(m.OneSize))
		}
		if m.AtOnce > 0 {
			several.Note = fmt.Sprintf("%d of %s", m.AtOnce, sizeWords(float64(m.AtSize)))
		}
		grows := m.Grows
		if grows == "" {
			grows = "not shown"
		}
		t.Rows = append(t.Rows, []Entry{{Text: m.System, Raw: m.System}, {Text: m.Process, Raw: m.Process}, integer(m.Processes), number(m.RestRSS.Value, "B"), number(m.RestPSS.Value, "B"),
			one, several, estimated(m.Growth, "B"), {Text: grows, Raw: m.Grows}})
	}
	return t
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
		t.Rows = append(t.Rows, []Entry{{Text: s.System, Raw: s.System}, {Text: s.Where}, {Text: s.Operation, Raw: s.Operation}, whole(int64(s.From)), whole(int64(s.To)),
			number(s.Median, "s"), estimated(s.Slope, "s"), {Text: word, Raw: word}, integer(s.N)})
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
	add(Section{"memory", "Memory", "Each process of its kind: resident set (RSS) and proportional set (PSS, shared pages divided among those who share them) just before a load, and the highest resident set during one.", r.memoryTable()})
	add(Section{"objects", "Objects per server", "How the time of an operation changes with the number of objects that the servers hold.", r.trendTable()})
	add(r.studySection())
	return all
}

// overheadTables are the tables of the terminal: fits and memory.
func (r *Report) overheadTables() []textTable {
	if len(r.Fits) == 0 {
		return nil
	}
	var fits textTable
	fits.head = []string{"system", "operation", "connections", "A", "", "R", "", "1/B", ""}
	fits.right = []bool{false, false, false, true, false, true, false, true, false}
	if r.Baseline != "" {
		fits.head, fits.right = append(fits.head, "× "+clip(r.Baseline, 10)), append(fits.right, true)
	}
	fits.head, fits.right = append(fits.head, "holds"), append(fits.right, false)
	fits.drop = map[int]int{8: 2, 4: 1} // the intervals of 1/B and A
	for i := range r.Fits {
		f := &r.Fits[i]
		row := []string{clip(f.System, 16), f.Operation, f.Connections, number(f.A.Value, "s").Text, wider(f.A), f.roundsText(), f.roundsWider(), number(f.Rate.Value, "B/s").Text, wider(f.Rate)}
		if r.Baseline != "" {
			row = append(row, r.againstEntry(f).Text)
		}
		fits.rows = append(fits.rows, append(row, f.holdsEntry().Text))
	}
	all := []textTable{fits}
	if len(r.Memory) > 0 {
		m := textTable{head: []string{"system", "process", "at rest", "one upload", "several", "per file byte", "grows"}, right: []bool{false, false, true, true, true, true, false}}
		for _, x := range r.Memory {
			m.rows = append(m.rows, []string{clip(x.System, 16), clip(x.Process, 16), number(x.RestRSS.Value, "B").Text, number(x.One.Value, "B").Text, number(x.Several.Value, "B").Text,
				number(x.Growth.Value, "B").Text, strings.TrimSpace(x.Grows)})
		}
		all = append(all, m)
	}
	return all
}

// wider is the wider half of an interval as a share of the estimate.
func wider(e Estimate) string {
	if !e.Value.Known() || !e.Lo.Known() || !e.Hi.Known() || e.Value == 0 {
		return ""
	}
	v := float64(e.Value)
	half := max(float64(e.Hi)-v, v-float64(e.Lo))
	if v < 0 || half > v {
		return "" // no share worth telling: the page has the interval
	}
	return "± " + percent(half/v)
}

func (f *Fit) roundsText() string {
	if len(f.Rounds) == 0 {
		return "–"
	}
	s := decimals(float64(f.main().Value))
	if n := len(f.Rounds); n > 1 && f.Rounds[n-1].R != f.main() {
		s += " to " + decimals(float64(f.Rounds[n-1].R.Value))
	}
	return s
}

// roundsWider is the wider half of the interval of a single number of round trips.
func (f *Fit) roundsWider() string {
	if len(f.Rounds) != 1 || !f.main().Lo.Known() || !f.main().Hi.Known() {
		return ""
	}
	r := f.main()
	return "± " + strconv.FormatFloat(float64(max(r.Hi-r.Value, r.Value-r.Lo)), 'f', 2, 64)
}
