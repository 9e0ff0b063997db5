package report_test

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/report/page"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
)

// TestManyOperations records operations like an engine, reads them back and reports them. `make
// bench` sets PLIMSOLL_OPERATIONS to 10^8, which takes about a minute and has limits.
func TestManyOperations(t *testing.T) {
	const (
		rate         = 50_000        // of the simulated operations, per second
		generatorCPU = 0.13 / 10_000 // seconds per operation of 1 KiB: see httpload's BenchmarkBesideOthers
		most         = 300_000_000   // bytes of resident memory
	)
	count, limited := 200_000, false
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_OPERATIONS")); err == nil {
		count, limited = n, true
	}
	plan, err := synthetic.Plan(`
scenario: retrieve
question: What does it take to record and to report many operations?
systems: [nginx, boxo]
baseline: nginx
data: {size: 1GiB}
retrieve: {concurrency: 100, range: 1KiB, duration: 200s}
repetitions: 5
`)
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	run, err := record.Create(dir, raw, nil, retrieve.Scenario{}.Metrics())
	must(t, err)
	var making float64
	recording := timed(func() {
		for block := range plan.Blocks {
			for _, cell := range plan.Cells {
				making += recordTrial(t, run, cell, block, count/(plan.Blocks*len(plan.Cells)), rate)
			}
		}
		must(t, run.Close())
	})
	file, err := os.Stat(filepath.Join(dir, "run.db"))
	must(t, err)
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	reading := timed(func() {
		if n := readAll(t, r); n != int64(count) {
			t.Errorf("read back %d operations of %d", n, count)
		}
	})
	reporting := timed(func() {
		rep, err := report.Build(r, false)
		must(t, err)
		if rep.Run.Operations != int64(count) || len(rep.Cells) == 0 {
			t.Errorf("the report has %d operations and %d figures", rep.Run.Operations, len(rep.Cells))
		}
		must(t, errors.Join(page.HTML(io.Discard, rep, false), page.JSON(io.Discard, rep)))
	})
	self, err := procfs.Self()
	must(t, err)
	status, err := self.NewStatus()
	must(t, err)
	ops := float64(count)
	perOp := (recording - making) / ops
	t.Logf("operations                               %d", count)
	t.Logf("encode, decode, summarise, write: CPU    %.3f µs/operation", perOp*1e6)
	t.Logf("… of a generator's CPU                   %.2f %% (limit 5 %%)", 100*perOp/generatorCPU)
	t.Logf("… at %d operations/s                  %.2f %% of one core", rate, 100*perOp*rate)
	t.Logf("read back, decode, summarise: CPU        %.3f µs/operation", reading/ops*1e6)
	t.Logf("report: build, page, summary.json: CPU   %.3f s", reporting)
	t.Logf("disk                                     %.2f GB (%.1f B/operation)", float64(file.Size())/1e9,
		float64(file.Size())/ops)
	t.Logf("peak resident memory of all this         %.1f MB (limit %d MB)", float64(status.VmHWM)/1e6, int(most/1e6))
	if limited && (status.VmHWM > most || perOp > 0.05*generatorCPU) {
		t.Error("above the limits")
	}
}

// timed returns the CPU time that do takes, in seconds.
func timed(do func()) float64 {
	began := timing.SelfCPU()
	do()
	return timing.SelfCPU() - began
}

// recordTrial writes a trial and returns the CPU time for generating its operations.
func recordTrial(t *testing.T, run *record.Run, cell experiment.Cell, block, count, rate int) (making float64) {
	w, err := run.Begin(cell.ID, block, false, time.Now())
	must(t, err)
	rng := rand.New(rand.NewPCG(uint64(w.ID()), 1))
	ops := make([]record.Op, record.BlockSize)
	var encoded []byte
	var clock int64
	for n := 0; n < count; n += len(ops) {
		ops = ops[:min(len(ops), count-n)]
		making += timed(func() {
			for i := range ops {
				clock += rng.Int64N(2 * int64(time.Second) / int64(rate))
				ops[i] = madeUp(rng, clock)
			}
		})
		encoded = record.AppendBlock(encoded[:0], ops)
		must(t, w.Block(encoded))
	}
	seconds := float64(clock) / 1e9
	must(t, w.End(record.Trial{Seconds: seconds, Metrics: retrieve.Scenario{}.Measure(scenario.Measured{
		Cell: cell, Summary: w.Summary(), Load: scenario.Load{Seconds: seconds}})}))
	return making
}

// readAll checks that the operations read back are those that were written, and returns their
// number.
func readAll(t *testing.T, r *record.Reader) (total int64) {
	trials, err := r.Trials()
	must(t, err)
	one := make([]record.Op, 1)
	for _, trial := range trials {
		got := record.NewSummary()
		for op, err := range r.Ops(trial.ID) {
			one[0] = op
			must(t, errors.Join(err, got.Ops(one)))
		}
		written, err := r.Summary(trial.ID)
		must(t, err)
		g, w := got.Counts(), written.Counts()
		if total += g.Ops; g.Outcomes != w.Outcomes || g.Bytes != w.Bytes {
			t.Errorf("read back %+v, written %+v", g, w)
		}
	}
	return total
}

// madeUp generates an operation that ends at a time: a range of a large object by one of 100
// workers.
func madeUp(rng *rand.Rand, clock int64) record.Op {
	took := min(int64(1e6*math.Exp(rng.NormFloat64()/2)), clock)
	op := record.Op{
		Kind: record.OpRange, Status: 206, Worker: rng.Uint32N(100), Object: rng.Uint32N(16),
		Offset: rng.Int64N(1 << 30), Length: 1024, Bytes: 1024,
		Intended: clock - took, Start: clock - took, FirstByte: clock - took/4, LastByte: clock,
	}
	switch rng.Uint32N(1000) {
	case 0:
		op.Outcome, op.Status, op.Bytes, op.Class = record.Error, 500, 0, "status 500"
	case 1:
		op.Outcome, op.Bytes, op.FirstByte = record.Deadline, 0, 0
	}
	return op
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
