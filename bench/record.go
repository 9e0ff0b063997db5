package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
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
// back and summarises them, and says what that costs.
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
	size, err := dirSize(dir)
	if err != nil {
		return err
	}
	reading, err := readAll(ctx, dir, direct)
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
	fmt.Printf("%-44s %10.2f %% of one core\n", fmt.Sprintf("… at %d operations/s", int(recordRate)), 100*perOp*recordRate)
	fmt.Printf("%-44s %10.3f µs/operation\n", "read back, decode, summarise: CPU", reading.Seconds()/recordedOps*1e6)
	fmt.Printf("%-44s %10.2f GB (%.1f B/operation)\n", "disk", float64(size)/1e9, float64(size)/recordedOps)
	fmt.Printf("%-44s %10.1f MB (limit %d MB)\n", "peak resident memory", float64(rss)/1e6, maxRecordRSS/1_000_000)
	if rss > maxRecordRSS {
		return fmt.Errorf("peak resident memory %d MB is above %d MB", rss/1e6, maxRecordRSS/1_000_000)
	}
	if perOp > recordBudget {
		return fmt.Errorf("recording costs %.3f µs per operation, above %.3f µs", perOp*1e6, recordBudget*1e6)
	}
	return nil
}

// recordAll writes the operations and gives the processor time it took, that
// of making them up not counted.
func recordAll(ctx context.Context, dir string) (*record.Summary, time.Duration, error) {
	run, err := record.Create(dir, []byte("{}"), nil, nil)
	if err != nil {
		return nil, 0, err
	}
	defer run.Close()
	w, err := run.Begin("c001", 1, false, time.Now())
	if err != nil {
		return nil, 0, err
	}
	made := newMadeUp(1)
	ops := make([]record.Op, record.BlockSize)
	var block []byte
	began := cpuTime()
	var making time.Duration
	for n := 0; n < recordedOps; n += len(ops) {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		ops = ops[:min(len(ops), recordedOps-n)]
		from := cpuTime()
		made.fill(ops)
		making += cpuTime() - from
		block = record.AppendBlock(block[:0], ops)
		if err := w.Block(block); err != nil {
			return nil, 0, err
		}
	}
	err = errors.Join(w.End(record.Trial{}), run.Close())
	return w.Summary(), cpuTime() - began - making, err
}

// readAll checks that what comes back is what was written, and gives the
// processor time of reading it.
func readAll(ctx context.Context, dir string, want *record.Summary) (time.Duration, error) {
	began := cpuTime()
	r, err := record.Open(dir)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	got := record.NewSummary()
	var ops []record.Op
	for b, err := range r.Blocks(1) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			ops, err = record.DecodeBlock(b, ops[:0])
		}
		if err != nil {
			return 0, err
		}
		if err := got.Ops(ops); err != nil {
			return 0, err
		}
	}
	spent := cpuTime() - began
	if g, w := got.Counts(), want.Counts(); g.Ops != recordedOps || g.Outcomes != w.Outcomes || g.Bytes != w.Bytes {
		return 0, fmt.Errorf("read back %+v, written %+v", g, w)
	}
	for _, m := range []record.Measure{record.TTFB, record.Duration, record.Lag} {
		for _, q := range []float64{0.5, 0.99, 0.999} {
			if g, w := got.Quantile(m, q), want.Quantile(m, q); g != w {
				return 0, fmt.Errorf("%v: quantile %v is %v, was %v", m, q, g, w)
			}
		}
	}
	windows, err := r.Windows(1)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, w := range windows {
		n += w.Ops()
	}
	if n != recordedOps {
		return 0, fmt.Errorf("%d operations in %d windows", n, len(windows))
	}
	return spent, nil
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

func dirSize(dir string) (total int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}
