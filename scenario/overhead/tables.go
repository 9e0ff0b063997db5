package overhead

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// tables returns the tables that combine several cells.
func (v *view) tables(f *analysis.Frame) []analysis.Table {
	r := v.read(f)
	return []analysis.Table{r.costTable(), r.memoryTable(), r.objectsTable(), r.phaseTable()}
}

const (
	// falseAlpha is the share of faultless runs in which a rule may fire nevertheless, for any
	// number of tests.
	falseAlpha = 0.01
	// misfitAlpha is the level for the cost model. It is lower, since the model's small p-values
	// are too small with heavy-tailed noise.
	misfitAlpha = falseAlpha / 30
	// assumedAutocorrelation is the autocorrelation of successive trials. The number of objects
	// grows with time, so a temporary drift looks like a slope. With 0.25, the interval covers 94
	// to 98 % in simulations, depending on the kind of noise.
	assumedAutocorrelation = 0.25
)

// objectsTable returns how the time of an operation changes with the number of objects on the
// servers.
func (r *reading) objectsTable() analysis.Table {
	var all []overObjects
	slopes := 0
	for _, c := range r.Cells {
		for _, op := range []string{"put", "get", "stat"} {
			if s := r.overObjects(c, op); c.Plan.Overhead.Operation == "fill" && len(s.x) > 0 {
				if all = append(all, s); s.sloped() {
					slopes++
				}
			}
		}
	}
	t := r.View.Head("objects")
	for _, s := range all {
		slope, change := analysis.Text(""), "too few trials"
		if s.sloped() {
			slope = analysis.Estimate(stats.TrendSlope(s.x, s.y, assumedAutocorrelation, analysis.Confidence))
			change = s.change(falseAlpha / float64(slopes))
		}
		t.Add(s.cell.System, r.Layout.Where(s.cell), s.operation, 1000*slices.Min(s.x), 1000*slices.Max(s.x),
			stats.Median(s.y), slope, change, float64(len(s.x)), float64(s.cut))
	}
	return t
}

// overObjects holds the times of an operation (y) over thousands of stored objects (x).
type overObjects struct {
	cell      *analysis.Cell
	operation string
	x, y      []float64
	cut       int // number of trials that were cut off
}

func (r *reading) overObjects(c *analysis.Cell, operation string) overObjects {
	s := overObjects{cell: c, operation: operation}
	for _, row := range r.Of(c, operation+"_p50") {
		stored, known := row.Trial.Metrics["stored_objects"]
		switch {
		case row.Censored:
			s.cut++
		case known:
			s.x, s.y = append(s.x, stored/1000), append(s.y, row.Value)
		}
	}
	return s
}

func (s *overObjects) sloped() bool { return len(s.x) > 2 && slices.Max(s.x) > slices.Min(s.x) }

// change returns whether the time changes at the level alpha.
func (s *overObjects) change(alpha float64) string {
	var logs []float64 // noise is proportional to the time
	for _, v := range s.y {
		logs = append(logs, math.Log(v))
	}
	switch p := stats.Rising(s.x, logs, assumedAutocorrelation); {
	case p <= alpha:
		return "slower"
	case 1-p <= alpha:
		return "faster"
	}
	return "not significant"
}

// memory is the memory use of a system's processes of one kind.
type memory struct {
	system, process string
	operation       string // operation of the peaks
	processes       int
	rest            []float64
	peaks           []peak
}

// peak is the highest resident memory of one kind of process in one trial.
type peak struct {
	size               float64
	concurrency, block int
	bytes              float64
}

var numbered = regexp.MustCompile(`-[0-9]+$`)

// byProcess returns a trial's values of one kind, by kind of process: "tahoe/storage-2" has the
// kind "storage".
func byProcess(t *analysis.Trial, kind string) map[string][]float64 {
	all := map[string][]float64{}
	for _, d := range t.Details {
		if d.Kind == kind && !math.IsNaN(d.Value) {
			name := d.Name[strings.LastIndex(d.Name, "/")+1:]
			name = numbered.ReplaceAllString(strings.TrimPrefix(name, t.Info.System+"-"), "")
			all[name] = append(all[name], d.Value)
		}
	}
	return all
}

// upload returns the operation whose peak memory is reported for a system, or "".
func (r *reading) upload(system string) string {
	for _, op := range []string{"put", "put-durable"} {
		if slices.ContainsFunc(r.Cells, func(c *analysis.Cell) bool {
			return c.System == system && c.Plan.Overhead.Operation == op && c.Valid > 0
		}) {
			return op
		}
	}
	return ""
}

// memories returns the memory of processes at rest (before anything was stored) and at the peak of
// uploads.
func (r *reading) memories() []*memory {
	var all []*memory
	each := func(t *analysis.Trial, kind string, do func(m *memory, v float64)) {
		for name, xs := range byProcess(t, kind) {
			i := slices.IndexFunc(all, func(m *memory) bool { return m.system == t.Info.System && m.process == name })
			if i < 0 {
				i, all = len(all), append(all, &memory{system: t.Info.System, process: name})
			}
			all[i].processes = max(all[i].processes, len(xs))
			do(all[i], stats.Median(xs))
		}
	}
	for _, t := range r.Trials {
		each(t, record.DetailRSSStart, func(m *memory, v float64) {
			if !slices.Contains(m.rest, v) { // every trial repeats it until the processes are replaced
				m.rest = append(m.rest, v)
			}
		})
		if o := t.Info.Plan.Overhead; t.Valid() && o.Operation == r.upload(t.Info.System) {
			each(t, record.DetailRSSPeak, func(m *memory, v float64) {
				m.operation = o.Operation
				m.peaks = append(m.peaks, peak{size(t.Info), max(1, o.Concurrency), t.Block, v})
			})
		}
	}
	slices.SortFunc(all, func(a, b *memory) int {
		return cmp.Or(r.place(a.system)-r.place(b.system), strings.Compare(a.process, b.process))
	})
	return all
}

// largest returns the peaks of the largest size at a number of concurrent uploads, and the size;
// NaN: there are none.
func (m *memory) largest(concurrency int) (peaks []float64, of float64) {
	of = math.NaN()
	for _, p := range m.peaks {
		if p.concurrency != concurrency || p.size < of {
			continue
		}
		if !(p.size <= of) {
			peaks, of = nil, p.size
		}
		peaks = append(peaks, p.bytes)
	}
	return peaks, of
}

const (
	growthFloor = 0.1  // least share of each file byte in memory that counts as growth with the file
	growthSizes = 0.01 // smaller shares of the largest size are left out of the slope
)

// growth returns the slope of the peak memory of single uploads over their size, and whether
// memory grows with size. Memory that a process retains from an earlier, larger object flattens
// the slope, so a flat slope does not prove the absence of growth. It is proven if the largest
// upload takes little more memory than the process at rest.
func (m *memory) growth(one []float64, largest, confidence float64) (slope analysis.Value, grows string) {
	switch {
	case !(largest > 0):
		return analysis.Text(""), ""
	case m.slope(largest, confidence).Lo > growthFloor:
		return m.slope(largest, analysis.Confidence), "yes"
	case len(m.rest) > 0 && slices.Max(one)-stats.Median(m.rest) < growthFloor*largest:
		return analysis.Text(""), "no"
	}
	return analysis.Text(""), "unknown"
}

// slope returns the slope over the sizes from growthSizes of the largest on or, if these are all
// the same, over all sizes.
func (m *memory) slope(largest, confidence float64) analysis.Value {
	for _, from := range []float64{growthSizes * largest, 0} {
		var x, y []float64
		var blocks []int
		for _, p := range m.peaks {
			if p.concurrency == 1 && p.size >= from {
				x, y, blocks = append(x, p.size), append(y, p.bytes), append(blocks, p.block)
			}
		}
		if len(x) > 0 && slices.Min(x) < slices.Max(x) {
			return analysis.Estimate(stats.BlockSlope(x, y, blocks, confidence))
		}
	}
	return analysis.Text("")
}

func (r *reading) memoryTable() analysis.Table {
	t := r.View.Head("memory")
	all := r.memories()
	for _, m := range all {
		one, largest := m.largest(1)
		most := 1
		for _, p := range m.peaks {
			most = max(most, p.concurrency)
		}
		several, atOnce := analysis.Text(""), math.NaN()
		if most > 1 {
			xs, _ := m.largest(most)
			several, atOnce = median(xs), float64(most)
		}
		slope, grows := m.growth(one, largest, 1-2*falseAlpha/float64(len(all))) // one-sided test
		t.Add(m.system, m.process, float64(m.processes), median(m.rest), m.operation, median(one), largest,
			several, atOnce, slope, grows)
	}
	return t
}

// median returns the median with its exact interval or, for too few values, the range.
func median(xs []float64) analysis.Value {
	v := analysis.Estimate(stats.MedianCI(xs, analysis.Confidence))
	if len(xs) > 1 && !v.Lo.Known() {
		v.Lo, v.Hi = analysis.Num(slices.Min(xs)), analysis.Num(slices.Max(xs))
	}
	return v
}
