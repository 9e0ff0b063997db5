package overhead

import (
	"context"
	"math"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// load returns the facts about the load generator.
func (t *trial) load() scenario.Load {
	load := t.tally.Load(timing.SelfCPU()-t.begun, t.cpu, t.o.Concurrency)
	load.Details = t.facts
	if t.o.Concurrency == 1 && !math.IsNaN(t.wire) {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadWire, t.wire))
	}
	for _, name := range t.order {
		load.Details = append(load.Details, record.Detail{Kind: record.DetailPhase, Name: name,
			Value: stats.Median(t.phases[name])})
	}
	if t.unsettled.Load() {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadGaveUp, 1))
		load.Notes = append(load.Notes, noteUnsettled)
	}
	return load
}

// inventory returns what the servers hold, with the number and bytes of the run's objects then, as
// details of a kind; nil if the system does not report it. It may walk disks, so it is never called
// while an operation is timed.
func (r *runner) inventory(ctx context.Context, kind string) (all []record.Detail, err error) {
	s, ok := r.node.(system.Stats)
	if !ok {
		return nil, nil
	}
	var h system.Holdings
	err = r.within(ctx, "ask what its servers hold", func(ctx context.Context) (err error) {
		h, err = s.Stats(ctx)
		return err
	})
	add := func(name string, v int64) {
		if err == nil && v >= 0 { // else the system did not report it
			all = append(all, record.Detail{Kind: kind, Name: name, Value: float64(v)})
		}
	}
	add("absolute", h.Absolute)
	add("bytes", r.bytes.Load())
	add("disk", h.Disk)
	add("entries", h.Entries)
	add("inodes", h.Inodes)
	add("objects", r.held.Load())
	return all, err
}

// storedMetrics puts the cost to the servers of each object that was added between the two
// inventories.
func storedMetrics(in *scenario.Measured, put func(string, float64)) {
	grown := func(name string) float64 {
		return in.Detail(record.DetailHeldAfter, name) - in.Detail(record.DetailHeldBefore, name)
	}
	objects, bytes := grown("objects"), grown("bytes")
	if !(objects > 0) {
		return
	}
	put("absolute_per_op", grown("absolute")/objects)
	put("expansion", grown("absolute")/bytes)
	put("disk_per_byte", grown("disk")/bytes)
	put("entries_per_object", grown("entries")/objects)
	put("inodes_per_object", grown("inodes")/objects)
}
