package overhead

import (
	"context"
	"math"
	"slices"

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
	if !math.IsNaN(t.wire) {
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

// inventory is what the storage servers held at a moment, with the number and bytes of the run's
// objects at that moment.
type inventory struct {
	system.Holdings
	objects, bytes int64
}

// inventory returns what the servers hold, or nil if the system does not report it. It may walk
// disks, so it is never called while an operation is timed.
func (r *runner) inventory(ctx context.Context) (*inventory, error) {
	s, ok := r.node.(system.Stats)
	if !ok {
		return nil, nil
	}
	var h system.Holdings
	err := r.within(ctx, "ask what its servers hold", func(ctx context.Context) (err error) {
		h, err = s.Stats(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &inventory{h, r.held.Load(), r.bytes.Load()}, nil
}

// inventoried adds to a load what the servers held before and after the trial, unless before is
// nil. It adds nothing after failures or unsettled objects, since they make the bytes per object
// unknown.
func (t *trial) inventoried(ctx context.Context, load *scenario.Load, before *inventory) error {
	if before == nil || t.tally.Failed > 0 || t.unsettled.Load() {
		return nil
	}
	after, err := t.inventory(ctx)
	if err == nil {
		load.Details = slices.Concat(load.Details, before.numbers(record.DetailHeldBefore),
			after.numbers(record.DetailHeldAfter))
	}
	return err
}

// numbers returns the known values of an inventory.
func (i *inventory) numbers(kind string) (all []record.Detail) {
	add := func(name string, v int64) {
		if v >= 0 { // else the system did not report it
			all = append(all, record.Detail{Kind: kind, Name: name, Value: float64(v)})
		}
	}
	add("absolute", i.Absolute)
	add("bytes", i.bytes)
	add("disk", i.Disk)
	add("entries", i.Entries)
	add("inodes", i.Inodes)
	add("objects", i.objects)
	return all
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
