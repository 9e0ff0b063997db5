package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// cellTable is every cell with what the verdict rests on.
func (r *Report) cellTable() Table {
	if r.lens.table != nil {
		return r.lens.table(r)
	}
	t := Table{Head: append(r.factorColumns(), Column{"system", false})}
	t.Head = append(t.Head, Column{"valid", true}, Column{"success", true})
	var used []metricColumn
	for _, h := range r.lens.columns {
		if h.key == ratioColumn && r.Baseline != "" || r.measured(h.key) {
			used = append(used, h)
			t.Head = append(t.Head, Column{h.head, true})
		}
	}
	for _, c := range r.cells() {
		row := append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System}, c.validEntry(), c.successEntry())
		for _, k := range used {
			if k.key == ratioColumn {
				row = append(row, c.ratioEntry(r.headline))
			} else {
				row = append(row, r.medianEntry(c, k))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ratioColumn stands for the headline's ratio among the keys of metrics.
const ratioColumn = "ratio"

func (r *Report) medianEntry(c *Cell, k metricColumn) Entry {
	m, _ := r.metric(k.key)
	if k.unit != "" {
		m.Unit = k.unit
	}
	s, ok := c.Metrics[k.key]
	if !ok {
		return Entry{Text: "–"}
	}
	e := number(s.Median, m.Unit)
	e.Note = plusMinus(s, m.Unit)
	if ofMachine(k.key) && s.Median > 1 {
		e.Text = show(1, m.Unit) // the raw value is as measured, see [words.PartOf]
	}
	return e
}

// ofMachine reports whether a metric is a share of all CPUs of the machine.
func ofMachine(key string) bool {
	return slices.Contains([]string{"box_cpu", "harness_cpu", "emulator_cpu", "others_busy"}, key)
}

func (c *Cell) validEntry() Entry {
	e := Entry{Text: fmt.Sprintf("%d/%d", c.Valid, c.Planned), Raw: strconv.Itoa(c.Valid)}
	if c.Invalid+c.Failed > 0 {
		e.Tone = Warn
	}
	if c.Skipped > 0 {
		e.Note = plural(int64(c.Skipped), "skipped", "skipped")
	}
	return e
}

func (c *Cell) successEntry() Entry {
	e := share(c.Success.Value)
	if c.Success.OK < c.Success.Of {
		e.Tone = Bad
	}
	if n := c.late(); n > 0 {
		e.Note = "+ " + count(n) + " past the deadline or starved"
	}
	return e
}

func (c *Cell) ratioEntry(key string) Entry {
	if c.Baseline {
		return Entry{Text: "baseline", Tone: Neutral}
	}
	q, ok := c.Ratios[key]
	if !ok || !q.Value.Known() {
		return Entry{Text: "–"}
	}
	e := Entry{Text: show(float64(q.Value), "×"), Raw: strconv.FormatFloat(float64(q.Value), 'g', -1, 64)}
	if q.Lo.Known() && q.Hi.Known() {
		e.Note = digits(float64(q.Lo), 3) + "–" + digits(float64(q.Hi), 3)
	}
	switch {
	case !q.Shown:
		e.Text, e.Tone = "~ "+e.Text, Neutral
	case q.Better > 0:
		e.Tone = Good
	case q.Better < 0:
		e.Tone = Bad
	}
	return e
}

// measured reports whether any cell has the metric.
func (r *Report) measured(key string) bool {
	for _, c := range r.Cells {
		if _, ok := c.Metrics[key]; ok {
			return true
		}
	}
	return false
}

func (r *Report) validityTable() Table {
	t := Table{Head: []Column{{"trial", true}, {"system", false}, {"cell", false}, {"block", true}, {"why", false}}}
	for _, v := range r.Invalid {
		why := strings.Join(v.Reasons, ", ")
		if v.Error != "" {
			why += ": " + v.Error
		}
		t.Rows = append(t.Rows, []Entry{{Text: strconv.FormatInt(v.Trial, 10)}, {Text: v.System}, {Text: v.Where}, blockEntry(v.Block), {Text: why, Raw: why}})
	}
	return t
}

func (r *Report) validityWords() string {
	run := r.Run
	s := fmt.Sprintf("%s of %s valid", plural(int64(run.Valid), "trial", "trials"), count(int64(run.Done)))
	if run.Invalid+run.Failed > 0 {
		s += fmt.Sprintf("; %d invalid and %d failed trials are listed here, drawn hollow where they have numbers, and are in no statistic", run.Invalid, run.Failed)
	} else if run.Done > 0 {
		s += ": generator, machine, links and servers were as they should be"
	}
	if run.Warmup > 0 {
		s += fmt.Sprintf(". %s before them %s recorded and not counted", plural(int64(run.Warmup), "warm-up trial", "warm-up trials"), map[bool]string{true: "was", false: "were"}[run.Warmup == 1])
	}
	if run.Skipped > 0 {
		s += fmt.Sprintf(". %s skipped on purpose, see the findings", plural(int64(run.Skipped), "trial was", "trials were"))
	}
	return s + "."
}

// blockEntry is a block's number, from 1; files have it from 0.
func blockEntry(block int) Entry {
	if block < 0 {
		return Entry{Text: record.BlockName(block), Raw: record.BlockName(block)}
	}
	return integer(block + 1)
}

func (r *Report) linkTable() Table {
	t := Table{Head: []Column{{"link", false}, {"cells", false}, {"emulator", false}, {"checks", true}, {"RTT wanted", true}, {"measured, farthest", true}, {"p99", true},
		{"rate wanted", true}, {"measured, farthest", true}, {"loss", true}, {"lateness p99", true}, {"off", true}}}
	for _, l := range r.Links {
		rtt, rate := number(l.RTT, "s"), number(l.Rate, "bit/s")
		rtt.Note, rate.Note = show(float64(l.RTTWorst), "s"), show(float64(l.RateWorst), "bit/s")
		want := Entry{Text: "unlimited"}
		if l.WantRate > 0 {
			want = number(l.WantRate, "bit/s")
		}
		off := integer(l.Off)
		if l.Off > 0 {
			off.Tone = Warn
		}
		loss := Entry{Text: "–"}
		if l.WantLoss > 0 || l.Loss.Known() && l.Loss > 0 {
			loss = share(l.Loss)
			loss.Note = "of " + percent(float64(l.WantLoss))
		}
		t.Rows = append(t.Rows, []Entry{{Text: l.From + " → " + l.To}, {Text: l.Where}, {Text: l.Emulator, Note: l.Congestion}, integer(l.Checks),
			number(l.WantRTT, "s"), rtt, number(l.RTTP99, "s"), want, rate, loss, number(l.Lateness, "s"), off})
	}
	return t
}

// resourceTable is what server and generator used, per cell.
func (r *Report) resourceTable() Table {
	t := Table{Head: append(r.factorColumns(), Column{"system", false})}
	var used []metricColumn
	for _, k := range r.lens.resources {
		if r.measured(k.key) {
			used = append(used, k)
			t.Head = append(t.Head, Column{k.head, true})
		}
	}
	if used == nil {
		return Table{}
	}
	for _, c := range r.cells() {
		row := append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System})
		for _, k := range used {
			row = append(row, r.medianEntry(c, k))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
