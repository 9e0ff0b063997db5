package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A process that records and reads back operations may grow with their time
// (windows), not with their number. The whole 10^8 are in the benchmarks.
func TestMemoryIsBounded(t *testing.T) {
	// kept in memory, the operations alone were 220 MB
	checkPeak(t, 100, "bulk", filepath.Join(t.TempDir(), "run"), strconv.Itoa(2_000_000))
}

// Nor with the number of jobs and polls, nor when a trial goes on.
func TestMemoryOfWeeksIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("records 300,000 jobs")
	}
	// kept in memory, the jobs alone were 120 MB
	checkPeak(t, 100, "weeks", filepath.Join(t.TempDir(), "run"), strconv.Itoa(300_000))
}

// checkPeak runs a helper that says how much memory it took, and compares that
// with the limit (MB).
func checkPeak(t *testing.T, limit int64, name string, args ...string) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	out, err := helper(t, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var peak int64
	if _, err := fmt.Sscanf(string(out), "peak %d kB", &peak); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("peak resident memory %d MB", peak/1000)
	if peak > limit*1000 {
		t.Errorf("peak resident memory %d MB, want at most %d MB", peak/1000, limit)
	}
}

// recordInBulk records operations as an engine does, from blocks, reads them
// back and says how much memory that took.
func recordInBulk(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	run, err := Create(args[0], []byte("{}"), nil, nil)
	if err != nil {
		return err
	}
	w, err := run.Begin("c001", 1, false, time.Now())
	if err != nil {
		return err
	}
	source := newSynthetic(1, 50_000)
	ops := make([]Op, BlockSize)
	var block []byte
	for left := n; left > 0; left -= len(ops) {
		ops = ops[:min(len(ops), left)]
		for i := range ops {
			ops[i] = source.next()
		}
		block = AppendBlock(block[:0], ops)
		if err := w.Block(block); err != nil {
			return err
		}
	}
	if err := errors.Join(w.End(Trial{}), run.Close()); err != nil {
		return err
	}
	rd, err := Open(args[0])
	if err != nil {
		return err
	}
	defer rd.Close()
	again := NewSummary()
	for op, err := range rd.Ops(w.ID()) {
		if err != nil {
			return err
		}
		again.add(&op)
	}
	stored, err := rd.Summary(w.ID())
	if err != nil {
		return err
	}
	if a, b := again.Counts(), stored.Counts(); a.Ops != int64(n) || a.Outcomes != b.Outcomes || a.Bytes != b.Bytes {
		return fmt.Errorf("read back %+v, stored %+v", a, b)
	}
	windows := 0
	for _, err := range rd.Windows(w.ID()) {
		if err != nil {
			return err
		}
		windows++
	}
	if windows < n/50_000 {
		return fmt.Errorf("%d windows", windows)
	}
	return sayPeak()
}

// recordWeeks records what a trial of weeks does, goes on with it, reads it back
// and says how much memory that took.
func recordWeeks(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	run, err := Create(args[0], []byte("{}"), nil, nil)
	if err != nil {
		return err
	}
	w, err := run.Begin("c001", 1, false, time.Now())
	if err != nil {
		return err
	}
	source := newSynthetic(1, 50_000)
	for i := 0; i < n; i += 1000 {
		var jobs []Job
		for k := range 1000 {
			jobs = append(jobs, syntheticJob(int64(i+k)))
		}
		if err := errors.Join(w.Jobs(jobs...), w.Ops(source.take(1000)),
			w.Poll(syntheticPoll(int64(i), 6, 1000))); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Pause(Trial{}), run.Close()); err != nil {
		return err
	}
	if run, err = Resume(args[0], nil, keepAll); err != nil {
		return err
	}
	if w, _, err = run.Continue(Trial{ID: w.ID()}); err != nil {
		return err
	}
	jobs, polls := 0, 0
	for j, err := range run.Jobs(w.ID()) {
		if err != nil || j != syntheticJob(int64(jobs)) {
			return fmt.Errorf("job %d is %+v: %w", jobs, j, err)
		}
		jobs++
	}
	for _, err := range run.Polls(w.ID()) {
		if err != nil {
			return err
		}
		polls++
	}
	if c := w.Summary().Counts(); jobs != n || polls != n/1000 || c.Ops != int64(n) {
		return fmt.Errorf("%d jobs, %d polls, %d operations", jobs, polls, c.Ops)
	}
	if err := errors.Join(w.End(Trial{}), run.Close()); err != nil {
		return err
	}
	return sayPeak()
}

func sayPeak() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if k, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); k == 1 {
			fmt.Printf("peak %d kB\n", kb)
		}
	}
	return nil
}
