package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/page"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
)

const (
	recordedOps = 100_000_000
	// recordRate is the simulated arrival rate of the operations.
	recordRate = 50_000
	// generatorCPU is the CPU time of the load generator per operation of 1 KiB, in seconds; see
	// the httpload benchmark.
	generatorCPU = 0.13 / 10_000
	recordBudget = 0.05 * generatorCPU
	maxRecordRSS = 300_000_000
)

// benchRecord records 10^8 synthetic operations like an engine, reads them back, summarises and
// reports them, and prints the cost.
func benchRecord(ctx context.Context) error {
	parent, err := os.MkdirTemp("", "plimsoll-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "run")

	// Reset the peak: other benchmarks may have run in this process.
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of memory: %w", err)
	}

	plan, err := recordedPlan()
	if err != nil {
		return err
	}
	var making float64
	recording, err := timed(func() (err error) { making, err = recordAll(ctx, dir, plan); return err })
	if err != nil {
		return err
	}
	file, err := os.Stat(filepath.Join(dir, "run.db"))
	if err != nil {
		return err
	}
	r, err := record.Open(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	reading, err := timed(func() error { return readAll(ctx, r) })
	if err != nil {
		return err
	}
	reporting, err := timed(func() error { return reportAll(r) })
	if err != nil {
		return err
	}
	self, err := procfs.Self()
	if err != nil {
		return err
	}
	status, err := self.NewStatus()
	if err != nil {
		return err
	}
	perOp := (recording - making) / recordedOps
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "operations\t%d\n", int(recordedOps))
	fmt.Fprintf(w, "encode, decode, summarise, write: CPU\t%.3f µs/operation\n", perOp*1e6)
	fmt.Fprintf(w, "… of a generator's CPU\t%.2f %% (limit 5 %%)\n", 100*perOp/generatorCPU)
	fmt.Fprintf(w, "… at %d operations/s\t%.2f %% of one core\n", int(recordRate), 100*perOp*recordRate)
	fmt.Fprintf(w, "read back, decode, summarise: CPU\t%.3f µs/operation\n", reading/recordedOps*1e6)
	fmt.Fprintf(w, "report: build, page, summary.json: CPU\t%.3f s\n", reporting)
	fmt.Fprintf(w, "disk\t%.2f GB (%.1f B/operation)\n", float64(file.Size())/1e9, float64(file.Size())/recordedOps)
	fmt.Fprintf(w, "peak resident memory of all this\t%.1f MB (limit %d MB)\n", float64(status.VmHWM)/1e6,
		maxRecordRSS/1_000_000)
	w.Flush()
	if status.VmHWM > maxRecordRSS {
		return fmt.Errorf("peak resident memory %d MB is above %d MB", status.VmHWM/1e6, maxRecordRSS/1_000_000)
	}
	if perOp > recordBudget {
		return fmt.Errorf("recording costs %.3f µs per operation, above %.3f µs", perOp*1e6, recordBudget*1e6)
	}
	return nil
}

// timed returns the CPU time that do takes, in seconds.
func timed(do func() error) (float64, error) {
	began := scenario.SelfCPU()
	err := do()
	return scenario.SelfCPU() - began, err
}

// recordedFile is the experiment of the simulated operations: 10 trials.
const recordedFile = `
scenario: retrieve
question: What does it take to record and to report many operations?
systems: [nginx, boxo]
baseline: nginx
data: {size: 1GiB}
retrieve: {concurrency: 100, range: 1KiB, duration: 200s}
repetitions: 5
`

func recordedPlan() (*experiment.Plan, error) {
	e, err := experiment.Parse("record.yaml", []byte(recordedFile), nil, experiment.Catalog{
		{Name: "nginx", Modes: []string{"start"}, Baseline: true, Can: []string{"http"}},
		{Name: "boxo", Modes: []string{"start"}, Can: []string{"http"}},
	})
	if err != nil {
		return nil, err
	}
	return e.Plan()
}

// recordAll writes the operations and returns the CPU time for generating them.
func recordAll(ctx context.Context, dir string, plan *experiment.Plan) (making float64, err error) {
	raw, err := plan.Marshal()
	if err != nil {
		return 0, err
	}
	run, err := record.Create(dir, raw, nil, retrieve.Scenario{}.Metrics())
	if err != nil {
		return 0, err
	}
	defer run.Close()
	for block := range plan.Blocks {
		for _, cell := range plan.Cells {
			took, err := recordTrial(ctx, run, cell, block, recordedOps/(plan.Blocks*len(plan.Cells)))
			if err != nil {
				return 0, err
			}
			making += took
		}
	}
	return making, run.Close()
}

func recordTrial(
	ctx context.Context, run *record.Run, cell experiment.Cell, block, count int,
) (making float64, err error) {
	w, err := run.Begin(cell.ID, block, false, time.Now())
	if err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(uint64(w.ID()), 1))
	ops := make([]record.Op, record.BlockSize)
	var encoded []byte
	var clock int64
	for n := 0; n < count; n += len(ops) {
		ops = ops[:min(len(ops), count-n)]
		began := scenario.SelfCPU()
		for i := range ops {
			clock += rng.Int64N(2 * int64(time.Second) / recordRate)
			ops[i] = madeUp(rng, clock)
		}
		making += scenario.SelfCPU() - began
		encoded = record.AppendBlock(encoded[:0], ops)
		if err := errors.Join(w.Block(encoded), ctx.Err()); err != nil {
			return 0, err
		}
	}
	seconds := float64(clock) / 1e9
	return making, w.End(record.Trial{Seconds: seconds, Metrics: retrieve.Scenario{}.Measure(scenario.Measured{
		Cell: cell, Summary: w.Summary(), Load: scenario.Load{Seconds: seconds}})})
}

// readAll checks that the operations read back are those that were written.
func readAll(ctx context.Context, r *record.Reader) error {
	trials, err := r.Trials()
	if err != nil {
		return err
	}
	var ops []record.Op
	total := int64(0)
	for _, t := range trials {
		got := record.NewSummary()
		for b, err := range r.Blocks(t.ID) {
			if err == nil {
				ops, err = record.DecodeBlock(b, ops[:0])
			}
			if err = errors.Join(err, ctx.Err()); err == nil {
				err = got.Ops(ops)
			}
			if err != nil {
				return err
			}
		}
		written, err := r.Summary(t.ID)
		if err != nil {
			return err
		}
		g, w := got.Counts(), written.Counts()
		if total += g.Ops; g.Outcomes != w.Outcomes || g.Bytes != w.Bytes {
			return fmt.Errorf("read back %+v, written %+v", g, w)
		}
	}
	if total != recordedOps {
		return fmt.Errorf("read back %d operations of %d", total, recordedOps)
	}
	return nil
}

// reportAll builds the run's page and summary.
func reportAll(r *record.Reader) error {
	rep, err := report.Build(r)
	if err != nil {
		return err
	}
	if rep.Run.Operations != recordedOps || len(rep.Cells) == 0 {
		return fmt.Errorf("the report has %d operations and %d figures", rep.Run.Operations, len(rep.Cells))
	}
	return errors.Join(page.HTML(io.Discard, rep, false), page.JSON(io.Discard, rep))
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
