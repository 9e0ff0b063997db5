package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/stats"
)

// concurrencies are the factors that say how many operations are under way at once,
// with the metric that is their throughput.
func concurrencies() map[string]string {
	return map[string]string{"retrieve.concurrency": "throughput", "overhead.concurrency": "ops_rate"}
}

// fullRate is from which share of the link's rate on the line is bandwidth: below,
// it is round trips, and more at once raise it.
const fullRate = 0.90

// kneeCurve is the throughput of a system against concurrency with what it is drawn by.
type kneeCurve struct {
	findings.Curve
	panel string
	cells []*Cell
}

// scaling fits each system's throughput against concurrency.
func (r *Report) scaling() {
	var curves []kneeCurve
	bounds := findings.Bound(r.sharesOfCells())
	for i, c := range r.cells() {
		path, metric := "", ""
		for p, m := range concurrencies() {
			if _, ok := c.Factor(p); ok {
				path, metric = p, m
			}
		}
		m, ok := r.metric(metric)
		if s := c.plan.Retrieve; path == "" || !ok || s != nil && s.Arrivals != nil {
			continue
		}
		f, _ := c.Factor(path)
		where := c.without(path)
		k := slices.IndexFunc(curves, func(x kneeCurve) bool { return x.System == c.System && x.Where == where })
		if k < 0 {
			k = len(curves)
			curves = append(curves, kneeCurve{panel: r.shape.panel(c), Curve: findings.Curve{System: c.System, Where: where, Latency: map[float64]float64{}, Limited: map[float64]findings.Limit{},
				Show: func(x float64) string { return show(x, m.Unit) }, Time: func(s float64) string { return show(s, "s") }}})
		}
		x := &curves[k]
		x.cells = append(x.cells, c)
		full := 0
		trials := r.validOf(c)
		for _, t := range trials {
			if v := t.Metrics[metric]; v > 0 {
				x.Trials = append(x.Trials, stats.Load{N: f.Number, X: v, Block: t.Block})
			}
			if l, ok := r.checks[t.ID]; ok && l.Rate > 0 && t.Metrics["load_line"] >= fullRate*l.Rate/8 {
				full++
			}
		}
		if d, ok := c.Metrics["duration_p50"]; ok {
			x.Latency[f.Number] = float64(d.Median)
		}
		switch by := bounds[i].By; {
		case slices.Contains(by, findings.Generator):
			x.Limited[f.Number] = findings.Generator
		case slices.Contains(by, findings.Link) && 2*full > len(trials):
			x.Limited[f.Number] = findings.Link
		case slices.Contains(by, findings.Machine): // server, generator and emulator share its CPUs
			x.Limited[f.Number] = findings.Machine
		}
	}
	plain := make([]findings.Curve, len(curves))
	for i, c := range curves {
		plain[i] = c.Curve
	}
	r.scaled, r.knees = curves, findings.Knees(plain, Confidence, r.Run.Seed)
}

// without names a cell's factors but its system and one more.
func (c *Cell) without(path string) string {
	var words []string
	for _, f := range c.Factors {
		if f.Path != "system" && f.Path != path {
			words = append(words, f.Label+" "+f.Text())
		}
	}
	return strings.Join(words, ", ")
}

// knees says where more at once is slower.
func knees(r *Report) []Finding { return findings.SayKnees(r.knees) }

// slower are the curves of a system on which more at once is shown to be slower.
func (r *Report) slower(system string) (falling []*findings.Knee, of int) {
	for i := range r.knees {
		if k := &r.knees[i]; k.System == system {
			of++
			if where, _ := k.Beyond(); where != "" {
				falling = append(falling, k)
			}
		}
	}
	return falling, of
}

// slowerClause is what the verdict says of concurrency; empty: no fall is shown.
func (r *Report) slowerClause() string {
	var parts []string
	for _, s := range r.Systems {
		falling, of := r.slower(s.Name)
		switch {
		case len(falling) == 0:
		case of == 1:
			where, _ := falling[0].Beyond()
			parts = append(parts, s.Name+" is slower "+where)
		default:
			parts = append(parts, fmt.Sprintf("%s is slower with more at once in %d of %d series of cells", s.Name, len(falling), of))
		}
	}
	return list(parts)
}

// mostSlower is how many curves of one system the answer names.
const mostSlower = 2

// slowerWords are the figures to slowerClause for one system, for its answer.
func (r *Report) slowerWords(system string) string {
	falling, of := r.slower(system)
	var parts []string
	for i, k := range falling {
		if i == mostSlower {
			parts = append(parts, fmt.Sprintf("and in %d more series of cells", len(falling)-i))
			break
		}
		_, figures := k.Beyond()
		if of > 1 {
			figures = k.Where + ", " + figures
		}
		parts = append(parts, figures)
	}
	if parts == nil {
		return ""
	}
	return "; slower " + strings.Join(parts, "; ")
}

// scaledMetric is the metric that is drawn against concurrency; empty: none is.
func (r *Report) scaledMetric() string {
	if r.shape.axis == nil {
		return ""
	}
	return concurrencies()[r.shape.axis.Path]
}

// kneeSteps is how many straight pieces draw a fitted curve.
const kneeSteps = 60

// kneeLayers draw the fitted curve of the systems of a panel that have a knee, and the
// interval of N* on it.
func (r *Report) kneeLayers(panel string) []spec {
	var lines, peaks []spec
	for i := range r.knees {
		k := &r.knees[i]
		if !k.Seen || r.scaled[i].panel != panel {
			continue
		}
		f := &k.Fit
		lo, hi := f.Levels[0].N, f.Levels[len(f.Levels)-1].N
		for _, n := range spanned(lo, hi, kneeSteps, r.shape.axis.Log) {
			lines = append(lines, spec{"x": n, "y": f.At(n), "system": k.System})
		}
		peaks = append(peaks, spec{"x": float64(f.Peak.Mid), "lo": f.Peak.Lo, "hi": f.Peak.Hi, "y": f.PeakX.Mid, "system": k.System,
			"tip": k.System + ": most at N* = " + showRange(Num(f.Peak.Mid), Num(f.Peak.Lo), Num(f.Peak.Hi), "1")})
	}
	if lines == nil {
		return nil
	}
	colour, _ := r.systemScales()
	col := spec{"field": "system", "type": "nominal", "scale": colour, "legend": nil}
	tip := spec{"field": "tip", "type": "nominal"}
	return []spec{
		{"data": spec{"values": lines}, "mark": spec{"type": "line", "strokeDash": []int{2, 3}, "strokeWidth": 1.5}, "encoding": spec{"color": col}},
		{"data": spec{"values": peaks}, "mark": spec{"type": "rule", "strokeWidth": 5, "opacity": 0.35}, "encoding": spec{"color": col, "x": spec{"field": "lo", "type": "quantitative"}, "x2": spec{"field": "hi"}, "tooltip": tip}},
		{"data": spec{"values": peaks}, "mark": spec{"type": "point", "shape": "diamond", "filled": false, "size": 130, "strokeWidth": 2}, "encoding": spec{"color": col, "tooltip": tip}},
	}
}

// spanned are places from lo to hi, evenly or by equal factors.
func spanned(lo, hi float64, steps int, log bool) []float64 {
	all := make([]float64, 0, steps+1)
	for i := range steps + 1 {
		at := float64(i) / float64(steps)
		if log {
			all = append(all, lo*math.Pow(hi/lo, at))
		} else {
			all = append(all, lo+(hi-lo)*at)
		}
	}
	return all
}
