package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/plimsoll-project/plimsoll/record"
)

// maxPoints bounds the points of one line of a time series; longer trials are
// drawn with wider windows.
const maxPoints = 240

// leastPoints is how many points make a course: with none so long the figure is
// left out.
const leastPoints = 3

// maxTimeGroups bounds the groups with a time series, for the page's size.
const maxTimeGroups = 48

// timeFigure draws throughput over time within one trial of each cell: the valid
// trial whose throughput is the cell's median, so that it is typical.
func (r *Report) timeFigure(in *input) (Figure, error) {
	f := Figure{ID: "time", Title: "Throughput over time", Choose: "cells", Better: "steady is better", Legend: r.systemLegend(),
		Reads: "File bytes per second within one trial of each system: the one whose throughput is the median of its cell; its whole seconds. Choose the cells above the picture."}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"trial", true}, Column{"from, s", true}, Column{"throughput", true}, Column{"ended well", true})
	var order []string
	data, names := map[string][]spec{}, map[string]string{}
	trials, longest, undrawn := 0, 0, map[string]bool{}
	lines := map[string][]spec{}
	for _, c := range r.cells() {
		t := r.typical(c)
		if t == nil || t.Seconds < 1 {
			continue
		}
		if _, ok := names[c.Group]; !ok {
			if len(order) == maxTimeGroups {
				undrawn[c.Group] = true
				continue
			}
			order, names[c.Group] = append(order, c.Group), r.shape.where(c)
		}
		points, err := in.course(t)
		if err != nil {
			return f, err
		}
		trials, longest = trials+1, max(longest, len(points))
		if line := t.Metrics["load_line"]; line > 0 {
			lines[c.Group] = append(lines[c.Group], spec{"system": c.System, "y": line, "tip": fmt.Sprintf("load line of %s: %s", c.System, show(line, "B/s"))})
		}
		for _, p := range points {
			rate := float64(p.bytes) / (p.to - p.from)
			data[c.Group] = append(data[c.Group], spec{"system": c.System, "x": round((p.from+p.to)/2, 3), "y": math.Round(rate),
				"tip": fmt.Sprintf("%s, %s–%s s: %s", c.System, digits(p.from, 3), digits(p.to, 3), show(rate, "B/s"))})
			f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System}, integer(int(t.ID)),
				Entry{Text: digits(p.from, 4), Raw: strconv.FormatFloat(p.from, 'g', -1, 64)}, number(Num(rate), "B/s"), whole(p.ok)))
		}
	}
	if longest < leastPoints {
		return Figure{}, nil
	}
	if n := int64(len(undrawn)); n > 0 {
		f.Reads += fmt.Sprintf(" %s after the first %d %s not drawn.", plural(n, "combination", "combinations"), maxTimeGroups, map[bool]string{true: "is", false: "are"}[n == 1])
	}
	f.N = "n = " + plural(int64(trials), "trial", "trials") + ", one per cell"
	if len(lines) > 0 {
		f.Reads += " The dashed lines are the trials' load lines; what the link's queue holds back arrives later, so that a second may be a little above."
		f.Legend = append(f.Legend, Legend{"load line", "var(--ink)", "dash"})
	}
	colour, _ := r.systemScales()
	col, tip := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}, spec{"field": "tip", "type": "nominal"}
	for _, g := range order {
		top := 0.0
		for _, row := range append(slices.Clone(data[g]), lines[g]...) {
			top = max(top, row["y"].(float64))
		}
		layers := []spec{{"mark": spec{"type": "line", "strokeWidth": 1.75, "point": spec{"size": 12}}, "encoding": spec{
			"x": spec{"field": "x", "type": "quantitative", "axis": spec{"title": "seconds since the trial began", "grid": false}}, "color": col, "tooltip": tip}}}
		if len(lines[g]) > 0 {
			layers = append([]spec{r.across(lines[g])}, layers...)
		}
		f.Panels = append(f.Panels, Panel{Title: names[g], Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + names[g],
			"data":     spec{"values": data[g]},
			"encoding": spec{"y": spec{"field": "y", "type": "quantitative", "axis": r.valueAxis("B/s", top)}},
			"layer":    layers}})
	}
	return f, nil
}

// typical is the valid trial at the cell's median throughput.
func (r *Report) typical(c *Cell) *Trial {
	want, ok := c.Metrics[r.headline]
	if !ok {
		return nil
	}
	var best *Trial
	for i := range r.Trials {
		t := &r.Trials[i]
		x, has := t.Metrics[r.headline]
		if t.Info != c || !t.Valid() || !has {
			continue
		}
		if best == nil || math.Abs(x-float64(want.Median)) < math.Abs(best.Metrics[r.headline]-float64(want.Median)) {
			best = t
		}
	}
	return best
}

// point is what one line of a time series shows between two moments.
type point struct {
	from, to float64 // seconds since the trial began
	bytes    int64
	ok       int64
}

// course is a trial's whole seconds in at most maxPoints of equal width; the
// last may be narrower. Seconds in which nothing came count as such. What began
// when the trial had less than a second left is no point: it would look slow.
func (in *input) course(t *Trial) ([]point, error) {
	whole := int64(t.Seconds)
	width := max((whole+maxPoints-1)/maxPoints, 1)
	var points []point
	for from := int64(0); from < whole; from += width {
		points = append(points, point{from: float64(from), to: float64(min(from+width, whole))})
	}
	for w, err := range in.windows(t.ID) {
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		if w.Second < 0 || w.Second >= whole {
			continue
		}
		p := &points[w.Second/width]
		p.bytes += w.Bytes
		p.ok += w.Outcomes[record.OK]
	}
	return points, nil
}

func round(v float64, places int) float64 {
	f := math.Pow(10, float64(places))
	return math.Round(v*f) / f
}
