package overhead

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// tally adds up the operations of a trial.
type tally struct {
	count  int64 // operations timed
	failed int64 // those that were not ok
	moved  int64 // bytes of objects
	first  int64 // start of the first, in nanoseconds since the trial's epoch
	last   int64 // end of the last
	spent        // of all of them; wire NaN: not counted, or not theirs alone

	phases map[string][]float64 // seconds, by phase
	order  []string             // of the phases
}

// spent is what an operation took of us.
type spent struct {
	took    time.Duration // from call to return
	content time.Duration // in which we made or compared content
	cpu     float64       // seconds, of this process
	wire    float64       // bytes through the client's interface
}

// record takes one operation.
func (t *trial) record(op record.Op, c spent) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	y := &t.tally
	if y.count++; y.count == 1 {
		y.first = op.Start
	}
	y.first, y.last = min(y.first, op.Start), max(y.last, op.LastByte)
	if op.Outcome != record.OK {
		y.failed++
	}
	y.moved += op.Bytes
	y.took += c.took
	y.content += c.content
	y.cpu += c.cpu
	y.wire += c.wire
	t.sink.Progress(y.count, y.moved)
	return t.log.Add(op)
}

// load is what the trial says of itself. cpu is this process's at its beginning.
func (t *trial) load(cpu float64) scenario.Load {
	y := &t.tally
	load := scenario.Load{Seconds: time.Duration(y.last - y.first).Seconds(), CPU: scenario.SelfCPU() - cpu}
	if load.Seconds > 0 {
		load.AchievedRate = float64(y.count) / load.Seconds
	}
	if !math.IsNaN(y.wire) {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadWire, y.wire))
	}
	busy := y.took.Seconds()
	for _, name := range y.order {
		load.Details = append(load.Details, record.Detail{Kind: record.DetailPhase, Name: name,
			Value: stats.Median(y.phases[name])})
	}
	if t.unsettled.Load() {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadGaveUp, 1))
		load.Notes = append(load.Notes, noteUnsettled)
	}
	if scenario.Saturated(y.cpu, busy, t.o.Concurrency, runtime.GOMAXPROCS(0)) {
		load.Invalid = append(load.Invalid, record.ReasonGeneratorSaturated)
		load.Notes = append(load.Notes, fmt.Sprintf("generator: it used %.2g s of CPU in %.2g s of operations", y.cpu,
			busy/float64(t.o.Concurrency)))
	}
	if share := y.content.Seconds() / busy; busy > 0 && share > contentShare {
		load.Notes = append(load.Notes, fmt.Sprintf("generator: to make and compare content took %.0f %% of the "+
			"operations' time", 100*share))
	}
	return load
}

// contentShare is the share of the operations' time from which on making and
// comparing their content is no small part of what was measured.
const contentShare = 0.05

// inventory is what the storage servers held at a moment at which so many
// objects of ours were there.
type inventory struct {
	system.Holdings
	objects, bytes int64
}

// inventory asks the system; nil when it does not say. It may walk disks, so it
// is never called while something is timed.
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

// storedDetails are two inventories, what the system did not report left out.
func storedDetails(before, after *inventory) (all []record.Detail) {
	if before == nil || after == nil {
		return nil
	}
	for kind, i := range map[string]*inventory{record.DetailHeldBefore: before, record.DetailHeldAfter: after} {
		for name, v := range map[string]int64{"objects": i.objects, "bytes": i.bytes,
			"absolute": i.Absolute, "disk": i.Disk, "entries": i.Entries, "inodes": i.Inodes} {
			if v >= 0 {
				all = append(all, record.Detail{Kind: kind, Name: name, Value: float64(v)})
			}
		}
	}
	slices.SortFunc(all, func(a, b record.Detail) int {
		return cmp.Or(-cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// storedMetrics are the metrics of what each object that was added between two
// inventories cost the servers.
func storedMetrics(in *scenario.Measured, put func(string, float64)) {
	grown := func(name string) float64 {
		before, known := in.Detail(record.DetailHeldBefore, name)
		after, too := in.Detail(record.DetailHeldAfter, name)
		if !known || !too {
			return math.NaN()
		}
		return after - before
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
