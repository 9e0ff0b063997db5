package scenario

import (
	"context"

	"github.com/plimsoll-project/plimsoll/system"
)

// inventory is what the storage servers held at a moment at which so many
// objects of ours were there.
type inventory struct {
	system.Holdings
	objects, bytes int64
}

// inventory asks the system; nil when it does not tell. It may walk disks, so it
// is never called while something is timed.
func (r *overheadRunner) inventory(ctx context.Context) (*inventory, error) {
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

// storedMetrics is what each object of ours that was added between two
// inventories cost the servers.
func storedMetrics(before, after *inventory) map[string]float64 {
	if before == nil || after == nil {
		return nil
	}
	objects, bytes := float64(after.objects-before.objects), float64(after.bytes-before.bytes)
	if objects <= 0 {
		return nil
	}
	m := map[string]float64{}
	put := func(key string, from, to int64, by float64) {
		if from >= 0 && to >= 0 { // −1: the system does not tell
			m[key] = float64(to-from) / by
		}
	}
	put("absolute_per_op", before.Absolute, after.Absolute, objects)
	put("expansion", before.Absolute, after.Absolute, bytes)
	put("disk_per_byte", before.Disk, after.Disk, bytes)
	put("entries_per_object", before.Entries, after.Entries, objects)
	put("inodes_per_object", before.Inodes, after.Inodes, objects)
	return m
}
