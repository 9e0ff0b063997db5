package scenario

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// fill adds objects to those that are there, then asks for some of them. The
// objects stay: the trials of later blocks find more. A deployment that is
// brought up anew begins at none, and stored_objects says so.
func (t *overheadTrial) fill(ctx context.Context) (Load, error) {
	size := int64(t.cell.Data.Size)
	mid := float64(t.held.Load()) + float64(t.o.Objects)/2
	cpu := selfCPU()
	defer func() { // also those of a trial that came to nothing
		t.filled[size] = append(t.filled[size], t.made...)
		t.made = nil
	}()
	t.tally.kinds = map[record.OpKind]*record.Summary{}
	share := func(worker int) int { return (t.o.Objects - worker + t.o.Concurrency - 1) / t.o.Concurrency }
	err := t.loop(ctx, share, 0, func(_ context.Context, worker, n int) (action, error) {
		a := t.put(t.content(worker, n))
		a.accepted = nil // all of them are waited for together
		return a, nil
	})
	for _, o := range t.made {
		t.patience.pending = append(t.patience.pending, o.ref)
	}
	if err == nil {
		err = t.settleFilled(ctx)
	}
	if err != nil {
		return t.load(cpu), err
	}
	there := append(append([]object{}, t.filled[size]...), t.made...)
	if len(there) > 0 {
		if err := t.probe(ctx, there); err != nil {
			return t.load(cpu), err
		}
	}
	load := t.load(cpu)
	load.Metrics["stored_objects"] = mid
	t.medians(&load)
	if t.tally.failed > 0 || t.unsettled {
		return load, nil
	}
	after, err := t.inventory(ctx)
	if err != nil {
		return load, err
	}
	maps.Copy(load.Metrics, storedMetrics(t.before, after))
	return load, nil
}

// medians are the median times of each kind of operation, those that were cut
// off taken as longer than they were watched.
func (t *overheadTrial) medians(load *Load) {
	for _, k := range []struct {
		key, what string
		kind      record.OpKind
	}{{"put_p50", "put", record.OpPut}, {"get_p50", "get", record.OpGet}, {"stat_p50", "stat", record.OpStat}} {
		s := t.tally.kinds[k.kind]
		if s == nil {
			continue
		}
		ok, cut := s.Count(record.Duration), s.Censored(record.Duration)
		if v := s.KaplanMeier(record.Duration, 0.5); ok > 0 && !math.IsInf(v, 0) {
			load.Metrics[k.key] = v
		} else if cut > 0 {
			load.Notes = append(load.Notes, noteNoMedian(k.what, cut, ok+cut))
		}
	}
}

// probe reads some of the objects that are there, and asks about some.
func (t *overheadTrial) probe(ctx context.Context, there []object) error {
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
