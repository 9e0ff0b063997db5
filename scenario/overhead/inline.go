package overhead

import (
	"cmp"
	"slices"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

// task is one operation of one system.
type task struct{ system, operation, connections string }

func taskOf(c *analysis.Cell) task {
	return task{c.System, c.Plan.Overhead.Operation, c.Plan.Overhead.Connections}
}

// size is that of a cell's objects, in bytes.
func size(c *analysis.Cell) float64 { return float64(c.Plan.Data.Size) }

// sequential reports whether a cell's times are those of single operations.
func sequential(c *analysis.Cell) bool {
	o := c.Plan.Overhead
	return o.Concurrency <= 1 && o.Operation != "fill"
}

// view remembers what several of its functions need of the same frame.
type view struct{ last *reading }

// reading is a frame with its links by trial, and what never crosses them.
type reading struct {
	*analysis.Frame
	checks  map[int64]record.LinkCheck
	inlines map[task]inline
}

func (v *view) read(f *analysis.Frame) *reading {
	if v.last != nil && v.last.Frame == f {
		return v.last
	}
	r := &reading{f, map[int64]record.LinkCheck{}, map[task]inline{}}
	for _, l := range f.Checks {
		r.checks[l.Trial] = l
	}
	if len(r.checks) > 0 {
		for _, k := range r.tasks() {
			if in, ok := r.inline(k); ok {
				r.inlines[k] = in
			}
		}
	}
	v.last = r
	return r
}

// tasks are the operations that are fitted, by operation, connections and system.
func (r *reading) tasks() []task {
	var all []task
	operation := map[string]int{}
	system := map[string]int{}
	for i, s := range r.Systems {
		system[s.Name] = i
	}
	for i, c := range r.Cells {
		if _, seen := operation[c.Plan.Overhead.Operation]; !seen && sequential(c) {
			operation[c.Plan.Overhead.Operation] = i
		}
		if sequential(c) && !slices.Contains(all, taskOf(c)) {
			all = append(all, taskOf(c))
		}
	}
	slices.SortStableFunc(all, func(a, b task) int {
		return cmp.Or(operation[a.operation]-operation[b.operation], -cmp.Compare(a.connections, b.connections), system[a.system]-system[b.system])
	})
	return all
}

// inline is up to which size an operation's bytes never cross the link.
type inline struct {
	stays float64
	whole bool // no size of the plan crosses: the operation is local
}

// crossedShare of an object on the link, beyond the noise of connections that stay open,
// is the least that shows that the object crossed it during the operation.
const crossedShare = 0.5

// inline finds the sizes whose bytes do not cross the link: all up to the largest of which
// it carried too little.
func (r *reading) inline(k task) (in inline, found bool) {
	planned, carried := 0.0, map[float64]float64{} // by size: the most bytes on the link
	for _, c := range r.Cells {
		if !sequential(c) || taskOf(c) != k {
			continue
		}
		planned = max(planned, size(c))
		if wire, counted := c.Metrics["wire_bytes"]; counted {
			carried[size(c)] = max(carried[size(c)], float64(wire.Median))
		}
	}
	for n, wire := range carried {
		moved := n
		if k.operation == "stat" || k.operation == "delete" {
			moved = 0
		}
		if wire < leastWire+crossedShare*moved {
			in.stays, found = max(in.stays, n), true
		}
	}
	in.whole = in.stays >= planned
	return in, found
}

// local reports whether the bytes of a cell's objects stay where they are.
func (r *reading) local(c *analysis.Cell) bool {
	k := taskOf(c)
	if k.operation == "fill" {
		k.operation = "put" // what it times first
	}
	in, ok := r.inlines[k]
	return ok && size(c) <= in.stays
}

// alike: the time of what crosses the link says nothing of one that does not.
func (v *view) alike(f *analysis.Frame, metric string, a, b *analysis.Cell) bool {
	r := v.read(f)
	return metric == "system_rss_peak" || r.local(a) == r.local(b)
}
