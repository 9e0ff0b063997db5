package overhead

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// fill adds objects to those that are there, then asks for some of them. The
// objects stay: the trials of later blocks find more. A deployment that is
// brought up anew begins at none, and stored_objects says so.
func (t *trial) fill(ctx context.Context) (scenario.Load, error) {
	size := int64(t.cell.Data.Size)
	held := float64(t.held.Load())
	cpu := scenario.SelfCPU()
	defer func() { // also those of a trial that came to nothing
		t.filled[size] = append(t.filled[size], t.made...)
		t.made = nil
	}()
	share := func(worker int) int { return (t.o.Objects - worker + t.o.Concurrency - 1) / t.o.Concurrency }
	err := t.loop(ctx, share, 0, func(_ context.Context, worker, n int) (action, error) {
		a := t.put(record.OpPut, t.content(worker, n), t.node.Put)
		a.accepted = nil // all of them are waited for together
		return a, nil
	})
	t.patience.pending = append(t.patience.pending, t.made...)
	if err == nil {
		err = t.settleFilled(ctx)
	}
	if err != nil {
		return t.load(cpu), err
	}
	there := slices.Concat(t.filled[size], t.made)
	if len(there) > 0 {
		if err := t.probe(ctx, there); err != nil {
			return t.load(cpu), err
		}
	}
	load := t.load(cpu)
	load.Details = append(load.Details, scenario.Fact(scenario.LoadHeld, held))
	if t.tally.failed > 0 || t.unsettled.Load() {
		return load, nil
	}
	after, err := t.inventory(ctx)
	if err != nil {
		return load, err
	}
	load.Details = append(load.Details, storedDetails(t.before, after)...)
	return load, nil
}

// memoryMetrics are the metrics that follow from the operations one by one, of which
// there are few.
func memoryMetrics(in *scenario.Measured, put func(string, float64)) {
	o, c := in.Cell.Overhead, in.Summary.Counts()
	fills := o.Operation == "fill"
	kinds := map[record.OpKind]*record.Summary{}
	var busy time.Duration
	for op := range scenario.Stream(in.Ops) {
		busy += time.Duration(op.LastByte - op.Start)
		if !fills {
			continue
		}
		if kinds[op.Kind] == nil {
			kinds[op.Kind] = record.NewSummary()
		}
		_ = kinds[op.Kind].Ops([]record.Op{op}) // never fails
	}
	if busy > 0 {
		put("ops_rate", float64(c.Outcomes[record.OK])/busy.Seconds()*float64(o.Concurrency))
	}
	if !fills { // operations of several kinds have no common number of bytes
		if wire, counted := in.Detail(record.DetailLoad, scenario.LoadWire); counted && c.Ops > 0 &&
			in.LoadDetail(scenario.LoadGaveUp) == 0 {
			put("wire_bytes", wire/float64(c.Ops))
		}
		return
	}
	for key, kind := range map[string]record.OpKind{"put_p50": record.OpPut, "get_p50": record.OpGet,
		"stat_p50": record.OpStat} {
		// cut-off ones are longer than they were watched
		if s := kinds[kind]; s != nil && s.Count(record.Duration) > 0 {
			put(key, s.KaplanMeier(record.Duration, 0.5))
		}
	}
	if held, known := in.Detail(record.DetailLoad, scenario.LoadHeld); known {
		put("stored_objects", held+float64(o.Objects)/2)
	}
}

// probe reads some of the objects that are there, and asks about some.
func (t *trial) probe(ctx context.Context, there []object) error {
	some := func(kind uint64, worker, n int) int {
		return rand.New(rand.NewPCG(t.seed^kind, uint64(worker)<<32|uint64(n))).IntN(len(there))
	}
	err := t.loop(ctx, t.each, t.o.Time.Std(), func(ctx context.Context, worker, n int) (action, error) {
		i := some(1, worker, n)
		return t.get(ctx, there[i], i)
	})
	if err != nil {
		return err
	}
	if _, ok := t.node.(system.Stater); !ok {
		return nil
	}
	return t.loop(ctx, t.each, t.o.Time.Std(), func(ctx context.Context, worker, n int) (action, error) {
		i := some(2, worker, n)
		return t.stat(ctx, there[i], i)
	})
}
