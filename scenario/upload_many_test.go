package scenario

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// recorded is the journal that an engine has: run.db.
type recorded struct {
	*record.TrialWriter
	read   *record.Reader
	onJobs func(jobs []record.Job)
}

func (r *recorded) Jobs(jobs ...record.Job) error {
	if r.onJobs != nil {
		r.onJobs(jobs)
	}
	return r.TrialWriter.Jobs(jobs...)
}

func (r *recorded) Earlier() iter.Seq2[record.Job, error]       { return r.read.Jobs(r.ID()) }
func (r *recorded) EarlierPolls() iter.Seq2[record.Poll, error] { return r.read.Polls(r.ID()) }
func (r *recorded) EarlierEvents() iter.Seq2[record.Event, error] {
	all, err := r.read.Events()
	return func(yield func(record.Event, error) bool) {
		if err != nil {
			yield(record.Event{}, err)
		}
		for _, e := range all {
			if e.Trial == r.ID() && !yield(e, nil) {
				return
			}
		}
	}
}

// newRecorded is such a journal in a new run directory.
func newRecorded(t testing.TB) *recorded {
	t.Helper()
	run, err := record.Create(filepath.Join(t.TempDir(), "run"), []byte("{}"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	w, err := run.Begin("c001", 0, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &recorded{TrialWriter: w, read: run.Reader}
}

// resident is this process's resident set in bytes, after a collection; peak its
// highest since it was made to begin anew.
func resident(t testing.TB) (now, peak int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if n, err := strconv.ParseInt(f[min(1, len(f)-1)], 10, 64); err == nil {
			switch f[0] {
			case "VmRSS:":
				now = n << 10
			case "VmHWM:":
				peak = n << 10
			}
		}
	}
	return now, peak
}

// So many objects of one byte are queued; the session is cut off, and another
// one compares its record with what the system lists and goes on. What it keeps
// of each is little. PLIMSOLL_MANY=1000000 is the whole thing.
func TestUploadOfManyObjects(t *testing.T) {
	many := 20_000
	if s := os.Getenv("PLIMSOLL_MANY"); s != "" {
		var err error
		if many, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	cell := uploadCell(many, 1, func(u *experiment.ResolvedUpload) { u.Concurrency = 50 })
	b := newUploadBench(t, nil, cell)
	j := newRecorded(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	begun := time.Now()
	var mu sync.Mutex
	var first time.Time
	begunPuts, enough := 0, min(many*9/10, 10_000)
	j.onJobs = func(jobs []record.Job) {
		mu.Lock()
		defer mu.Unlock()
		if first.IsZero() {
			first = time.Now()
		}
		if jobs[0].State == record.JobPutting {
			begunPuts++
		}
		if begunPuts == enough {
			cancel(context.Canceled)
		}
	}
	if _, err := b.sessionWith(ctx, j); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first session ended with %v", err)
	}
	accepted := b.states[len(b.states)-1].Accepted
	t.Logf("%d objects: the first put began after %v; %d stored in %v", many, first.Sub(begun), accepted, time.Since(begun))
	j.onJobs = nil
	accepted = b.fill(j, many-100)
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // VmHWM begins anew
	before, _ := resident(t)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("resident %d MB, with the system's objects; heap %d MB", before>>20, m.HeapAlloc>>20)
	first, begun = time.Time{}, time.Now()
	j.onJobs = func(jobs []record.Job) {
		mu.Lock()
		defer mu.Unlock()
		if first.IsZero() && jobs[0].State == record.JobPutting {
			first = time.Now()
		}
	}
	b.state, b.states, b.ops = nil, nil, nil
	y, err := b.sessionWith(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	_, peak := resident(t)
	t.Logf("resumed: the first put began after %v; resident %d MB at most", first.Sub(begun), peak>>20)
	if n := int64(len(puts(y.ops))); n > int64(many)-accepted {
		t.Errorf("%d puts, where %d of %d had been accepted", n, accepted, many)
	}
	if y.metrics["durable"] != float64(many) || y.metrics["missing"] != 0 {
		t.Errorf("metrics %v", y.metrics)
	}
	// Index and states are some 20 bytes an object; the rest is what the collector
	// of garbage lets stand meanwhile.
	if more := peak - before; many >= 20_000 && more > 100<<20+int64(many)*100 {
		t.Errorf("resuming took %d MB of memory for %d objects", more>>20, many)
	}
}

// fill brings the system and the journal to where most of a set is stored,
// without the queue: quicker. It says how many are.
func (b *uploadBench) fill(j *recorded, until int) (stored int64) {
	set, pre := b.set(), (&uploadRunner{site: Site{Run: "0123abcd"}}).trialNames(b.cell, 42)
	known := make([]bool, set.Len())
	for job, err := range j.Earlier() {
		if err != nil {
			b.t.Fatal(err)
		}
		if known[job.Object] = true; job.State == record.JobDurable {
			stored++
		}
	}
	var jobs []record.Job
	for i := range set.Len() {
		if !known[i] && i < until {
			o := set.Object(i)
			from, err := set.Open(i)
			if err != nil {
				b.t.Fatal(err)
			}
			ref, err := b.mem.Seed(b.t.Context(), pre+o.Name, o.Size, from)
			if err != nil {
				b.t.Fatal(err)
			}
			stored++
			at := time.Since(b.epoch)
			jobs = append(jobs, record.Job{
				Object: int64(i), State: record.JobDurable, Attempts: 1, Name: pre + o.Name, Ref: string(ref), Size: o.Size,
				SHA256: strings.Repeat("0", 64), Began: at, Accepted: at + 1, Durable: at + 2,
			})
		}
		if len(jobs) == 5000 || i == set.Len()-1 {
			if err := j.TrialWriter.Jobs(jobs...); err != nil {
				b.t.Fatal(err)
			}
			jobs = jobs[:0]
		}
	}
	return stored
}

// What the queue, its journal and its polls cost beside the operation itself.
func BenchmarkUpload(b *testing.B) {
	run := func(b *testing.B, journal Journal) {
		u := newUploadBench(b, system.Options{}, uploadCell(b.N, 1, func(u *experiment.ResolvedUpload) { u.Concurrency, u.Until = 1, "accepted" }))
		if _, err := u.sessionWith(b.Context(), journal); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("bare", func(b *testing.B) {
		u := newUploadBench(b, nil, uploadCell(max(1, b.N), 1))
		set := u.set()
		for i := 0; i < b.N; i++ {
			from, err := set.Open(i)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := u.mem.Put(b.Context(), set.Object(i).Name, 1, from); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("memory", func(b *testing.B) { run(b, newLedger()) })
	b.Run("run.db", func(b *testing.B) { run(b, newRecorded(b)) })
}
