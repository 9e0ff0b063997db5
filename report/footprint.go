package report

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Memory is what a system's processes of one kind take, each of them: medians
// over the processes of a trial, then over trials.
type Memory struct {
	System    string   `json:"system"`
	Process   string   `json:"process"`   // "storage": all that are numbered alike
	Processes int      `json:"processes"` // how many there are
	RestRSS   Estimate `json:"rest_rss"`  // bytes, just before a load
	RestPSS   Estimate `json:"rest_pss"`
	One       Estimate `json:"one"` // peak during one upload at a time, of the largest size
	OneSize   Num      `json:"one_size"`
	Several   Estimate `json:"several"` // peak during the most at once
	AtOnce    int      `json:"at_once"` // how many those are; 0: none were measured
	AtSize    Num      `json:"at_size"`
	// Growth of the peak of one upload with the size of the object, bytes per
	// file byte.
	Growth Estimate `json:"growth"`
	Grows  string   `json:"grows"` // "yes", "no", or "" when it cannot be told

	points []memoryPoint
}

// memoryPoint is the peak of one kind of process in one trial.
type memoryPoint struct {
	cell *Cell
	peak float64
}

// growthFloor is how much of each file byte a process must keep in memory for
// its memory to count as growing with the file.
const growthFloor = 0.1

// growthSizes is the share of the largest size from which on objects enter the
// slope of memory over size.
const growthSizes = 0.01

var numbered = regexp.MustCompile(`-[0-9]+$`)

// kindOf is a process's name without its system and number: "tahoe/storage-2" is
// of the kind "storage".
func kindOf(process, system string) string {
	if i := strings.LastIndex(process, "/"); i >= 0 {
		process = process[i+1:]
	}
	process = strings.TrimPrefix(process, system+"-")
	return numbered.ReplaceAllString(process, "")
}

// detail are a trial's values of one kind, by kind of process.
func detail(t *Trial, kind string) map[string][]float64 {
	all := map[string][]float64{}
	for _, d := range t.Details {
		if d.Kind == kind && !math.IsNaN(d.Value) {
			k := kindOf(d.Name, t.Info.System)
			all[k] = append(all[k], d.Value)
		}
	}
	return all
}

// footprint fills what the processes of each system take.
func (r *Report) footprint() {
	r.Memory = []Memory{}
	type key struct{ system, process string }
	type gathered struct {
		rest, pss []float64
		points    []memoryPoint
		processes int
	}
	all := map[key]*gathered{}
	var order []key
	of := func(t *Trial, process string) *gathered {
		k := key{t.Info.System, process}
		if all[k] == nil {
			all[k], order = &gathered{}, append(order, k)
		}
		return all[k]
	}
	for i := range r.Trials {
		t := &r.Trials[i]
		if !t.Valid() || t.Info.overhead() == nil {
			continue
		}
		for process, xs := range detail(t, record.DetailRSSRest) {
			g := of(t, process)
			g.rest, g.processes = append(g.rest, middle(xs)), max(g.processes, len(xs))
		}
		for process, xs := range detail(t, record.DetailPSSRest) {
			g := of(t, process)
			g.pss, g.processes = append(g.pss, middle(xs)), max(g.processes, len(xs))
		}
		if !writes(t.Info.overhead().Operation) {
			continue
		}
		for process, xs := range detail(t, record.DetailRSSPeak) {
			g := of(t, process)
			g.points, g.processes = append(g.points, memoryPoint{t.Info, middle(xs)}), max(g.processes, len(xs))
		}
	}
	system := func(name string) int {
		return slices.IndexFunc(r.Systems, func(s System) bool { return s.Name == name })
	}
	slices.SortFunc(order, func(a, b key) int {
		if a.system != b.system {
			return system(a.system) - system(b.system)
		}
		return strings.Compare(a.process, b.process)
	})
	for _, k := range order {
		g := all[k]
		m := Memory{System: k.system, Process: k.process, Processes: g.processes, RestRSS: medianOf(g.rest), RestPSS: medianOf(g.pss),
			One: noEstimate, Several: noEstimate, OneSize: unknown, AtSize: unknown, Growth: noEstimate, points: g.points}
		m.peaks()
		r.Memory = append(r.Memory, m)
	}
}

func medianOf(xs []float64) Estimate {
	if len(xs) == 0 {
		return noEstimate
	}
	s := summaryOf(xs, nil)
	return Estimate{s.Median, s.Lo, s.Hi}
}

// peaks takes from all points the largest size of one upload at a time, the most
// at once, and the growth with the size.
func (m *Memory) peaks() {
	var sizes, peaks []float64
	largest, most := 0.0, 1
	for _, p := range m.points {
		if n := p.cell.overhead().Concurrency; n > 1 {
			most = max(most, n)
			continue
		}
		sizes, peaks, largest = append(sizes, p.cell.size()), append(peaks, p.peak), max(largest, p.cell.size())
	}
	pick := func(at int, size float64) []float64 {
		var xs []float64
		for _, p := range m.points {
			if max(1, p.cell.overhead().Concurrency) == at && p.cell.size() == size {
				xs = append(xs, p.peak)
			}
		}
		return xs
	}
	if len(sizes) > 0 {
		m.One, m.OneSize = medianOf(pick(1, largest)), Num(largest)
	}
	if most > 1 {
		big := 0.0
		for _, p := range m.points {
			if p.cell.overhead().Concurrency == most {
				big = max(big, p.cell.size())
			}
		}
		m.Several, m.AtOnce, m.AtSize = medianOf(pick(most, big)), most, Num(big)
	}
	// Objects far smaller than the largest tell nothing of a slope but its noise.
	var x, y []float64
	for i, size := range sizes {
		if size >= largest*growthSizes {
			x, y = append(x, size), append(y, peaks[i])
		}
	}
	if len(x) == 0 || slices.Min(x) == largest {
		x, y = sizes, peaks
	}
	if len(x) == 0 || slices.Min(x) == slices.Max(x) {
		return
	}
	m.Growth = estimateOf(stats.Slope(x, y, Confidence))
	switch {
	case !m.Growth.Lo.Known() || !m.Growth.Hi.Known():
	case m.Growth.Lo > growthFloor:
		m.Grows = "yes"
	case m.Growth.Hi < growthFloor:
		m.Grows = "no"
	}
}
