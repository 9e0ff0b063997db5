package record

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func keepAll(Trial) bool { return true }

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
	run, err := Resume(dir, nil, keepAll)
	must(t, err)
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
func journalUntilFull(args []string) error {
	limit := unix.Rlimit{Cur: 2 << 20, Max: 2 << 20}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	run, err := Create(args[0], []byte("{}"), nil, nil)
	if err != nil {
		return err
	}
	defer run.Close()
	w, err := run.Begin("c001", 0, false, time.Now())
	if err != nil {
		return err
	}
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
		return fmt.Errorf("it is never full, or writing goes on after data was lost: %v", err)
	}
	fmt.Printf("%d jobs recorded: %v\n", jobs, err)
	return nil
}
