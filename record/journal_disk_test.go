package record

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Files that cannot grow under a trial that goes on: nothing that was recorded is lost, and
// with space again it goes on from there.
func TestFileSizeLimitUnderJobs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	out, err := helper(t, "fill", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var recorded filled
	if _, err := fmt.Sscanf(string(out), "%d jobs recorded", &recorded.jobs); err != nil || recorded.jobs == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, says := range []string{dir, "cannot write", "B free"} {
		if !strings.Contains(string(out), says) {
			t.Errorf("%q does not say %q", out, says)
		}
	}
	recorded.check(t, dir)
	recorded.goOn(t, dir)
}

// journalUntilFull is a process whose files cannot grow beyond 2 MiB.
func journalUntilFull(args []string) error {
	limit := unix.Rlimit{Cur: 2 << 20, Max: 2 << 20}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	got, err := recordUntilFull(args[0])
	if err != nil {
		return err
	}
	fmt.Printf("%d jobs recorded: %v\n", got.jobs, got.err)
	return nil
}

// filled is what was recorded before an error.
type filled struct {
	jobs int64
	err  error
}

func keepAll(Trial) bool { return true }

func recordUntilFull(dir string) (got filled, err error) {
	run, err := Create(dir, []byte("{}"), nil, nil)
	if err != nil {
		return filled{}, err
	}
	defer run.Close()
	w, err := run.Begin("c001", 0, false, time.Now())
	if err != nil {
		return filled{}, err
	}
	for got.err == nil {
		if got.jobs > 1_000_000 {
			return filled{}, fmt.Errorf("it is never full")
		}
		var batch []Job
		for i := range int64(100) {
			batch = append(batch, syntheticJob(got.jobs+i))
		}
		if got.err = w.Jobs(batch...); got.err == nil {
			got.jobs += int64(len(batch))
		}
	}
	if again := w.Jobs(syntheticJob(0)); again == nil {
		return filled{}, fmt.Errorf("writing goes on after data was lost")
	}
	return got, nil
}

// check reads the jobs: those recorded, and no others but such whose recording
// failed at its very end.
func (f filled) check(t *testing.T, dir string) {
	t.Helper()
	rd, err := Open(dir)
	must(t, err)
	defer rd.Close()
	n := int64(0)
	for j, err := range rd.Jobs(1) {
		must(t, err)
		if j != syntheticJob(n) {
			t.Fatalf("job %d is %+v", n, j)
		}
		n++
	}
	if n < f.jobs || n%100 != 0 {
		t.Fatalf("%d jobs were recorded, %d can be read", f.jobs, n)
	}
}

func (f filled) goOn(t *testing.T, dir string) {
	t.Helper()
	run, err := Resume(dir, nil, keepAll)
	must(t, err)
	defer run.Close()
	w, last, err := run.Continue(Trial{ID: 1})
	must(t, err)
	if want := syntheticJob(f.jobs - 1).Durable; last < want {
		t.Errorf("the last moment is %v, want %v", last, want)
	}
	must(t, w.Jobs(syntheticJob(2_000_000)))
	must(t, w.End(Trial{}))
	if jobs := collect(t, run.Jobs(w.ID())); int64(len(jobs)) <= f.jobs {
		t.Errorf("%d jobs", len(jobs))
	}
}
