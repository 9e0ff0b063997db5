package retrieve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// mixTrial is a trial of reads, writes and removals by ratio. It reads objects of the data set, and
// removes only objects that it has written, so that every trial begins with the same objects.
type mixTrial struct {
	*runner
	spec    *experiment.Retrieve
	store   system.Store
	set     []object
	size    int64 // of each object
	popular workload.Zipf
	seed    uint64
	names   string // prefix of the names of written objects
	sink    scenario.Sink
	tally   *scenario.Tally
	begun   atomic.Int64 // number of operations

	mu   sync.Mutex
	puts []system.Object // stored by the trial and not removed, oldest first
}

// mixTrial executes a trial of a mix.
func (r *runner) mixTrial(ctx context.Context, cell experiment.Cell, seed uint64, sink scenario.Sink,
) (scenario.Load, error) {
	t := &mixTrial{
		runner: r, spec: cell.Retrieve, set: r.sets[cell.Data.Key()], size: int64(cell.Data.Size), seed: seed,
		names: fmt.Sprintf("plimsoll-%d-%x-", r.site.Seed, sink.Epoch.UnixNano()), sink: sink,
		tally: scenario.NewTally(sink), store: r.node.(system.Store), // Problems has checked this
	}
	t.popular = workload.NewZipf(len(t.set), t.spec.Zipf)
	defer func() { // remove the remaining objects of the trial
		r.site.RemoveMade(ctx, r.node, t.puts, func(o system.Object) { r.Removed(o.Ref) })
	}()
	n := t.spec.Concurrency
	sink.Begin()
	cpu, first := timing.SelfCPU(), t.now()
	err := scenario.Workers(ctx, n, func(ctx context.Context, worker int) error {
		return t.work(ctx, uint32(worker), first)
	})
	used := timing.SelfCPU() - cpu
	sink.End()
	load := t.tally.Load(used, used, n)
	load.Notes = append(load.Notes, "operations: through the system's own client, in this process; every byte read "+
		"is compared")
	return load, errors.Join(t.tally.Flush(), err)
}

func (t *mixTrial) now() time.Duration { return time.Since(t.sink.Epoch) }

// work executes operations until all are done or the time is over. Running operations continue
// to their end, since it is unknown what an interrupted put leaves.
func (t *mixTrial) work(ctx context.Context, worker uint32, first time.Duration) error {
	most := t.spec.Duration.Std()
	for ctx.Err() == nil && (most == 0 || t.now()-first < most) {
		k := t.begun.Add(1) - 1
		if t.spec.Requests > 0 && k >= t.spec.Requests {
			return nil
		}
		op := record.Op{Worker: worker, Object: uint32(k)}
		failed := t.operate(ctx, &op, k)
		if err := t.tally.Add(op); err != nil {
			return err
		}
		if failed != nil { // avoid a busy loop
			time.Sleep(failurePause)
		}
	}
	return nil
}

const failurePause = 10 * time.Millisecond

// operate executes operation k, which depends on the seed and k. A removal stores an object
// instead if the trial has none to remove. The error is why the operation is not ok.
func (t *mixTrial) operate(ctx context.Context, op *record.Op, k int64) error {
	timed := func(kind record.OpKind, length int64, do func(*scenario.Operation) error) error {
		op.Kind, op.Length = kind, length
		return scenario.Timed(ctx, t.site.Limits, t.now, op, do)
	}
	m := t.spec.Mix
	at := int(workload.Mix(t.seed^11, uint64(k)) % uint64(m.Get+m.Put+m.Delete))
	var old system.Ref
	if at >= m.Get+m.Put {
		old = t.oldest()
	}
	switch {
	case at < m.Get:
		i := t.popular.Pick(workload.Uniform(t.seed^12, uint64(k)))
		op.Object = uint32(i)
		return timed(record.OpGet, t.size, func(w *scenario.Operation) error {
			return t.store.Get(w.Ctx, t.set[i].ref, w.Receiving(*t.content(i, t.size), 0))
		})
	case old != "":
		err := timed(record.OpDelete, 0, func(w *scenario.Operation) error {
			return t.node.(system.Deleter).Delete(w.Ctx, old)
		})
		if err != nil {
			t.keep(old) // it may still exist
		} else {
			t.Removed(old)
		}
		return err
	}
	c := workload.Content{Seed: t.seed ^ 13, Index: uint64(k), Size: t.size}
	name := fmt.Sprintf("%s%08d.bin", t.names, k)
	var ref system.Ref
	err := timed(record.OpPut, c.Size, func(w *scenario.Operation) (err error) {
		ref, err = t.store.Put(w.Ctx, name, c.Size, w.Sending(c))
		return err
	})
	t.Add(name, ref)
	if err == nil {
		t.keep(ref)
	}
	return err
}

// oldest takes the oldest object to remove from t.puts; empty: there is none.
func (t *mixTrial) oldest() (ref system.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.puts) > 0 {
		ref, t.puts = t.puts[0].Ref, t.puts[1:]
	}
	return ref
}

func (t *mixTrial) keep(ref system.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.puts = append(t.puts, system.Object{Ref: ref, Size: t.size})
}

// readKinds returns the metrics of each kind of operation of a mix.
func readKinds(t *analysis.Trial, facts *record.Reader, failed *error) (rows []analysis.Row) {
	kinds := scenario.ByKind(scenario.UntilError(facts.Ops(t.ID), failed))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		rows = append(rows, rowsOfKind(t, kind.String(), kinds[kind])...)
	}
	return rows
}

func rowsOfKind(t *analysis.Trial, kind string, s *record.Summary) (rows []analysis.Row) {
	m := map[string]float64{}
	ofOperations(s, t.Seconds, scenario.Numbers(m))
	if c := s.Counts(); m["duration_p50"] == 0 && c.Ops > c.Finished() {
		m["duration_p50"] = math.Inf(1) // most were cut off
	}
	for _, metric := range slices.Sorted(maps.Keys(m)) {
		rows = append(rows, analysis.Row{Trial: t, Entity: kind, Metric: metric, Value: m[metric],
			Censored: math.IsInf(m[metric], 1)})
	}
	return rows
}

// kindTable returns the medians over the valid trials for each kind of operation of a mix.
func kindTable(f *analysis.Frame) []analysis.Table {
	t := f.View.Head("operations")
	type of struct{ kind, metric string }
	for _, c := range f.Cells {
		values, kinds := map[of][]float64{}, map[string]bool{}
		for _, r := range f.Rows {
			if r.Trial.Info == c && r.Entity != "" && r.Trial.Valid() {
				at := of{r.Entity, r.Metric}
				values[at], kinds[r.Entity] = append(values[at], r.Value), true
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			row := []any{c.System, f.Layout.Where(c), kind}
			for _, column := range t.Head[len(row):] {
				row = append(row, stats.Median(values[of{kind, column.Key}]))
			}
			t.Add(row...)
		}
	}
	return []analysis.Table{t}
}
