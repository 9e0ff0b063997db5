package report

import (
	"math"
	"strings"
)

// overheadTables are the tables of the terminal: fits and memory.
func (r *Report) overheadTables() []textTable {
	if len(r.Fits) == 0 {
		return nil
	}
	var fits textTable
	fits.head = []string{"system", "operation", "connections", "A", "", "R", "", "1/B", ""}
	fits.right = []bool{false, false, false, true, false, true, false, true, false}
	if r.Baseline != "" {
		fits.head, fits.right = append(fits.head, "× "+r.Baseline), append(fits.right, true)
		fits.cut(len(fits.head)-1, 12)
	}
	fits.head, fits.right = append(fits.head, "holds"), append(fits.right, false)
	fits.cut(0, mostName)
	fits.drop = map[int]int{8: 2, 4: 1} // the intervals of 1/B and A
	for i := range r.Fits {
		f := &r.Fits[i]
		row := []string{f.System, f.Operation, f.Connections, f.constantEntry().Text, f.constantWider(), f.roundsText(), f.roundsWider(), number(f.Rate.Value, "B/s").Text, wider(f.Rate, "B/s")}
		if r.Baseline != "" {
			row = append(row, r.againstEntry(f).Text)
		}
		fits.rows = append(fits.rows, append(row, f.holdsEntry().Text))
	}
	all := []textTable{fits}
	if len(r.Memory) > 0 {
		m := textTable{head: []string{"system", "process", "at rest", "between loads", "one upload", "several", "per file byte", "grows"}, right: []bool{false, false, true, true, true, true, true, false}, most: map[int]int{0: mostName, 1: mostName}}
		for i := range r.Memory {
			x := &r.Memory[i]
			m.rows = append(m.rows, []string{x.System, x.Process, number(x.RestRSS.Value, "B").Text, number(x.Between.Value, "B").Text, number(x.One.Value, "B").Text, number(x.Several.Value, "B").Text,
				x.growthEntry().Text, strings.TrimSpace(x.Grows)})
		}
		all = append(all, m)
	}
	return all
}

// constantWider is the interval of A; empty: it says nothing.
func (f *Fit) constantWider() string {
	if f.A.Lo < 0 {
		return ""
	}
	return wider(f.A, "s")
}

// wider is the wider half of an interval as a share of the estimate; where that is no
// share that can be pictured the interval itself, in the unit of the estimate.
func wider(e Estimate, unit string) string {
	v, lo, hi := float64(e.Value), float64(e.Lo), float64(e.Hi)
	if !e.Value.Known() || !e.Lo.Known() || math.IsNaN(hi) || math.IsInf(hi, -1) || v == 0 {
		return ""
	}
	half := max(hi-v, v-lo)
	if v < 0 || half > v {
		f, most := conversion(v, unit), "∞"
		if e.Hi.Known() {
			most = digits(hi*f, 3)
		}
		return "(" + digits(lo*f, 3) + "–" + most + ")"
	}
	return "± " + percent(half/v)
}

func (f *Fit) roundsText() string {
	if !f.Rounds.Value.Known() {
		return "–"
	}
	return decimals(float64(f.Rounds.Value))
}

// roundsWider is the wider half of the interval of the number of round trips.
func (f *Fit) roundsWider() string {
	r := f.Rounds
	if !r.Lo.Known() || !r.Hi.Known() {
		return ""
	}
	return "± " + decimals(float64(max(r.Hi-r.Value, r.Value-r.Lo)))
}
