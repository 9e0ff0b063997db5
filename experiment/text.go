package experiment

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	textWidth = 100 // columns of a terminal that everyone has
	textCells = 24  // cells shown before the table is cut
)

// WriteText writes the plan for people, at most 100 columns wide.
func (p *Plan) WriteText(w io.Writer) error {
	t := &textPage{}
	e := &p.Experiment
	title := e.Title
	if title == "" {
		title = e.Scenario
	}
	t.wrap("", title)
	if e.Question != "" {
		t.wrap("", e.Question)
	}
	t.line("")
	t.wrap("systems", p.systemsText())
	t.wrap("link", p.linkText())
	if e.Sync != nil {
		t.wrap("chain", p.chainText())
	} else {
		t.wrap("data", p.dataText())
	}
	switch {
	case e.Disseminate != nil:
		t.wrap("swarm", p.scenarioText())
		t.wrap("machine", p.swarmText())
	case e.Sync != nil:
		t.wrap(e.Scenario, p.scenarioText())
		t.wrap("machine", p.syncMachineText())
	default:
		t.wrap(e.Scenario, p.scenarioText())
	}
	if u := e.Upload; u != nil && u.Need.text() != "" {
		t.wrap("need", u.Need.text())
	}
	t.wrap("limits", p.limitsText())
	t.wrap("trials", fmt.Sprintf("%d = %s × (%s + %s), blocks shuffled by seed %d",
		p.Estimate.Trials, plural(len(p.Cells), "cell"), plural(p.Warmup, "warm-up"), plural(p.Blocks, "repetition"), e.Seed))
	if u := e.Repetitions.Until; u != nil {
		t.wrap("until", fmt.Sprintf("%s is known within ±%s in every cell, after at least %s", u.Metric, u.Within, plural(e.Repetitions.Min, "repetition")))
	}
	t.wrap("estimate", p.EstimateText())
	t.wrap("", "("+p.Estimate.How+")")
	for _, c := range e.Where {
		t.wrap("where", c)
	}
	for _, rule := range e.Gates {
		t.wrap("gate", rule)
	}
	if n := len(p.Skipped); n > 0 {
		names := make([]string, n)
		for i, s := range p.Skipped {
			names[i] = s.ID
		}
		t.wrap("skipped", fmt.Sprintf("%s: in each, one operation is expected to take longer than overhead.longest (%s): %s", plural(n, "cell"), p.Experiment.Overhead.Longest, few(names, 12)))
	}
	t.wrap("plan", p.Hash)
	t.line("")
	t.cells(p)
	for _, warning := range p.Warnings() {
		t.line("")
		t.wrap("warning", warning)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// Unapplied says of each attached system what of the experiment does not apply to it.
func (p *Plan) Unapplied() []string {
	e := p.Experiment
	var texts []string
	for _, s := range e.Systems {
		if s.Mode != "attach" || e.Sync != nil || e.Collect != nil {
			continue
		}
		link := anySet(e.Link.Rate) || anySet(e.Link.Delay) || anySet(e.Link.Jitter) || anySet(e.Link.Loss) || anySet(e.Link.Queue)
		data := anySet(e.Data.Size) && !slices.Contains(e.Allow, "write")
		switch {
		case link && data:
			texts = append(texts, fmt.Sprintf("%s is attached: it is reached over the network there is and serves objects of its own; link and data apply to systems that are started", s.Name))
		case link:
			texts = append(texts, fmt.Sprintf("%s is attached: it is reached over the network there is; link applies to systems that are started", s.Name))
		case data:
			texts = append(texts, fmt.Sprintf("%s is attached: it serves objects of its own; data applies to systems that are started", s.Name))
		}
	}
	return texts
}

// anySet reports whether any level differs from the zero value.
func anySet[T comparable](a Axis[T]) bool {
	var zero T
	return slices.ContainsFunc(a, func(v T) bool { return v != zero })
}

// Warnings are what a reader should think about before the run.
func (p *Plan) Warnings() []string {
	var late, starved []string
	deadline, stall := p.Experiment.Limits.Deadline, p.Experiment.Limits.Stall
	for _, c := range p.Cells {
		if c.Estimate.Operation > deadline.Seconds() {
			late = append(late, c.ID)
		}
		if c.starves(stall) {
			starved = append(starved, c.ID)
		}
	}
	var warnings []string
	if len(late) > 0 {
		warnings = append(warnings, fmt.Sprintf("in %s (%s) an operation is expected to take longer than its deadline of %s: most would end as `deadline`, however healthy the server is; raise limits.deadline",
			plural(len(late), "cell"), few(late, 6), deadline))
	}
	if len(starved) > 0 {
		warnings = append(warnings, fmt.Sprintf("in %s (%s) the link needs longer than the stall limit of %s for one request of each client: some clients may get nothing for so long and end as `starved`; raise limits.stall or link.rate, or lower retrieve.concurrency",
			plural(len(starved), "cell"), few(starved, 6), stall))
	}
	if text := p.lateFaults(); text != "" {
		warnings = append(warnings, text)
	}
	if text := p.oneByOne(); text != "" {
		warnings = append(warnings, text)
	}
	if text := p.uneven(); text != "" {
		warnings = append(warnings, text)
	}
	warnings = append(warnings, p.Unapplied()...)
	warnings = append(warnings, p.gateWarnings()...)
	warnings = append(warnings, p.syncWarnings()...)
	return append(warnings, p.impatient()...)
}

// starvingRate is the share of a link, in bytes per second, below which TCP can leave a
// connection without a byte for long: four segments in its least retransmission timeout.
const starvingRate = 4 * 1460 / 0.2

// starves reports whether the clients of a cell share its link so thinly that some may
// get nothing for the stall limit, and one request of each takes longer than that.
func (c *Cell) starves(stall Duration) bool {
	if c.Retrieve == nil || c.Retrieve.Concurrency < 2 || c.Link.Rate == 0 {
		return false
	}
	fair := float64(c.Link.Rate) / 8 / float64(c.Retrieve.Concurrency)
	return fair < starvingRate && float64(requestBytes(c.Data, c.Retrieve))/fair > stall.Seconds()
}

func few(items []string, most int) string {
	if len(items) <= most {
		return strings.Join(items, ", ")
	}
	return strings.Join(items[:most], ", ") + ", …"
}

func (p *Plan) systemsText() string {
	var parts []string
	for _, s := range p.Experiment.Systems {
		var about []string
		if s.Name != s.Use {
			about = append(about, s.Use)
		}
		if s.Mode == "attach" {
			about = append(about, "attached")
		}
		if s.Baseline {
			about = append(about, "baseline")
		}
		keys := make([]string, 0, len(s.Override))
		for k := range s.Override {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			about = append(about, k+" "+s.Override[k])
		}
		text := s.Name
		if len(about) > 0 {
			text += " (" + strings.Join(about, ", ") + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// levels are the values of an axis, or its one value.
func levels[T fmt.Stringer](a Axis[T]) string {
	texts := make([]string, len(a))
	for i, v := range a {
		texts[i] = v.String()
	}
	return strings.Join(texts, " / ")
}

// levelsOr is levels with a word for the value that is zero.
func levelsOr[T interface {
	comparable
	fmt.Stringer
}](a Axis[T], zero string) string {
	texts := make([]string, len(a))
	for i, v := range a {
		if texts[i] = zero; v != *new(T) {
			texts[i] = v.String()
		}
	}
	return strings.Join(texts, " / ")
}

func (p *Plan) linkText() string {
	l := p.Experiment.Link
	shaped := slices.ContainsFunc(p.Cells, func(c Cell) bool { return c.Link.Shaped() })
	if !shaped {
		return "not shaped: the machine's own loopback"
	}
	parts := []string{levels(l.Rate), levels(l.Delay) + " one way"}
	if len(l.Jitter) > 1 || l.Jitter.One() != 0 {
		parts = append(parts, "jitter "+levels(l.Jitter))
	}
	if len(l.Loss) > 1 || l.Loss.One() != 0 {
		parts = append(parts, "loss "+levels(l.Loss))
	}
	if len(l.Queue) > 1 || l.Queue.One() != 0 {
		parts = append(parts, "queue "+levelsOr(l.Queue, "auto"))
	}
	parts = append(parts, l.Congestion)
	if l.IPv6 {
		parts = append(parts, "IPv6")
	}
	return strings.Join(parts, ", ") + "; measured before use, tolerance " + l.Tolerance.String()
}

func (p *Plan) scenarioText() string {
	switch e := p.Experiment; {
	case e.Overhead != nil:
		return e.Overhead.text()
	case e.Upload != nil:
		return e.Upload.text()
	case e.Collect != nil:
		return e.Collect.text()
	case e.Disseminate != nil:
		return e.Disseminate.text(e.Baseline != "none")
	case e.Sync != nil:
		return p.syncText()
	}
	r := p.Experiment.Retrieve
	if r == nil {
		return ""
	}
	var parts []string
	if r.Arrivals != nil {
		parts = append(parts, "open loop, "+r.Arrivals.Process+" arrivals")
		if len(r.Arrivals.Rate) > 0 {
			parts[0] += " at " + levels(r.Arrivals.Rate)
		}
		if r.Arrivals.To > 0 {
			parts[0] += " to " + r.Arrivals.To.String()
		}
	} else {
		parts = append(parts, "concurrency "+numbers(r.Concurrency))
	}
	parts = append(parts,
		"range "+levels(r.Range)+", "+strings.Join(r.Order, " / "),
		"connections "+strings.Join(r.Connections, " / "),
		"receive "+strings.Join(r.Receive, " / "))
	var ends []string
	if r.PerWorker > 0 {
		ends = append(ends, plural(r.PerWorker, "request")+" per worker")
	}
	if r.Requests > 0 {
		ends = append(ends, plural(int(r.Requests), "request"))
	}
	if r.Bytes > 0 {
		ends = append(ends, r.Bytes.String())
	}
	if r.Duration > 0 {
		ends = append(ends, r.Duration.String())
	}
	if len(ends) > 0 {
		parts = append(parts, "a trial ends after "+strings.Join(ends, " or "))
	}
	return strings.Join(parts, "; ")
}

func numbers(a Axis[int]) string {
	texts := make([]string, len(a))
	for i, n := range a {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, " / ")
}

func (o *Overhead) text() string {
	parts := []string{strings.Join(o.Operation, " / "), "connections " + strings.Join(o.Connections, " / "), "concurrency " + numbers(o.Concurrency)}
	if slices.Contains(o.Operation, "range") {
		parts = append(parts, "ranges of an object of "+o.RangeOf.String())
	}
	if slices.Contains(o.Operation, "fill") {
		parts = append(parts, plural(o.Objects, "object")+" added in each trial of fill")
	}
	parts = append(parts, fmt.Sprintf("a trial is at most %s, none begun after %s; no cell whose operation takes more than %s", plural(o.Count, "operation"), o.Time, o.Longest))
	return strings.Join(parts, "; ")
}

func (p *Plan) limitsText() string {
	l, x := p.Experiment.Limits, p.Experiment.Exit
	text := fmt.Sprintf("operation %s, stall %s, start %s", l.Deadline, l.Stall, l.Start)
	if ends := x.text(p.Experiment.Scenario == "upload"); ends != "" {
		text += ", " + ends
	}
	return text
}

// textPage collects lines of at most textWidth columns.
type textPage struct{ strings.Builder }

func (t *textPage) line(s string) {
	t.WriteString(strings.TrimRight(s, " ") + "\n")
}

// wrap writes text behind a label, broken at spaces.
func (t *textPage) wrap(label, text string) {
	const indent = 10
	head := ""
	if label != "" {
		head = fmt.Sprintf("%-*s", indent, label)
	}
	pad := strings.Repeat(" ", len(head))
	if label == "" && strings.HasPrefix(text, "(") {
		head, pad = strings.Repeat(" ", indent), strings.Repeat(" ", indent)
	}
	line := head
	empty := true
	for _, word := range strings.Fields(text) {
		switch {
		case empty:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > textWidth:
			t.line(line)
			line = pad + word
		default:
			line += " " + word
		}
		empty = false
	}
	for utf8.RuneCountInString(line) > textWidth {
		r := []rune(line)
		t.line(string(r[:textWidth]))
		line = pad + string(r[textWidth:])
	}
	t.line(line)
}

// cells writes the table of cells, cut in its middle when it is long.
func (t *textPage) cells(p *Plan) {
	header := []string{"cell"}
	for _, f := range p.Cells[0].Factors {
		header = append(header, f.Label)
	}
	header = append(header, "one trial", contentOf(&p.Experiment)+" bytes", "limited by")
	rows := [][]string{header}
	long := p.longValues()
	cut := -1
	for i, c := range p.Cells {
		if len(p.Cells) > textCells && i >= textCells*3/4 && i < len(p.Cells)-textCells/4 {
			if cut < 0 {
				cut = len(rows)
			}
			continue
		}
		row := []string{c.ID}
		for _, f := range c.Factors {
			value := f.Value
			if i := slices.Index(long, value); i >= 0 {
				value = fmt.Sprintf("[%d]", i+1)
			}
			row = append(row, value)
		}
		took, moved := c.Estimate.Bound.text(c.Estimate.Seconds, c.Estimate.Bytes)
		rows = append(rows, append(row, took, moved, c.Estimate.Limit))
	}
	widths := make([]int, len(header))
	for _, row := range rows {
		for k, s := range row {
			widths[k] = max(widths[k], utf8.RuneCountInString(s))
		}
	}
	for i, row := range rows {
		if i == cut {
			t.line(fmt.Sprintf("… %d more (all of them with --json)", len(p.Cells)-len(rows)+1))
		}
		var b strings.Builder
		for k, s := range row {
			b.WriteString(s + strings.Repeat(" ", widths[k]-utf8.RuneCountInString(s)+2))
		}
		line := []rune(strings.TrimRight(b.String(), " "))
		if len(line) > textWidth {
			line = append(line[:textWidth-1], '…')
		}
		t.line(string(line))
	}
	for i, value := range long {
		t.wrap("", fmt.Sprintf("[%d] %s", i+1, value))
	}
}

// longValue is from which length on a factor's value is numbered in the table of
// cells: beside it the columns behind would not fit.
const longValue = 24

// longValues are those, in the order of the cells.
func (p *Plan) longValues() []string {
	var long []string
	for _, c := range p.Cells {
		for _, f := range c.Factors {
			if utf8.RuneCountInString(f.Value) > longValue && !slices.Contains(long, f.Value) {
				long = append(long, f.Value)
			}
		}
	}
	return long
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// RoughDuration is a length of time with two or three digits.
func RoughDuration(seconds float64) string {
	switch {
	case math.IsInf(seconds, 1):
		return "for ever"
	case seconds > 1e9:
		return grouped(seconds/(365.25*24*3600)) + " years"
	case seconds > 0 && seconds < 0.0095:
		return fmt.Sprintf("%.1g ms", 1000*seconds)
	case seconds > 0 && seconds < 0.0995:
		return fmt.Sprintf("%.0f ms", 1000*seconds)
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 100:
		return fmt.Sprintf("%.0f s", seconds)
	}
	d := time.Duration(seconds * float64(time.Second)).Round(time.Minute)
	if d < time.Hour {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	if d < 48*time.Hour {
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}

// RoughBytes is a number of bytes with two or three digits, in decimal units.
func RoughBytes(n float64) string {
	for i, u := range decimalUnits {
		of := n / float64(u.size)
		switch {
		case i == 0 && of >= 999.5: // the largest
			return grouped(of) + " " + u.name
		case of >= 0.9995: // 999.9 MB is not 1e+03 MB
			return fmt.Sprintf("%.3g %s", of, u.name)
		}
	}
	return fmt.Sprintf("%.0f B", n)
}

// grouped is a number without decimals, with a comma at each thousand.
func grouped(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
