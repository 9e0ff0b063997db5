package engine

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// footprint is the memory of a system's processes around one load: just before
// it, and the highest during it. They live through many loads, and what one
// leaves behind is in the numbers of the next: so what they held before the first
// is recorded, too. An attached system has none: its processes are not ours to
// look into.
type footprint struct {
	procs   []testbed.Process
	started map[testbed.ProcessID]testbed.Memory
	rest    []testbed.Memory
	peak    []bool // the peak begins at the load
}

// memoryOf is what processes hold now.
func memoryOf(procs []testbed.Process) map[testbed.ProcessID]testbed.Memory {
	all := map[testbed.ProcessID]testbed.Memory{}
	for _, p := range procs {
		all[p.ID()] = p.Memory()
	}
	return all
}

// startFootprint looks at the processes of a system before the load.
func startFootprint(s *site) footprint {
	f := footprint{procs: s.processes(), started: s.started}
	for _, p := range f.procs {
		f.rest = append(f.rest, p.Memory())
		f.peak = append(f.peak, p.ResetPeak() == nil)
	}
	return f
}

// details are the numbers after the load. A process that the kernel says
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
		add(record.DetailPID, p.Name(), float64(p.ID().PID))
		if m, ok := f.started[p.ID()]; ok {
			add(record.DetailRSSStart, p.Name(), m.RSS)
			add(record.DetailPSSStart, p.Name(), m.PSS)
		}
		add(record.DetailRSSRest, p.Name(), f.rest[i].RSS)
		add(record.DetailPSSRest, p.Name(), f.rest[i].PSS)
		if f.peak[i] {
			add(record.DetailRSSPeak, p.Name(), p.Memory().Peak)
		}
	}
	return all
}
