package report

import "github.com/plimsoll-project/plimsoll/report/findings"

// modelFails looks at how the fits came out.
func modelFails(r *Report) []Finding {
	var all []findings.CostFit
	for i := range r.Fits {
		f := &r.Fits[i]
		all = append(all, findings.CostFit{Name: f.System + ", " + r.nameOf(f), Fitted: f.model != nil, Tested: f.tested, Holds: f.Holds, Why: f.Why, Spread: float64(f.Spread), Misfit: float64(f.Misfit)})
	}
	return findings.CostModels(all)
}

// inlined looks at what crosses the link.
func inlined(r *Report) []Finding {
	var all []findings.Crossing
	for i := range r.Fits {
		if t := &r.Fits[i]; t.Inline != nil {
			all = append(all, findings.Crossing{Name: t.System + ", " + r.nameOf(t), Some: t.Inline.words(t.Operation)})
		}
	}
	return findings.Inlined(all)
}

// unequal compares with the baseline for the same absolute bytes.
func unequal(r *Report) []Finding {
	var all []findings.SameBytes
	for i := range r.Fits {
		t := &r.Fits[i]
		a := t.Against
		if a == nil {
			continue
		}
		s := findings.SameBytes{Name: t.System + ", " + r.nameOf(t), Ratio: a.Ratio.over(a.N),
			Least: findings.Cell{Where: a.Least.Where, Value: float64(a.Least.Value)}, Most: findings.Cell{Where: a.Most.Where, Value: float64(a.Most.Value)}}
		if a.Operation != t.Operation {
			s.Operation = a.Operation
		}
		base := r.fitOf(task{a.System, a.Operation, t.Connections})
		s.Doubtful = base != nil && base.tested && !base.Holds && !base.near()
		all = append(all, s)
	}
	return findings.AgainstSameBytes(all, r.Baseline)
}

// over is an estimate as rules look at it, from so many trials.
func (e Estimate) over(n int) findings.Value {
	return findings.Value{Mid: float64(e.Value), Lo: float64(e.Lo), Hi: float64(e.Hi), N: n}
}
