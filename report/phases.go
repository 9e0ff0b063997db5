package report

import (
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// PhaseCost is what a phase of an operation takes by the system's own account,
// and how many round trips it takes by ours: the slope of its time over the
// measured round trip. Phases may overlap; they need not add up.
type PhaseCost struct {
	System      string   `json:"system"`
	Operation   string   `json:"operation"`
	Connections string   `json:"connections"`
	Size        Num      `json:"size"` // bytes
	Phase       string   `json:"phase"`
	N           int      `json:"n"`    // valid trials
	RTT         Num      `json:"rtt"`  // seconds: the shortest round trip, median; unknown when none was measured
	Took        Num      `json:"took"` // seconds at that round trip, median
	Rounds      Estimate `json:"rounds"`
}

// phasePoint is one phase in one trial.
type phasePoint struct{ rtt, took float64 }

// account fills the phases of each operation and size, in the system's order.
func (r *Report) account() {
	r.Phases = []PhaseCost{}
	type key struct {
		task
		size  float64
		phase string
	}
	points := map[key][]phasePoint{}
	var order []key
	for i := range r.Trials {
		t := &r.Trials[i]
		if !t.Valid() || !t.Info.sequential() {
			continue
		}
		for _, d := range t.Details {
			if d.Kind != record.DetailPhase {
				continue
			}
			k := key{t.Info.task(), t.Info.size(), d.Name}
			if points[k] == nil {
				order = append(order, k)
			}
			rtt := float64(unknown)
			if l, ok := r.checks[t.ID]; ok {
				rtt = l.RTT
			}
			points[k] = append(points[k], phasePoint{rtt, d.Value})
		}
	}
	var tasks []task
	for _, k := range order {
		if !slices.Contains(tasks, k.task) {
			tasks = append(tasks, k.task)
		}
	}
	r.sortTasks(tasks)
	slices.SortStableFunc(order, func(a, b key) int {
		if i, j := slices.Index(tasks, a.task), slices.Index(tasks, b.task); i != j {
			return i - j
		}
		return int(a.size - b.size)
	})
	for _, k := range order {
		c := PhaseCost{System: k.system, Operation: k.operation, Connections: k.connections, Size: Num(k.size), Phase: k.phase,
			N: len(points[k]), RTT: unknown, Rounds: noEstimate}
		var rtts, took []float64
		for _, p := range points[k] {
			if Num(p.rtt).Known() {
				rtts, took = append(rtts, p.rtt), append(took, p.took)
			}
		}
		if len(rtts) == 0 {
			for _, p := range points[k] {
				took = append(took, p.took)
			}
			c.Took = Num(middle(took))
			r.Phases = append(r.Phases, c)
			continue
		}
		shortest := slices.Min(rtts)
		var first, at []float64
		for i, x := range rtts {
			if x <= shortest+leastRTT/2 {
				first, at = append(first, took[i]), append(at, x)
			}
		}
		c.Took, c.RTT = Num(middle(first)), Num(middle(at))
		if slices.Max(rtts) > shortest+leastRTT {
			c.Rounds = estimateOf(stats.Slope(rtts, took, Confidence))
		}
		r.Phases = append(r.Phases, c)
	}
}
