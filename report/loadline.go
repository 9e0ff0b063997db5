package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/validity"
)

// limit is the load line at one place of the axis: the throughput that the
// verified link could carry there.
type limit struct {
	panel, where string
	system       string // whose it is, when the systems' lines differ
	x, y         float64
}

// sameLine is how far the systems' load lines may lie apart to be drawn as one:
// they differ by the link's own noise, or because systems connect differently.
const sameLine = 1.05

// loadLines are the medians over the valid trials of a group: the scenario
// computed each trial's line, the metric key, from its link as verified just
// before. One line stands for all systems unless theirs differ.
func (r *Report) loadLines(key string) []limit {
	each := r.limitsBy(key, func(c *Cell) string { return c.System })
	type place struct {
		panel string
		x     float64
	}
	least, most := map[place]float64{}, map[place]float64{}
	differ := false
	for _, l := range each {
		p := place{l.panel, l.x}
		if least[p] == 0 || l.y < least[p] {
			least[p] = l.y
		}
		most[p] = max(most[p], l.y)
		differ = differ || most[p] > least[p]*sameLine
	}
	if differ {
		return each
	}
	return r.limitsBy(key, func(*Cell) string { return "" })
}

// limitsBy are the load lines of the cells taken together by system, from left
// to right.
func (r *Report) limitsBy(key string, system func(*Cell) string) []limit {
	values := map[limit][]float64{}
	var order []limit
	for _, t := range r.Trials {
		y, ok := t.Metrics[key]
		if !t.Valid() || !ok || !(y > 0) {
			continue
		}
		p := limit{panel: r.shape.panel(t.Info), where: r.shape.where(t.Info), system: system(t.Info), x: r.shape.at(t.Info)}
		if values[p] == nil {
			order = append(order, p)
		}
		values[p] = append(values[p], y)
	}
	slices.SortStableFunc(order, func(a, b limit) int { return cmp.Compare(a.x, b.x) })
	for i, p := range order {
		order[i].y = middle(values[p])
	}
	return order
}

// explainLoadLine is the paragraph that says what the line means here.
func (r *Report) explainLoadLine() string {
	if r.Run.Valid == 0 {
		return ""
	}
	if s := r.lens.loadLine(r); s != "" {
		return s
	}
	return "There is none here. " + r.whyNoLine()
}

// whyNoLine says why nothing that this run measured has a physical limit that is
// known.
func (r *Report) whyNoLine() string {
	switch {
	case r.imported != nil:
		return "These numbers were imported, and what the links between the machines could carry was not measured with them."
	case r.finding("link-not-emulated"):
		return "The links were not emulated, so that nothing but the machine itself limited what was measured."
	case len(r.Links) == 0:
		return "No link was measured: those of systems that were attached to are not ours, and neither their rate nor their round trip is known."
	}
	return "The links had neither a rate nor a delay of their own: what they carried was limited by the machine, which is no limit of a link."
}

// between is where a metric lies in this run: over the medians of the cells.
func (r *Report) between(key string) (lo, hi Num) {
	lo, hi = unknown, unknown
	for _, c := range r.Cells {
		if m, ok := c.Metrics[key]; ok {
			lo, hi = least(lo, float64(m.Median)), highest(hi, float64(m.Median))
		}
	}
	return lo, hi
}

// atLine says where a line lies: "at 12 MB/s" or "between 3 and 12 MB/s"; nothing
// where there is none.
func (r *Report) atLine(key string) string {
	m, _ := r.metric(key)
	lo, hi := r.between(key)
	switch {
	case !lo.Known():
		return ""
	case hi <= lo*1.02:
		return "at " + show(float64(lo+hi)/2, m.Unit)
	}
	return fmt.Sprintf("between %s and %s, depending on the cell", show(float64(lo), m.Unit), show(float64(hi), m.Unit))
}

// retrieveLineWords is the paragraph on the load lines of requests.
func (r *Report) retrieveLineWords() string {
	var s string
	if at := r.atLine("load_line"); at != "" {
		s = "The load line is the physical limit of a cell: the file bytes per second that the link, as measured before each trial, can carry with the round trips that the requests need. Here it lies " + at + ". " +
			r.closest("load_line_share", "The closest approach is") +
			"A system near the line cannot get faster on this link; one far below it is limited by something else: its CPU, its own waiting, or the generator. "
	}
	first, whole := r.atLine("ttfb_line"), r.atLine("duration_line")
	if first+whole == "" {
		return strings.TrimSpace(s)
	}
	if s == "" {
		s = "The load line is the physical limit of an operation on the link as measured before each trial. "
	}
	if first != "" {
		s += "No first byte can be there before the round trips that the request needs: this line lies " + first + ". " + r.closest("ttfb_line_share", "The closest approach is")
	}
	if whole != "" {
		s += "No operation can end before its bytes have crossed the link, too"
		if slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.plan.Retrieve != nil && c.plan.Retrieve.Connections == "fresh" }) {
			s += ", on a fresh connection with the pauses of TCP's slow start from a window of ten segments"
		}
		s += ": this line, of an operation that has the link for itself, lies " + whole + ". Operations that share the link take longer by that alone."
	}
	return strings.TrimSpace(s)
}

// overheadLineWords is the paragraph on the load line of single operations.
func (r *Report) overheadLineWords() string {
	at := r.atLine("line")
	if at == "" {
		return ""
	}
	return "The load line of an operation is the least time in which what it has to move can cross the link as measured before the trial: a round trip (two on a fresh connection, three over TLS), and the object's bytes at the link's rate, those of a write times the expansion where the redundancy is made on the client's side. Here it lies " + at + ". " +
		r.closest("line_share", "The closest approach is") +
		"What an operation takes beyond the line is the system's: more round trips, its own work, or bytes that did not have to move. Operations that were answered, or accepted, before the object crossed the link have no line."
}

// closest says which cell comes closest to its load line; nothing where none has
// the share.
func (r *Report) closest(metric, begin string) string {
	best, cell := 0.0, (*Cell)(nil)
	for _, c := range r.cells() {
		if m, ok := c.Metrics[metric]; ok && float64(m.Median) > best {
			best, cell = float64(m.Median), c
		}
	}
	if cell == nil {
		return ""
	}
	s := fmt.Sprintf("%s %s with %s of it", begin, cell.System, percent(best))
	if w := r.shape.where(cell); w != "" {
		s += " (" + w + ")"
	}
	return s + ". "
}

func middle(xs []float64) float64 {
	s := slices.Clone(xs)
	slices.Sort(s)
	n := len(s)
	if n == 0 {
		return 0
	}
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// across draws load lines that are the same over the whole picture: one for all
// systems unless theirs differ, else each in its system's colour.
func (r *Report) across(lines []spec) spec {
	lo, hi := math.Inf(1), 0.0
	for _, l := range lines {
		lo, hi = min(lo, l["y"].(float64)), max(hi, l["y"].(float64))
	}
	mark := spec{"type": "rule", "strokeDash": []int{6, 4}, "strokeWidth": 1.5, "opacity": 0.8}
	encoding := spec{"tooltip": spec{"field": "tip", "type": "nominal"}, "x": spec{"value": 0}, "x2": spec{"value": "width"}, "y": spec{"field": "y", "type": "quantitative"}}
	if hi <= lo*sameLine {
		mark["color"] = "var(--ink)"
		return spec{"data": spec{"values": lines[:1]}, "mark": mark, "encoding": encoding}
	}
	colour, _ := r.systemScales()
	encoding["color"] = spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	return spec{"data": spec{"values": lines}, "mark": mark, "encoding": encoding}
}

// lined are the figures of a measure that nothing may be better in than the line of
// its links.
func (c *Cell) lined(where, measure string) findings.Lined {
	return findings.Lined{Where: where, Measure: measure, Tolerance: float64(c.plan.Link.Tolerance)}
}

// beyondLine looks for cells that did what their links cannot.
func beyondLine(r *Report) []Finding {
	var all []findings.Lined
	for _, c := range r.cells() {
		measures := map[string]*findings.Lined{}
		var order []string
		for i := range r.Trials {
			t := &r.Trials[i]
			if t.Info != c || !t.validBut(record.ReasonBeyondLine) {
				continue
			}
			for _, s := range validity.LineShares(c.plan, t.Trial) {
				l := measures[s.Metric]
				if l == nil {
					m, _ := r.metric(s.Metric)
					made := c.lined(r.shape.named(c), m.Name)
					l, measures[s.Metric], order = &made, &made, append(order, s.Metric)
				}
				l.Shares = append(l.Shares, s.Share)
			}
		}
		for _, metric := range order {
			all = append(all, *measures[metric])
		}
	}
	return findings.Beyond(all)
}

// validBut reports whether a trial is valid, or would be without this one reason.
func (t *Trial) validBut(reason string) bool {
	return t.State == record.Done && !t.Warmup && !slices.ContainsFunc(t.Invalid, func(why string) bool { return why != reason })
}

// machineLined are the metrics that have a machine line: whole transfers, which take as
// long as the CPUs need for them where those are the limit.
var machineLined = []string{"throughput", "duration_p50", "time_last", "time_median", "speed_median", "sync_time"}

// leastMachineShare is the share of the time from which on the machine line of a rate
// is drawn: below it, it would press everything else to the foot of the picture.
const leastMachineShare = 0.5

// machineLine is what this machine would allow in a cell if it did nothing but these
// trials with all its CPUs, median over trials; unknown where there is none.
func (r *Report) machineLine(c *Cell, m record.Metric) Num {
	var all []float64
	for i := range r.Trials {
		t := &r.Trials[i]
		v, has := t.Metrics[m.Key]
		share := validity.MachineShare(t.Trial)
		if t.Info != c || !has || !(v > 0) || !(share > 0) || !t.validBut(record.ReasonMachineLimited) {
			continue
		}
		if m.Better == record.Higher {
			share = 1 / share
		}
		all = append(all, v*share)
	}
	if len(all) == 0 || !slices.Contains(machineLined, m.Key) {
		return unknown
	}
	return Num(middle(all))
}

// machineRows are the places of the machine lines in a picture, by panel.
func (r *Report) machineRows(m record.Metric) map[string][]spec {
	rows := map[string][]spec{}
	for _, c := range r.cells() {
		y := r.machineLine(c, m)
		if !y.Known() {
			continue
		}
		if s, ok := c.Metrics[m.Key]; m.Better == record.Higher && ok && s.Median < leastMachineShare*y {
			continue
		}
		k := r.shape.panel(c)
		rows[k] = append(rows[k], spec{"kind": "machine", "system": c.System, "x": r.dodge(c, 0), "y": y, "tip": r.shape.named(c) + ": machine line " + show(float64(y), m.Unit)})
	}
	return rows
}

// machineWords say what the marks of machine lines are.
const machineWords = " A short bar is the machine line: what the CPUs of this machine allow; a rate's is left out where it is more than twice what was measured."

// lineMark is the load line of a configuration in its row, and its machine line; none
// where it has none.
func (s *Synced) lineMark(p *rows, row int) []spec {
	var marks []spec
	mark := func(what string, x float64) {
		if !math.IsNaN(x) {
			marks = append(marks, spec{"y": p.y(row) - rowMark/2 - 2, "y2": p.y(row) + rowMark/2 + 2, "x": x, "tip": what + ": " + show(x, "s")})
		}
	}
	mark("load line", s.metric("line"))
	mark("machine line", s.metric("sync_time")*s.metric("box_cpu"))
	return marks
}
