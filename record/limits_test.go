package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
func recordWeeks(args []string) {
	n, err := strconv.Atoi(args[1])
	must(process, err)
	run := createIn(process, args[0])
	w := begin(process, run, 1)
	source := newSynthetic(1, 50_000)
	for i := 0; i < n; i += 1000 {
		var jobs []Job
		for k := range 1000 {
			jobs = append(jobs, syntheticJob(int64(i+k)))
		}
		must(process, w.Jobs(jobs...))
		must(process, w.Ops(source.take(1000)))
		must(process, w.Poll(syntheticPoll(int64(i), 6, 1000)))
	}
	must(process, errors.Join(w.End(Trial{State: Running}), run.Close()))
	run = resume(process, args[0], keepAll)
	w, _, err = run.Continue(Trial{ID: w.ID()})
	must(process, err)
	jobs, polls := 0, 0
	for j, err := range run.Jobs(w.ID()) {
		if err != nil || j != syntheticJob(int64(jobs)) {
			process.Fatal("job", jobs, "is", j, err)
		}
		jobs++
	}
	for _, err := range run.Polls(w.ID()) {
		must(process, err)
		polls++
	}
	if c := w.Summary().Counts(); jobs != n || polls != n/1000 || c.Ops != int64(n) {
		process.Fatal(jobs, "jobs,", polls, "polls,", c.Ops, "operations")
	}
	must(process, errors.Join(w.End(Trial{}), run.Close()))
	status, err := os.ReadFile("/proc/self/status")
	must(process, err)
	for line := range strings.Lines(string(status)) {
		var kb int64
		if k, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); k == 1 {
			fmt.Printf("peak %d kB\n", kb)
		}
	}
}

// Files that cannot grow under a trial that goes on: nothing that was recorded is lost, and
// with space again it goes on from there.
func TestFileSizeLimitUnderJobs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	out, err := helper(t, "fill", dir).CombinedOutput()
	var recorded int64
	if _, e := fmt.Sscanf(string(out), "%d jobs recorded", &recorded); err != nil || e != nil || recorded == 0 {
		t.Fatalf("%v: %s", errors.Join(err, e), out)
	}
	for _, says := range []string{dir, "cannot write", "B free"} {
		if !strings.Contains(string(out), says) {
			t.Errorf("%q does not say %q", out, says)
		}
	}
	run := resume(t, dir, keepAll)
	defer run.Close()
	// Those recorded, and no others but such whose recording failed at its very end.
	jobs := collect(t, run.Jobs(1))
	for i, j := range jobs {
		if j != syntheticJob(int64(i)) {
			t.Fatalf("job %d is %+v", i, j)
		}
	}
	if n := int64(len(jobs)); n < recorded || n%100 != 0 {
		t.Fatalf("%d jobs were recorded, %d can be read", recorded, n)
	}
	w, last, err := run.Continue(Trial{ID: 1})
	must(t, err)
	if want := syntheticJob(recorded - 1).Durable; last < want {
		t.Errorf("the last moment is %v, want %v", last, want)
	}
	must(t, w.Jobs(syntheticJob(2_000_000)))
	must(t, w.End(Trial{}))
	if now := collect(t, run.Jobs(w.ID())); len(now) != len(jobs)+1 {
		t.Errorf("%d jobs", len(now))
	}
}

// journalUntilFull is a process whose files cannot grow beyond 2 MiB; it says how many jobs it recorded.
func journalUntilFull(args []string) {
	must(process, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 2 << 20, Max: 2 << 20}))
	run := createIn(process, args[0])
	defer run.Close()
	w := begin(process, run, 0)
	var err error
	jobs := int64(0)
	for ; jobs < 1_000_000; jobs += 100 {
		var batch []Job
		for i := range int64(100) {
			batch = append(batch, syntheticJob(jobs+i))
		}
		if err = w.Jobs(batch...); err != nil {
			break
		}
	}
	if err == nil || w.Jobs(syntheticJob(0)) == nil {
		process.Fatal("it is never full, or writing goes on after data was lost:", err)
	}
	fmt.Printf("%d jobs recorded: %v\n", jobs, err)
}
