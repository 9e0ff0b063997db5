package report

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// Memory is what a system's processes of one kind take, each of them: medians
// over the processes of a trial, then over trials.
type Memory struct {
	System    string   `json:"system"`
	Process   string   `json:"process"`   // "storage": all that are numbered alike
	Processes int      `json:"processes"` // how many there are
	RestRSS   Estimate `json:"rest_rss"`  // bytes, before anything was stored
	RestPSS   Estimate `json:"rest_pss"`
	Between   Estimate `json:"between"`   // resident just before a load, with what earlier ones left behind
	Operation string   `json:"operation"` // of the peaks: "put" or "put-durable"; empty: no upload was measured
	One       Estimate `json:"one"`       // peak during one upload at a time, of the largest size
	OneSize   Num      `json:"one_size"`
	Several   Estimate `json:"several"` // peak during the most at once
	AtOnce    int      `json:"at_once"` // how many those are; 0: none were measured
	AtSize    Num      `json:"at_size"`
	// Growth of the peak of one upload with the size of the object, bytes per
	// file byte.
	Growth  Estimate `json:"growth"`
	AtLeast bool     `json:"at_least"` // what earlier loads left behind hides some of the growth
	AtMost  Num      `json:"at_most"`  // all that the largest upload had above rest, per file byte
	Grows   string   `json:"grows"`    // "yes", "no", or "" when it cannot be told
	Why     string   `json:"why,omitempty"`

	points []memoryPoint
}

// memoryPoint is the peak of one kind of process in one trial.
type memoryPoint struct {
	cell *Cell
	peak float64
	own  bool // nothing larger had been handled before, whose memory might still be held
}

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

// uploads are the operations whose memory is told, the first that was measured.
func uploads() [2]string { return [2]string{"put", "put-durable"} }

// uploadOf is the upload whose memory a system's rows tell; empty: there is none.
func (r *Report) uploadOf(system string) string {
	for _, op := range uploads() {
		for _, c := range r.cells() {
			if c.System == system && c.overhead() != nil && c.overhead().Operation == op && c.Valid > 0 {
				return op
			}
		}
	}
	return ""
}

// footprint fills what the processes of each system take.
func (r *Report) footprint() {
	r.Memory = []Memory{}
	type key struct{ system, process string }
	type gathered struct {
		rest, pss, between []float64
		points             []memoryPoint
		processes          int
	}
	all := map[key]*gathered{}
	var order []key
	each := func(t *Trial, do func(g *gathered, v float64), kinds ...string) {
		for _, kind := range kinds {
			values := detail(t, kind)
			for process, xs := range values {
				k := key{t.Info.System, process}
				if all[k] == nil {
					all[k], order = &gathered{}, append(order, k)
				}
				all[k].processes = max(all[k].processes, len(xs))
				do(all[k], middle(xs))
			}
			if len(values) > 0 {
				return // the kinds that follow stand in for it
			}
		}
	}
	lived := r.lived()
	upload := map[string]string{}
	for _, s := range r.Systems {
		upload[s.Name] = r.uploadOf(s.Name)
	}
	for i := range r.Trials {
		t := &r.Trials[i]
		if t.Info.overhead() == nil {
			continue
		}
		if lived.first[t.ID] {
			each(t, func(g *gathered, v float64) { g.rest = append(g.rest, v) }, record.DetailRSSStart, record.DetailRSSRest)
			each(t, func(g *gathered, v float64) { g.pss = append(g.pss, v) }, record.DetailPSSStart, record.DetailPSSRest)
		}
		if !t.Valid() {
			continue
		}
		each(t, func(g *gathered, v float64) { g.between = append(g.between, v) }, record.DetailRSSRest)
		if t.Info.overhead().Operation == upload[t.Info.System] {
			each(t, func(g *gathered, v float64) {
				g.points = append(g.points, memoryPoint{t.Info, v, lived.own[t.ID]})
			}, record.DetailRSSPeak)
		}
	}
	system := func(name string) int {
		return slices.IndexFunc(r.Systems, func(s System) bool { return s.Name == name })
	}
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(system(a.system), system(b.system)), strings.Compare(a.process, b.process))
	})
	for _, k := range order {
		g := all[k]
		m := Memory{System: k.system, Process: k.process, Processes: g.processes, RestRSS: medianOf(g.rest), RestPSS: medianOf(g.pss), Between: medianOf(g.between),
			One: noEstimate, Several: noEstimate, OneSize: unknown, AtSize: unknown, Growth: noEstimate, AtMost: unknown, points: g.points}
		if len(g.points) > 0 {
			m.Operation = upload[k.system]
			m.peaks()
			m.grow()
		}
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

// at are the peaks of so many uploads at once, by size.
func (m *Memory) at(concurrency int) map[float64][]float64 {
	all := map[float64][]float64{}
	for _, p := range m.points {
		if max(1, p.cell.overhead().Concurrency) == concurrency {
			all[p.cell.size()] = append(all[p.cell.size()], p.peak)
		}
	}
	return all
}

// peaks takes from all points the largest size of one upload at a time, and the
// most at once.
func (m *Memory) peaks() {
	most := 1
	for _, p := range m.points {
		most = max(most, p.cell.overhead().Concurrency)
	}
	largest := func(concurrency int) (Estimate, Num) {
		by, size := m.at(concurrency), 0.0
		for s := range by {
			size = max(size, s)
		}
		if len(by) == 0 {
			return noEstimate, unknown
		}
		return medianOf(by[size]), Num(size)
	}
	m.One, m.OneSize = largest(1)
	if most > 1 {
		m.Several, m.AtSize = largest(most)
		m.AtOnce = most
	}
}
