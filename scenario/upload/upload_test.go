package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/workload"
)

// journal is the journal of a session.
type journal interface {
	Recorded() scenario.Measured
	Jobs(...record.Job) error
	Poll(record.Poll) error
	Event(record.Event) error
}

// ledger is a journal in memory.
type ledger struct {
	mu     sync.Mutex
	jobs   map[int64]record.Job
	all    []record.Job // in the order of writing
	polls  []record.Poll
	events []record.Event
	ops    []record.Op  // of all sessions
	fail   func() error // called before each write of jobs
}

func newLedger() *ledger { return &ledger{jobs: map[int64]record.Job{}} }

func (l *ledger) Jobs(jobs ...record.Job) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(); err != nil {
			return err
		}
	}
	for _, j := range jobs {
		l.jobs[j.Object] = j
		l.all = append(l.all, j)
	}
	return nil
}

// Recorded implements scenario.Sink.
func (l *ledger) Recorded() scenario.Measured {
	l.mu.Lock()
	defer l.mu.Unlock()
	jobs := slices.SortedFunc(maps.Values(l.jobs), func(a, b record.Job) int { return int(a.Object - b.Object) })
	return scenario.Measured{
		Jobs: slices.Values(jobs), Ops: slices.Values(slices.Clone(l.ops)), Polls: slices.Values(slices.Clone(l.polls)),
		Events: slices.Values(slices.Clone(l.events)),
	}
}

// measuredFrom returns the records from which a load test's metrics are computed.
func measuredFrom(j journal, cell experiment.Cell, load scenario.Load) *scenario.Measured {
	unknown, in := math.NaN(), j.Recorded()
	in.Cell, in.Load, in.Usage = cell, load, scenario.Usage{SystemCPU: unknown, SystemRSSPeak: unknown,
		OthersBusy: unknown}
	return &in
}

func (l *ledger) Poll(p record.Poll) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polls = append(l.polls, p)
	return nil
}

func (l *ledger) Event(e record.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	return nil
}

// happened returns the detail of an event.
func (l *ledger) happened(what string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.events) {
		if e.What == what {
			return e.Detail
		}
	}
	return ""
}

// count returns the number of jobs in a state.
func (l *ledger) count(state record.JobState) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		if j.State == state {
			n++
		}
	}
	return n
}

// uploadBench runs sessions of one trial on system mem.
type uploadBench struct {
	t       testing.TB
	mem     *mem.Node    // the real node
	node    system.Store // the node that the scenario sees
	cell    experiment.Cell
	ledger  *ledger
	limits  experiment.Limits
	mode    system.Mode
	epoch   time.Time
	states  []scenario.State
	state   func(scenario.State)
	reports time.Duration // interval; 0: a second
}

func uploadCell(objects int, size int64, set ...func(*experiment.Upload)) experiment.Cell {
	u := &experiment.Upload{
		Concurrency: 1, Until: "durable", Settle: experiment.Duration(time.Hour), Retries: 3,
		Backoff: experiment.Duration(time.Second), Poll: experiment.Duration(time.Minute), After: "keep",
	}
	for _, f := range set {
		f(u)
	}
	return experiment.Cell{ID: "c001", Data: experiment.Data{Objects: objects, Size: experiment.Bytes(size), Copies: 1},
		Upload: u}
}

func newUploadBench(t *testing.T, opt system.Options, cell experiment.Cell) *uploadBench {
	t.Helper()
	n := synthetic.MemNode(t, opt)
	return &uploadBench{t: t, mem: n, node: n, cell: cell, ledger: newLedger(), limits: synthetic.Limits(),
		mode: system.Start, epoch: time.Now()}
}

// prepared returns the runner of a session.
func (b *uploadBench) prepared() *runner {
	b.t.Helper()
	site := synthetic.Site(b.mode, b.node)
	site.Limits, site.Run = b.limits, "0123abcd"
	r, err := Scenario{}.Prepare(b.t.Context(), site, []experiment.Cell{b.cell})
	must(b.t, err)
	return r.(*runner)
}

// session runs a session until ctx or the trial ends.
func (b *uploadBench) session(ctx context.Context) (yield, error) {
	return b.sessionWith(ctx, b.ledger)
}

func (b *uploadBench) sessionWith(ctx context.Context, j journal) (yield, error) {
	b.t.Helper()
	prepared := b.prepared()
	if b.reports > 0 {
		prepared.reportEvery = b.reports
	}
	var y yield
	var err error
	from := len(b.ledger.ops)
	y.load, err = prepared.Trial(ctx, b.cell, 42, scenario.Sink{
		Epoch: b.epoch, Recorded: j.Recorded, Jobs: j.Jobs, Poll: j.Poll, Event: j.Event,
		Now: func() time.Duration { return time.Since(b.epoch) },
		Block: func(block []byte) (err error) {
			b.ledger.mu.Lock()
			defer b.ledger.mu.Unlock()
			b.ledger.ops, err = record.DecodeBlock(block, b.ledger.ops)
			return err
		},
		State: func(s scenario.State) {
			b.states = append(b.states, s)
			if b.state != nil {
				b.state(s)
			}
		},
	})
	y.ops = b.ledger.ops[from:]
	y.metrics = Scenario{}.Measure(*measuredFrom(j, b.cell, y.load))
	return y, err
}

func (b *uploadBench) must() yield {
	b.t.Helper()
	y, err := b.session(b.t.Context())
	must(b.t, err)
	return y
}

// set returns the trial's data set.
func (b *uploadBench) set() workload.Set {
	b.t.Helper()
	set, err := scenario.DataSet(b.t.Context(), b.cell.Data, b.prepared().dataSeed(42), "")
	must(b.t, err)
	return set
}

// sum returns the SHA-256 of an object of the trial's data set, in hex.
func (b *uploadBench) sum(object int64) string {
	b.t.Helper()
	from, err := b.set().Open(int(object))
	must(b.t, err)
	defer from.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, from)
	must(b.t, err)
	return hex.EncodeToString(sum.Sum(nil))
}

// holds returns an error unless the system has each object of the set, except for the given ones,
// once, byte for byte, and nothing else.
func (b *uploadBench) holds(except ...int) error {
	b.t.Helper()
	set, pre := b.set(), b.prepared().trialNames(b.cell, 42)
	all, err := system.All(b.t.Context(), b.mem)
	if err != nil {
		return err
	}
	names := map[string]system.Object{}
	for _, o := range all {
		if _, twice := names[o.Name]; twice {
			return fmt.Errorf("%s is there twice", o.Name)
		}
		names[o.Name] = o
	}
	for i := range set.Len() {
		name := pre + set.Object(i).Name
		o, there := names[name]
		delete(names, name)
		if slices.Contains(except, i) {
			if there {
				return fmt.Errorf("object %d is there", i)
			}
			continue
		}
		if !there {
			return fmt.Errorf("object %d, %s, is not there", i, name)
		}
		check, err := workload.Check(set, i)
		if err != nil {
			return err
		}
		if err := errors.Join(b.mem.Get(b.t.Context(), o.Ref, check), check.Close()); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("there, and not of the set: %v", names)
	}
	return nil
}

// puts returns the number of successful puts of each object.
func puts(ops []record.Op) map[uint32]int {
	n := map[uint32]int{}
	for _, op := range ops {
		if op.Kind == record.OpPut && op.Outcome == record.OK {
			n[op.Object]++
		}
	}
	return n
}

func TestUploadStoresAll(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"a": "2s", "expansion": "1.5"},
			uploadCell(20, 1000, func(u *experiment.Upload) { u.Concurrency, u.Verify = 4, 1 }))
		b.node = payer{b.mem, nil}
		y := b.must()
		if err := b.holds(); err != nil {
			t.Error(err)
		}
		m := y.metrics
		for key, want := range map[string]float64{
			"success_rate": 1, "puts_ended": 20, "objects": 20, "accepted": 20, "durable": 20, "not_durable": 0,
			"failed": 0, "refused": 0, "missing": 0, "unreadable": 0,
			"attempts_per_object": 1, "accept_p50": 2, "file_bandwidth": 2000, "file_rate": 2, "accepted_bytes": 20_000,
			"absolute_bytes": 30_000, "expansion": 1.5, "storage_efficiency": 1 / 1.5, "absolute_per_file": 1500,
			"verified": 20, "verify_failed": 0, "spent": 30_000,
		} {
			if got, ok := m[key]; !ok || !synthetic.Near(got, want) {
				t.Errorf("%s is %v (%v), want %v", key, got, ok, want)
			}
		}
		// The journal records each put before it begins.
		for i, j := range b.ledger.all {
			if j.State == record.JobAccepted && !slices.ContainsFunc(b.ledger.all[:i],
				func(e record.Job) bool { return e.Object == j.Object && e.State == record.JobPutting }) {
				t.Errorf("object %d was accepted before the journal knew that it was put", j.Object)
			}
		}
		for _, j := range b.ledger.jobs {
			if j.State != record.JobDurable || j.Ref == "" || j.Attempts != 1 {
				t.Errorf("job %+v", j)
			}
		}
		if n := len(b.ledger.polls); n < 2 || b.ledger.polls[0].Start != 0 {
			t.Errorf("%d polls", n)
		}
		last := b.states[len(b.states)-1]
		if last.Accepted != 20 || last.Durable != 20 || last.Absolute != 30_000 || last.Spent == nil ||
			last.Spent.Cmp(system.Money("", coins(30_000)).Amount) != 0 {
			t.Errorf("state %+v", last)
		}
	})
}

func has(text string, parts ...string) error {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return fmt.Errorf("%q is not in %q", p, text)
		}
	}
	return nil
}

// faulty is a node whose puts fail as a test defines; nil: as mem defines.
type faulty struct {
	*mem.Node
	puts       map[string]int // by the last part of the name
	begun      []time.Duration
	put, after func(name string, n int) error
}

func (b *uploadBench) faulty(put func(name string, n int) error) *faulty {
	f := &faulty{Node: b.mem.Hooked(nil, nil), puts: map[string]int{}, put: put}
	var mu sync.Mutex
	puts := func(name string, more int) (string, int) {
		mu.Lock()
		defer mu.Unlock()
		short := name[strings.LastIndex(name, "/")+1:]
		f.puts[short] += more
		if more > 0 {
			f.begun = append(f.begun, time.Since(b.epoch))
		}
		return short, f.puts[short]
	}
	f.Before = func(_ context.Context, call, name string) error {
		if call != "put" {
			return nil
		}
		short, n := puts(name, 1)
		if f.put == nil {
			return nil
		}
		return f.put(short, n)
	}
	f.After = func(_ context.Context, call, name string) error {
		if call != "put" || f.after == nil {
			return nil
		}
		return f.after(puts(name, 0))
	}
	b.node = f
	return f
}

// on returns a hook for one kind of call.
func on(what string, do func() error) func(context.Context, string, string) error {
	return func(_ context.Context, call, _ string) error {
		if call != what {
			return nil
		}
		return do()
	}
}

// Killed sessions do not use up retries, and the pauses between attempts are the same as in a
// single session.
func TestUploadBacksOffAcrossSessions(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(1, 100, func(u *experiment.Upload) {
			u.Retries, u.Backoff = 6, experiment.Duration(time.Minute)
		}))
		until := time.Now().Add(30 * time.Minute)
		f := b.faulty(func(string, int) error {
			if time.Now().Before(until) {
				return system.ErrQuota
			}
			return nil
		})
		sessions := 0
		for ; sessions < 1000; sessions++ {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Second, errCrash)
			y, err := b.session(ctx)
			cancel()
			if y.load.Seconds < 0 {
				t.Fatalf("session %d took %v s", sessions, y.load.Seconds)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
		}
		if err := b.holds(); err != nil || b.ledger.count(record.JobDurable)+b.ledger.count(record.JobAccepted) != 1 ||
			sessions < 100 {
			t.Fatalf("after %d sessions: %v, %v", sessions, err, b.ledger.jobs)
		}
		want := []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute}
		if len(f.begun) != len(want)+1 {
			t.Fatalf("asked at %v", f.begun)
		}
		for i, pause := range want {
			if took := f.begun[i+1] - f.begun[i]; took < pause || took > pause+10*time.Second {
				t.Errorf("pause %d was %v, want %v", i+1, took, pause)
			}
		}
	})
}

// Refused, failed and unreadable objects are given up independently, and the others are stored
// meanwhile.
func TestUploadGivesUp(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(6, 10, func(u *experiment.Upload) { u.Retries, u.Concurrency = 2, 2 }))
		f := b.faulty(func(name string, n int) error {
			switch {
			case strings.HasPrefix(name, "00000001"):
				return errors.New("mem: status 503")
			case strings.HasPrefix(name, "00000003"):
				return fmt.Errorf("mem: %w", system.ErrQuota)
			case strings.HasPrefix(name, "00000004") && n == 1:
				return fmt.Errorf("mem: %w", system.ErrLocked)
			}
			return nil
		})
		y := b.must()
		if err := b.holds(1, 3); err != nil {
			t.Error(err)
		}
		for i, want := range []record.JobState{record.JobDurable, record.JobRefused, record.JobDurable,
			record.JobFailed, record.JobDurable, record.JobDurable} {
			if j := b.ledger.jobs[int64(i)]; j.State != want {
				t.Errorf("job %+v, want %s", j, want)
			}
		}
		if j := b.ledger.jobs[3]; j.Attempts != 3 || j.Error == "" {
			t.Errorf("job %+v", j)
		}
		m := y.metrics
		if m["failed"] != 1 || m["refused"] != 1 || m["accepted"] != 4 ||
			!synthetic.Near(m["success_rate"], 4.0/11) || f.puts["00000004.bin"] != 2 {
			t.Errorf("metrics %v, puts %v", m, f.puts)
		}
		classes := map[string]int{}
		for _, op := range y.ops {
			if op.Kind == record.OpPut && op.Outcome != record.OK {
				classes[op.Outcome.String()+" "+op.Class]++
			}
		}
		if fmt.Sprint(classes) != "map[error locked:1 error quota or disk full:3 refused status 503:3]" {
			t.Errorf("classes %v", classes)
		}
		// others were accepted meanwhile
		if last := b.states[len(b.states)-1]; last.Failed != 1 || last.Refused != 1 || last.Failures != 7 ||
			last.Finished != 11 || last.Full != "" {
			t.Errorf("state %+v", last)
		}
		// Objects remain given up: another session has nothing to do.
		before := len(b.ledger.all)
		b.must()
		if len(b.ledger.all) != before {
			t.Errorf("another session did something: %+v", b.ledger.all[before:])
		}
	})
}

// A system is full when consecutive attempts find no room, until it accepts an object.
func TestUploadFull(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(12, 10, func(u *experiment.Upload) { u.Retries, u.Concurrency = 2, 2 }))
		var freed atomic.Bool // the state is reported while workers put
		b.faulty(func(name string, n int) error {
			if time.Sleep(time.Second); name >= "00000003" && !freed.Load() {
				return fmt.Errorf("mem: put: %w", system.ErrQuota)
			}
			return nil
		})
		b.state = func(s scenario.State) {
			if s.Full != "" && !freed.Load() {
				freed.Store(true)
				if err := has(s.Full, "mem: put: quota or disk full"); err != nil || s.Accepted != 3 {
					t.Error(err, s)
				}
			}
		}
		b.must()
		if last := b.states[len(b.states)-1]; !freed.Load() || last.Full != "" || last.Accepted+last.Failed != 12 ||
			last.Accepted < 4 {
			t.Errorf("state %+v, it was full: %v", last, freed.Load())
		}
	})
}

// A seemingly failed attempt may have stored its object: then the object is not put again, and
// counts as accepted even if it was given up.
func TestUploadLooksBeforeItTriesAgain(t *testing.T) {
	for _, retries := range []int{0, 3} {
		synthetic.Virtual(t, func(t *testing.T) {
			b := newUploadBench(t, system.Options{"a": "1s"}, uploadCell(3, 10,
				func(u *experiment.Upload) { u.Retries = retries }))
			f := b.faulty(nil)
			f.after = func(name string, n int) error {
				if name == "00000001.bin" {
					return errors.New("mem: connection reset")
				}
				return nil
			}
			y := b.must()
			if err := b.holds(); err != nil {
				t.Error(err)
			}
			if f.puts["00000001.bin"] != 1 || y.metrics["accepted"] != 3 || y.metrics["adopted"] != 1 ||
				y.metrics["failed"] != 0 {
				t.Errorf("retries %d: puts %v, metrics %v", retries, f.puts, y.metrics)
			}
			if j := b.ledger.jobs[1]; !j.Adopted || j.Accepted == 0 {
				t.Errorf("job %+v", j)
			}
		})
	}
}

// A worker keeps an object until it is durable. All times are by the trial's clock, regardless of
// the wall clock.
func TestUploadSlots(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"a": "1s", "settle": "10s"},
			uploadCell(10, 10, func(u *experiment.Upload) { u.Concurrency = 2 }))
		const from = 1000 * time.Hour
		b.epoch = time.Now().Add(-from)
		b.must()
		durable := time.Duration(0)
		for _, j := range b.ledger.jobs {
			durable = max(durable, j.Durable)
			if j.State != record.JobDurable || j.Began < from || j.Accepted != j.Began+time.Second ||
				j.Durable < j.Accepted+10*time.Second {
				t.Errorf("job %+v", j)
			}
		}
		if durable != from+55*time.Second || b.ledger.polls[0].Start < from {
			t.Errorf("the last is durable at %v, the first poll at %v", durable, b.ledger.polls[0].Start)
		}
	})
}

// A worker waits upload.settle for an object that does not become durable; the trial asks about
// it again at the end, and counts it. If the trial ends once every object is accepted, it does not
// ask again.
func TestUploadNeverDurable(t *testing.T) {
	settle := 30 * time.Minute
	for _, c := range []struct {
		name, takes, until string
		most               time.Duration
		durable            float64
	}{
		{"again", "1h50m", "durable", 121 * time.Minute, 1},
		{"not again", "45m", "accepted", 91 * time.Minute, 0},
	} {
		synthetic.Virtual(t, func(t *testing.T) {
			b := newUploadBench(t, system.Options{"settle": c.takes}, uploadCell(3, 10,
				func(u *experiment.Upload) { u.Until, u.Settle = c.until, experiment.Duration(settle) }))
			begun := time.Now()
			m := b.must().metrics
			if took := time.Since(begun); took > c.most || m["accepted"] != 3 ||
				m["durable"] != c.durable || m["not_durable"] != 3-c.durable {
				t.Errorf("%s: it took %v: %v", c.name, took, m)
			}
		})
	}
}

// An exit condition ends a trial: interrupted objects are inspected, a last poll is made, and
// there is a result. Objects that should be removed at the end are removed.
func TestUploadStops(t *testing.T) {
	t.Run("keep", func(t *testing.T) { testStop(t, "keep") })
	t.Run("remove", func(t *testing.T) { testStop(t, "remove") })
}

func testStop(t *testing.T, after string) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"a": "10s"}, uploadCell(100, 10,
			func(u *experiment.Upload) { u.Concurrency, u.After = 4, after }))
		b.mode = system.Attach
		ctx, cancel := context.WithCancelCause(t.Context())
		b.state = func(s scenario.State) {
			if s.Accepted >= 20 && s.At > 55*time.Second {
				cancel(&scenario.Stop{Condition: "max_bytes", Why: "enough"})
			}
		}
		y, err := b.session(ctx)
		must(t, err)
		if n := len(puts(y.ops)); n != 20 || y.metrics["accepted"] != 20 {
			t.Errorf("%d puts, metrics %v", n, y.metrics)
		}
		cut := 0
		for _, op := range y.ops {
			if op.Outcome == record.Cancelled {
				cut++
			}
		}
		if cut != 4 || y.metrics["success_rate"] != 1 {
			t.Errorf("%d attempts were cut off, success rate %v", cut, y.metrics["success_rate"])
		}
		if err := has(strings.Join(y.load.Notes, "\n"), "stopped by max_bytes: enough"); err != nil {
			t.Error(err)
		}
		if err := has(b.ledger.happened("in doubt"), "4 attempts", "4 had stored nothing"); err != nil {
			t.Error(err)
		}
		if p := b.ledger.polls[len(b.ledger.polls)-1]; p.Start < 55*time.Second {
			t.Errorf("the last poll was at %v", p.Start)
		}
		stored := 20
		if after == "remove" {
			stored = 0
		}
		var except []int
		for i := stored; i < 100; i++ {
			except = append(except, i)
		}
		if err := b.holds(except...); err != nil {
			t.Error(err)
		}
	})
}

type yield struct {
	ops     []record.Op
	load    scenario.Load
	metrics map[string]float64
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
