package report

import (
	"fmt"
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

// throughputFalls compares each system's throughput at the levels of concurrency.
func (r *Report) throughputFalls() {
	var curves []findings.Curve
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
		k := slices.IndexFunc(curves, func(x findings.Curve) bool { return x.System == c.System && x.Where == where })
		if k < 0 {
			k = len(curves)
			curves = append(curves, findings.Curve{System: c.System, Where: where, Limited: map[float64]findings.Limit{}, Show: func(x float64) string { return show(x, m.Unit) }})
		}
		x := &curves[k]
		full := 0
		trials := r.validOf(c)
		for _, t := range trials {
			if v := t.Metrics[metric]; v > 0 {
				x.Trials = append(x.Trials, stats.Load{N: f.Number, X: v})
			}
			if l, ok := r.checks[t.ID]; ok && l.Rate > 0 && t.Metrics["load_line"] >= fullRate*l.Rate/8 {
				full++
			}
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
	r.falls = findings.Falls(curves)
	r.loadCurves = map[string]int{}
	for _, c := range curves {
		r.loadCurves[c.System]++
	}
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

// throughputFallsFound says of which systems throughput falls under load.
func throughputFallsFound(r *Report) []Finding { return findings.SayFalls(r.falls) }

// fallsOf are the curves of a system on which throughput falls.
func (r *Report) fallsOf(system string) (falling []*findings.Fall) {
	for i := range r.falls {
		if f := &r.falls[i]; f.System == system {
			falling = append(falling, f)
		}
	}
	return falling
}

// slowerClause is what the verdict says of concurrency; empty: no fall is shown.
func (r *Report) slowerClause() string {
	var parts []string
	for _, s := range r.Systems {
		falling, of := r.fallsOf(s.Name), r.loadCurves[s.Name]
		switch {
		case len(falling) == 0:
		case of == 1:
			where, _ := falling[0].Words()
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
	falling := r.fallsOf(system)
	var parts []string
	for i, f := range falling {
		if i == mostSlower {
			parts = append(parts, fmt.Sprintf("and in %d more series of cells", len(falling)-i))
			break
		}
		_, figures := f.Words()
		if r.loadCurves[system] > 1 {
			figures = f.Where + ", " + figures
		}
		parts = append(parts, figures)
	}
	if parts == nil {
		return ""
	}
	return "; slower " + strings.Join(parts, "; ")
}
