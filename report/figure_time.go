package report

import (
	"fmt"
	"math"
	"strconv"
)

// maxPoints bounds the points of one line of a time series; longer trials are
// drawn with wider windows.
const maxPoints = 240

// maxWindows bounds the seconds of a trial that are drawn: each comes with its
// histograms, 10 kB together, which a report of a trial of days could not hold.
const maxWindows = 10_000

// maxTimeGroups bounds the groups with a time series, for the page's size.
const maxTimeGroups = 48

// timeFigure draws throughput over time within one trial of each cell: the valid
// trial whose throughput is the cell's median, so that it is typical.
func (r *Report) timeFigure(in *input) (Figure, error) {
	f := Figure{ID: "time", Title: "Throughput over time", Choose: "cells", Better: "steady is better", Legend: r.systemLegend(),
		Reads: "File bytes per second within one trial of each system: the one whose throughput is the median of its cell. Choose the cells above the picture."}
	f.Table.Head = append(r.factorColumns(), Column{"system", false}, Column{"trial", true}, Column{"from, s", true}, Column{"throughput", true}, Column{"ended well", true})
	var order []string
	data, names := map[string][]spec{}, map[string]string{}
	trials, long := 0, 0
	for _, c := range r.cells() {
		t := r.typical(c)
		if t == nil {
			continue
		}
		if t.Seconds > maxWindows {
			long++
			continue
		}
		if _, ok := names[c.Group]; !ok {
			if len(order) == maxTimeGroups {
				continue
			}
			order, names[c.Group] = append(order, c.Group), r.shape.where(c)
		}
		ws, err := in.windows(t.ID)
		if err != nil {
			return f, fmt.Errorf("report: windows of trial %d: %w", t.ID, err)
		}
		ws = widen(ws, maxPoints)
		if len(ws) == 0 {
			continue
		}
		trials++
		for _, w := range ws {
			rate := w.Bytes / w.Seconds
			data[c.Group] = append(data[c.Group], spec{"system": c.System, "x": round(w.Start+w.Seconds/2, 3), "y": math.Round(rate),
				"tip": fmt.Sprintf("%s, %s–%s s: %s", c.System, digits(w.Start, 3), digits(w.Start+w.Seconds, 3), show(rate, "B/s"))})
			f.Table.Rows = append(f.Table.Rows, append(r.factorEntries(c), Entry{Text: c.System, Raw: c.System}, integer(int(t.ID)),
				Entry{Text: digits(w.Start, 4), Raw: strconv.FormatFloat(w.Start, 'g', -1, 64)}, number(Num(rate), "B/s"), whole(int64(w.OK))))
		}
	}
	if trials == 0 {
		return Figure{}, nil
	}
	if long > 0 {
		f.Reads += fmt.Sprintf(" %s of more than %s s %s not drawn.", plural(int64(long), "trial", "trials"), count(maxWindows), map[bool]string{true: "is", false: "are"}[long == 1])
	}
	f.N = "n = " + plural(int64(trials), "trial", "trials") + ", one per cell"
	colour, _ := r.systemScales()
	for _, g := range order {
		top := 0.0
		for _, row := range data[g] {
			top = max(top, row["y"].(float64))
		}
		f.Panels = append(f.Panels, Panel{Title: names[g], Spec: spec{
			"$schema": vegaLite, "description": f.Title + ", " + names[g],
			"data": spec{"values": data[g]},
			"mark": spec{"type": "line", "strokeWidth": 1.75, "point": spec{"size": 12}},
			"encoding": spec{
				"x":       spec{"field": "x", "type": "quantitative", "axis": spec{"title": "seconds since the trial began", "grid": false}},
				"y":       spec{"field": "y", "type": "quantitative", "axis": r.valueAxis("B/s", top)},
				"color":   spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil},
				"tooltip": spec{"field": "tip", "type": "nominal"},
			}}})
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

// widen merges neighbouring windows until at most n are left.
func widen(ws []window, n int) []window {
	if len(ws) <= n {
		return ws
	}
	k := (len(ws) + n - 1) / n
	var out []window
	for i := 0; i < len(ws); i += k {
		m := ws[i]
		for _, w := range ws[i+1 : min(i+k, len(ws))] {
			m.Seconds += w.Seconds
			m.Bytes += w.Bytes
			m.OK += w.OK
			m.Failed += w.Failed
			m.Censored += w.Censored
		}
		out = append(out, m)
	}
	return out
}

func round(v float64, places int) float64 {
	f := math.Pow(10, float64(places))
	return math.Round(v*f) / f
}
