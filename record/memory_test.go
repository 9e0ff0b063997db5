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

// A process that records and reads back jobs, polls and operations may grow with their time
// (windows), not with their number, nor when a trial goes on. The whole 10^8 operations are in
// the benchmarks.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	const jobs, limit = 150_000, 75 // MB; kept in memory, the jobs alone were 60 MB, and all 100
	out, err := helper(t, "weeks", filepath.Join(t.TempDir(), "run"), strconv.Itoa(jobs)).CombinedOutput()
	must(t, err)
	var peak int64
	if _, err := fmt.Sscanf(string(out), "peak %d kB", &peak); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if peak > limit*1000 {
		t.Errorf("peak resident memory %d MB, want at most %d MB", peak/1000, limit)
	}
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
	if err := errors.Join(w.End(Trial{State: Running}), run.Close()); err != nil {
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
