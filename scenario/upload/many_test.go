package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
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

func (r *recorded) Recorded() scenario.Measured { return scenario.Recorded(r.read, r.ID()) }

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

// thin is a system that keeps one bit of each object of a set, so that what is
// measured is ours.
type thin struct {
	system.Node // none: what is not here is not asked for
	set         workload.Set
	pre         string
	mu          sync.Mutex
	has         []bool
}

func (n *thin) find(name string) (int, error) {
	i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, n.pre), ".bin"))
	if err != nil || i < 0 || i >= len(n.has) {
		return 0, fmt.Errorf("thin: %q: %w", name, system.ErrNotFound)
	}
	return i, nil
}

func (n *thin) Put(_ context.Context, name string, _ int64, r io.Reader) (system.Ref, error) {
	i, err := n.find(name)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.has[i] = err == nil
	return system.Ref(name), err
}

func (n *thin) Get(_ context.Context, ref system.Ref, w io.Writer) error {
	i, err := n.find(string(ref))
	if err != nil {
		return err
	}
	from, err := n.set.Open(i)
	if err == nil {
		_, err = io.Copy(w, from)
	}
	return err
}

func (n *thin) Named(name string) system.Ref { return system.Ref(name) }

func (n *thin) List(ctx context.Context) (all []system.Object, err error) {
	err = n.Walk(ctx, func(o system.Object) error { all = append(all, o); return nil })
	return all, err
}

func (n *thin) Walk(_ context.Context, visit func(system.Object) error) error {
	for i := range n.has {
		n.mu.Lock()
		has := n.has[i]
		n.mu.Unlock()
		if !has {
			continue
		}
		name := n.pre + n.set.Object(i).Name
		if err := visit(system.Object{Name: name, Ref: system.Ref(name), Size: 1}); err != nil {
			return err
		}
	}
	return nil
}

func (n *thin) stored() (count int) {
	for _, has := range n.has {
		if has {
			count++
		}
	}
	return count
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
	cell := uploadCell(many, 1, func(u *experiment.Upload) { u.Concurrency = 50 })
	b := newUploadBench(t, nil, cell)
	set := b.set()
	node := &thin{set: set, pre: (&runner{site: scenario.Site{Run: "0123abcd"}}).trialNames(cell, 42), has: make([]bool, many)}
	b.node = node
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
		if jobs[len(jobs)-1].State == record.JobPutting {
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
	accepted = fill(t, node, j, many-100)
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // VmHWM begins anew
	before, _ := resident(t)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("resident %d MB; heap %d MB", before>>20, m.HeapAlloc>>20)
	first, begun = time.Time{}, time.Now()
	j.onJobs = func(jobs []record.Job) {
		mu.Lock()
		defer mu.Unlock()
		if first.IsZero() && jobs[len(jobs)-1].State == record.JobPutting {
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
	if node.stored() != many || y.metrics["accepted"] != float64(many) || y.metrics["missing"] != 0 {
		t.Errorf("metrics %v", y.metrics)
	}
	// Index and states are some 20 bytes an object; the rest is what the collector
	// of garbage lets stand meanwhile.
	if more := peak - before; many >= 20_000 && more > 100<<20+int64(many)*50 {
		t.Errorf("resuming took %d MB of memory for %d objects", more>>20, many)
	}
}

// fill brings the system and the journal to where most of a set is stored,
// without the queue: quicker. It says how many are.
func fill(t *testing.T, n *thin, j *recorded, until int) (stored int64) {
	known := make([]bool, len(n.has))
	in := j.Recorded()
	for job := range in.Jobs {
		if known[job.Object] = true; job.State == record.JobAccepted {
			stored++
		}
	}
	var jobs []record.Job
	for i := range n.has {
		if !known[i] && i < until {
			name := n.pre + n.set.Object(i).Name
			n.has[i] = true
			stored++
			jobs = append(jobs, record.Job{
				Object: int64(i), State: record.JobAccepted, Attempts: 1, Name: name, Ref: name, Size: 1,
				SHA256: strings.Repeat("0", 64), Began: time.Second, Accepted: 2 * time.Second,
			})
		}
		if len(jobs) == 5000 || i == len(n.has)-1 {
			if err := j.TrialWriter.Jobs(jobs...); err != nil {
				t.Fatal(err)
			}
			jobs = jobs[:0]
		}
	}
	return stored
}

// What the queue, its journal and its polls cost beside the operation itself.
func BenchmarkUpload(b *testing.B) {
	run := func(b *testing.B, journal scenario.Journal) {
		u := newUploadBench(b, system.Options{}, uploadCell(b.N, 1, func(u *experiment.Upload) { u.Concurrency, u.Until = 1, "accepted" }))
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
