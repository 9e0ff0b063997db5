package engine

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// footprint is the memory of a system's processes around one load: at rest just
// before it, and the highest during it. An attached system has none: its
// processes are not ours to look into.
type footprint struct {
	procs []*testbed.Process
	rest  []testbed.Memory
	peak  []bool // the peak begins at the load
}

// startFootprint looks at the processes before the load.
func startFootprint(procs []*testbed.Process) footprint {
	f := footprint{procs: procs}
	for _, p := range procs {
		f.rest = append(f.rest, p.Memory())
		f.peak = append(f.peak, p.ResetPeak() == nil)
	}
	return f
}

// details are the numbers after the load. A process that the kernel tells
// nothing of is left out, and so is a peak that could not be made to begin anew:
// it would be that of an earlier load.
func (f footprint) details() []record.Detail {
	var all []record.Detail
	add := func(kind, name string, v float64) {
		if !math.IsNaN(v) {
			all = append(all, record.Detail{Kind: kind, Name: name, Value: v})
		}
	}
	for i, p := range f.procs {
		add(record.DetailRSSRest, p.Name(), f.rest[i].RSS)
		add(record.DetailPSSRest, p.Name(), f.rest[i].PSS)
		if f.peak[i] {
			add(record.DetailRSSPeak, p.Name(), p.Memory().Peak)
		}
	}
	return all
}
