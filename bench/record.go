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
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/page"
)

const (
	recordedOps = 100_000_000
	// recordRate is the rate at which the operations pretend to come.
	recordRate = 50_000
	// generatorCPU is the processor time of the load generator per operation
	// of 1 KiB, in seconds; see the httpload benchmark.
	generatorCPU = 0.13 / 10_000
	recordBudget = 0.05 * generatorCPU
	maxRecordRSS = 300_000_000
)

// benchRecord records 10^8 synthetic operations as an engine does, reads them
// back, summarises and reports them, and says what that costs.
func benchRecord(ctx context.Context) error {
	parent, err := os.MkdirTemp("", "plimsoll-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "run")

	// Other benchmarks may have run in this process: begin to count anew.
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of memory: %w", err)
	}

	direct, writing, err := recordAll(ctx, dir)
	if err != nil {
		return err
	}
	file, err := os.Stat(filepath.Join(dir, "run.db"))
	if err != nil {
		return err
	}
	size := file.Size()
	reading, err := readAll(ctx, dir, direct)
	if err != nil {
		return err
	}
	reporting, err := reportAll(dir)
	if err != nil {
		return err
	}
	rss, err := peakRSS()
	if err != nil {
		return err
	}
	perOp := writing.Seconds() / recordedOps
	fmt.Printf("%-44s %10d\n", "operations", int(recordedOps))
	fmt.Printf("%-44s %10.3f µs/operation\n", "encode, decode, summarise, write: CPU", perOp*1e6)
	fmt.Printf("%-44s %10.2f %% (limit 5 %%)\n", "… of a generator's CPU", 100*perOp/generatorCPU)
	fmt.Printf("%-44s %10.2f %% of one core\n", fmt.Sprintf("… at %d operations/s", int(recordRate)),
		100*perOp*recordRate)
	fmt.Printf("%-44s %10.3f µs/operation\n", "read back, decode, summarise: CPU",
		reading.Seconds()/recordedOps*1e6)
	fmt.Printf("%-44s %10.3f s\n", "report: build, page, summary.json: CPU", reporting.Seconds())
	fmt.Printf("%-44s %10.2f GB (%.1f B/operation)\n", "disk", float64(size)/1e9, float64(size)/recordedOps)
	fmt.Printf("%-44s %10.1f MB (limit %d MB)\n", "peak resident memory of all this", float64(rss)/1e6,
		maxRecordRSS/1_000_000)
	if rss > maxRecordRSS {
		return fmt.Errorf("peak resident memory %d MB is above %d MB", rss/1e6, maxRecordRSS/1_000_000)
	}
	if perOp > recordBudget {
		return fmt.Errorf("recording costs %.3f µs per operation, above %.3f µs", perOp*1e6, recordBudget*1e6)
	}
	return nil
}

// recordedFile is the experiment that the operations pretend to belong to: 10
// trials.
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

var recordedMetrics = []record.Metric{
	{Key: "throughput", Name: "throughput", Unit: "B/s", Better: record.Higher,
		Help: "file bytes of ok operations a second"},
	{Key: "ttfb_p50", Name: "time to first byte, median", Unit: "s", Better: record.Lower, Help: "median"},
	{Key: "duration_p50", Name: "duration, median", Unit: "s", Better: record.Lower, Help: "median"},
}

// recordAll writes the operations and gives the processor time it took, that
// of making them up not counted.
func recordAll(ctx context.Context, dir string) (all []*record.Summary, spent time.Duration, err error) {
	plan, err := recordedPlan()
	if err != nil {
		return nil, 0, err
	}
	raw, err := plan.Marshal()
	if err != nil {
		return nil, 0, err
	}
	run, err := record.Create(dir, raw, nil, recordedMetrics)
	if err != nil {
		return nil, 0, err
	}
	defer run.Close()
	trials := plan.Blocks * len(plan.Cells)
	for i := range trials {
		cell := plan.Cells[i%len(plan.Cells)].ID
		s, took, err := recordTrial(ctx, run, cell, i/len(plan.Cells), recordedOps/trials)
		if err != nil {
			return nil, 0, err
		}
		all, spent = append(all, s), spent+took
	}
	return all, spent, run.Close()
}

func recordTrial(
	ctx context.Context, run *record.Run, cell string, block, count int,
) (*record.Summary, time.Duration, error) {
	w, err := run.Begin(cell, block, false, time.Now())
	if err != nil {
		return nil, 0, err
	}
	made := newMadeUp(uint64(w.ID()))
	ops := make([]record.Op, record.BlockSize)
	var encoded []byte
	began := cpuTime()
	var making time.Duration
	for n := 0; n < count; n += len(ops) {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		ops = ops[:min(len(ops), count-n)]
		from := cpuTime()
		made.fill(ops)
		making += cpuTime() - from
		encoded = record.AppendBlock(encoded[:0], ops)
		if err := w.Block(encoded); err != nil {
			return nil, 0, err
		}
	}
	s, seconds := w.Summary(), float64(made.clock)/1e9
	err = w.End(record.Trial{Seconds: seconds, Metrics: map[string]float64{
		"throughput": float64(s.Counts().OKBytes) / seconds, "ttfb_p50": s.Quantile(record.TTFB, 0.5),
		"duration_p50": s.Quantile(record.Duration, 0.5)}})
	return s, cpuTime() - began - making, err
}

// readAll checks that what comes back is what was written, and gives the
// processor time of reading it.
func readAll(ctx context.Context, dir string, want []*record.Summary) (time.Duration, error) {
	r, err := record.Open(dir)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	trials, err := r.Trials()
	if err != nil {
		return 0, err
	}
	var spent time.Duration
	var ops []record.Op
	total := int64(0)
	for i, t := range trials {
		began, got := cpuTime(), record.NewSummary()
		for b, err := range r.Blocks(t.ID) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				ops, err = record.DecodeBlock(b, ops[:0])
			}
			if err == nil {
				err = got.Ops(ops)
			}
			if err != nil {
				return 0, err
			}
		}
		spent += cpuTime() - began
		g, w := got.Counts(), want[i].Counts()
		if total += g.Ops; g.Outcomes != w.Outcomes || g.Bytes != w.Bytes {
			return 0, fmt.Errorf("read back %+v, written %+v", g, w)
		}
	}
	if total != recordedOps {
		return 0, fmt.Errorf("read back %d operations of %d", total, recordedOps)
	}
	return spent, nil
}

// reportAll writes the run's page and summary and gives the processor time that
// took.
func reportAll(dir string) (time.Duration, error) {
	began := cpuTime()
	r, err := record.Open(dir)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	rep, err := report.Build(r)
	if err != nil {
		return 0, err
	}
	if rep.Run.Operations != recordedOps || len(rep.Cells) == 0 {
		return 0, fmt.Errorf("the report has %d operations and %d figures", rep.Run.Operations, len(rep.Cells))
	}
	if err := errors.Join(page.HTML(io.Discard, rep, false), page.JSON(io.Discard, rep)); err != nil {
		return 0, err
	}
	return cpuTime() - began, nil
}

// madeUp makes up operations: ranges of large objects by 100 workers.
type madeUp struct {
	rng   *rand.Rand
	clock int64
}

func newMadeUp(seed uint64) *madeUp { return &madeUp{rng: rand.New(rand.NewPCG(seed, 1))} }

func (m *madeUp) fill(ops []record.Op) {
	for i := range ops {
		m.clock += m.rng.Int64N(2 * int64(time.Second) / recordRate)
		took := min(int64(1e6*math.Exp(m.rng.NormFloat64()/2)), m.clock)
		op := record.Op{
			Kind: record.OpRange, Status: 206, Worker: m.rng.Uint32N(100), Object: m.rng.Uint32N(16),
			Offset: m.rng.Int64N(1 << 30), Length: 1024, Bytes: 1024,
			Intended: m.clock - took, Start: m.clock - took, FirstByte: m.clock - took/4, LastByte: m.clock,
		}
		switch m.rng.Uint32N(1000) {
		case 0:
			op.Outcome, op.Status, op.Bytes, op.Class = record.Error, 500, 0, "status 500"
		case 1:
			op.Outcome, op.Bytes, op.FirstByte = record.Deadline, 0, 0
		}
		ops[i] = op
	}
}

// cpuTime is the processor time of this process, all threads.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it fails for a bad address only
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakRSS is the most memory (bytes) the process had since the peak was reset.
func peakRSS() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
