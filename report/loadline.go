package report

import (
	"cmp"
	"fmt"
	"slices"
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

// loadLines are the medians over the valid trials of a group: the engine
// computed each trial's line from its link as verified just before. One line
// stands for all systems unless theirs differ.
func (r *Report) loadLines() []limit {
	each := r.limitsBy(func(c *Cell) string { return c.System })
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
	return r.limitsBy(func(*Cell) string { return "" })
}

// limitsBy are the load lines of the cells taken together by system, from left
// to right.
func (r *Report) limitsBy(system func(*Cell) string) []limit {
	values := map[limit][]float64{}
	var order []limit
	key := r.lens.limit
	if key == "" {
		key = "load_line"
	}
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
	if r.lens.loadLine != nil {
		return r.lens.loadLine(r)
	}
	lines := r.loadLines()
	if len(lines) == 0 {
		return ""
	}
	lo, hi := lines[0].y, lines[0].y
	for _, l := range lines {
		lo, hi = min(lo, l.y), max(hi, l.y)
	}
	s := "The load line is the physical limit of a cell: the file bytes per second that the link, as measured before each trial, can carry with the round trips that the requests need. "
	if hi/lo < 1.02 {
		s += fmt.Sprintf("Here it lies at %s. ", show(middle([]float64{lo, hi}), "B/s"))
	} else {
		s += fmt.Sprintf("Here it lies between %s and %s, depending on the cell. ", show(lo, "B/s"), show(hi, "B/s"))
	}
	return s + r.closest("load_line_share") + "A system near the line cannot get faster on this link; one far below it is limited by something else: its CPU, its own waiting, or the generator."
}

// closest says which cell comes closest to its load line; nothing where none has
// the share.
func (r *Report) closest(metric string) string {
	best, cell := 0.0, (*Cell)(nil)
	for _, c := range r.cells() {
		if m, ok := c.Metrics[metric]; ok && float64(m.Median) > best {
			best, cell = float64(m.Median), c
		}
	}
	if cell == nil {
		return ""
	}
	s := fmt.Sprintf("The closest approach is %s with %s of it", cell.System, percent(best))
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
