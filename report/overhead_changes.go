package report

import "github.com/plimsoll-project/plimsoll/report/findings"

// memoryGrows looks at whether a process keeps more of a larger object.
func memoryGrows(r *Report) []Finding {
	var all []findings.Peak
	for i := range r.Memory {
		m := &r.Memory[i]
		p := findings.Peak{Name: m.System + ", " + m.Process, Bytes: float64(m.One.Value), Largest: sizeWords(float64(m.OneSize)), Hidden: m.AtLeast, AtMost: float64(m.AtMost), Grows: m.Grows}
		if m.Growth.Value.Known() {
			p.Slope = m.Growth.over(len(m.points))
		}
		all = append(all, p)
	}
	return findings.MemoryGrows(all)
}

// slowsDown looks at whether an operation takes longer the more objects there are.
func slowsDown(r *Report) []Finding {
	var all []findings.Filling
	for _, t := range r.Trends {
		f := findings.Filling{Name: t.System + ", " + t.Operation, Where: t.Where, Known: t.N, Cut: t.Cut, From: int64(t.From), To: int64(t.To), Took: float64(t.Median), Shown: t.Shown}
		if t.Slope.Lo.Known() {
			f.Slope = t.Slope.over(t.N)
		}
		all = append(all, f)
	}
	return findings.ObjectsSlope(all)
}
