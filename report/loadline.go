package report

import (
	"fmt"
	"slices"
)

// limit is the load line at one place of the axis: the throughput that the
// verified link could carry there.
type limit struct {
	panel, where string
	x, y         float64
}

// loadLines are the medians over the valid trials of a group: the engine
// computed each trial's line from its link as verified just before.
func (r *Report) loadLines() []limit {
	type place struct {
		panel string
		x     float64
	}
	values := map[place][]float64{}
	names := map[place]string{}
	var order []place
	for _, t := range r.Trials {
		y, ok := t.Metrics["load_line"]
		if !t.Valid() || !ok || !(y > 0) {
			continue
		}
		p := place{r.shape.panel(t.Info), r.shape.at(t.Info)}
		if values[p] == nil {
			order = append(order, p)
			names[p] = r.shape.where(t.Info)
		}
		values[p] = append(values[p], y)
	}
	slices.SortStableFunc(order, func(a, b place) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	var all []limit
	for _, p := range order {
		all = append(all, limit{p.panel, names[p], p.x, middle(values[p])})
	}
	return all
}

// explainLoadLine is the paragraph that says what the line means here.
func (r *Report) explainLoadLine() string {
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
	best, cell := 0.0, (*Cell)(nil)
	for _, c := range r.cells() {
		if m, ok := c.Metrics["load_line_share"]; ok && float64(m.Median) > best {
			best, cell = float64(m.Median), c
		}
	}
	if cell != nil {
		s += fmt.Sprintf("The closest approach is %s with %s of it", cell.System, percent(best))
		if w := r.shape.where(cell); w != "" {
			s += " (" + w + ")"
		}
		s += ". "
	}
	return s + "A system near the line cannot get faster on this link; one far below it is limited by something else: its CPU, its own waiting, or the generator."
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
