package record

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// synthetic makes operations like those of a closed loop with some failures.
// The same seed gives the same operations.
type synthetic struct {
	rng     *rand.Rand
	clock   int64
	workers int
	every   int64 // mean nanoseconds between two ends
}

func newSynthetic(seed uint64, opsPerSecond int) *synthetic {
	return &synthetic{rng: rand.New(rand.NewPCG(seed, 1)), workers: 100,
		every: int64(time.Second) / int64(opsPerSecond)}
}

func (s *synthetic) next() Op {
	s.clock += s.rng.Int64N(2*s.every) + 1
	took := int64(200e3 * math.Exp(s.rng.NormFloat64()/2))
	took = min(took, s.clock)
	op := Op{
		Kind:     OpRange,
		Outcome:  OK,
		Status:   206,
		Worker:   uint32(s.rng.IntN(s.workers)),
		Object:   uint32(s.rng.IntN(8)),
		Offset:   s.rng.Int64N(1 << 30),
		Length:   1024,
		Bytes:    1024,
		Start:    s.clock - took,
		LastByte: s.clock,
	}
	op.Intended = op.Start
	op.FirstByte = op.Start + 1 + took*3/4
	op.FirstByte = min(op.FirstByte, op.LastByte)
	switch s.rng.IntN(1000) {
	case 0:
		op.Outcome, op.Status, op.Class, op.Bytes, op.FirstByte = Error, 500, "status 500", 0, 0
	case 1:
		op.Outcome, op.Class, op.Bytes = Truncated, "body ended early", 10
	case 2:
		op.Outcome, op.Bytes, op.FirstByte = Deadline, 0, 0
	case 3:
		op.Outcome, op.Bytes = InFlight, 512
	}
	return op
}

func (s *synthetic) take(n int) []Op {
	ops := make([]Op, n)
	for i := range ops {
		ops[i] = s.next()
	}
	return ops
}

var testMetrics = []Metric{
	{Key: "ttfb_p50", Name: "time to first byte, median", Unit: "s", Better: Lower, Help: "from the intended start"},
	{Key: "throughput", Name: "throughput", Unit: "B/s", Better: Higher, Help: "file bytes"},
}

// failer is a test, or a process that a test has started.
type failer interface {
	Helper()
	Fatal(why ...any)
}

// must ends a test at an error that it is not about.
func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func createIn(t failer, dir string) *Run {
	t.Helper()
	r, err := Create(dir, []byte(`{"format":1}`), map[string]string{"version": "test"}, testMetrics)
	must(t, err)
	return r
}

func create(t testing.TB) *Run {
	t.Helper()
	r := createIn(t, filepath.Join(t.TempDir(), "run"))
	t.Cleanup(func() { r.Close() })
	return r
}

func resume(t failer, dir string, keep func(Trial) bool) *Run {
	t.Helper()
	r, err := Resume(dir, nil, keep)
	must(t, err)
	return r
}

func keepAll(Trial) bool { return true }

func open(t testing.TB, dir string) *Reader {
	t.Helper()
	rd, err := Open(dir)
	must(t, err)
	t.Cleanup(func() { rd.Close() })
	return rd
}

func begin(t failer, r *Run, block int) *TrialWriter {
	t.Helper()
	w, err := r.Begin("c001", block, false, time.Now())
	must(t, err)
	return w
}

func trialsOf(t failer, rd *Reader) []Trial {
	t.Helper()
	all, err := rd.Trials()
	must(t, err)
	return all
}

func collect[T any](t failer, seq func(func(T, error) bool)) []T {
	t.Helper()
	var all []T
	for v, err := range seq {
		must(t, err)
		all = append(all, v)
	}
	return all
}

func TestEverythingWrittenIsReadBack(t *testing.T) {
	r := create(t)
	epoch := time.Unix(1700000000, 123456789).UTC()
	w, err := r.Begin("c001", 2, true, epoch)
	must(t, err)
	ops := newSynthetic(1, 5000).take(3*BlockSize + 17)
	must(t, w.Ops(ops[:5000]))
	encoded := AppendBlock(nil, ops[5000:6000])
	must(t, w.Block(encoded))
	must(t, w.Ops(ops[6000:]))
	samples := []Sample{
		{Start: time.Second, End: time.Second + time.Millisecond, Process: "nginx/server", Role: "system", PID: 42,
			CPU: 1.5, RSS: 1e6, ReadBytes: 1, WriteBytes: 2},
		{Start: 2 * time.Second, End: 2 * time.Second, Process: "box", Role: "box", CPU: math.NaN(), RSS: math.NaN(),
			ReadBytes: math.NaN(), WriteBytes: math.NaN()},
	}
	must(t, w.Samples(samples))
	link := LinkCheck{From: "load", To: "server", Emulator: "user", Congestion: "cubic", WantRTT: .08, RTT: .0801,
		RTTP99: .082, WantRate: 1e9, Rate: .95e9, WantLoss: .01, Loss: math.NaN(), Lateness: 1e-5, Tolerance: .05,
		OK: true, Why: "because"}
	must(t, w.Link(link))
	event := Event{At: epoch.Add(time.Second), Kind: "health", What: "probe", Detail: "200", Took: time.Millisecond}
	must(t, w.Event(event))
	runEvent := Event{At: epoch, Kind: "note", What: "begun"}
	must(t, r.Event(runEvent))
	must(t, r.Meta("kernel", "6.1"))
	trial := Trial{Seconds: 3.5, Metrics: map[string]float64{"ttfb_p50": .25, "throughput": math.Inf(1),
		"lost": math.NaN()}, Invalid: []string{ReasonBoxBusy}, Notes: []string{"receive: drop"},
		Outcomes: map[string]int64{"ok": 1}}
	live := w.Summary().Counts()
	must(t, w.End(trial))
	if err := w.Ops(ops[:1]); err == nil {
		t.Error("operations after the end were accepted")
	}
	must(t, r.Close())

	rd := open(t, r.Dir())
	same := func(what string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	same("plan", string(rd.Plan()), `{"format":1}`)
	meta := rd.Meta()
	same("meta", []string{meta["version"], meta["kernel"]}, []string{"test", "6.1"})
	same("metrics", rd.Metrics(), testMetrics)
	same("operations", collect(t, rd.Ops(w.ID())), ops)
	same("samples", collect(t, rd.Samples(w.ID())), samples)
	links, err := rd.Links()
	must(t, err)
	link.Trial, event.Trial = w.ID(), w.ID()
	same("links", links, []LinkCheck{link})
	events, err := rd.Events()
	must(t, err)
	slices.SortFunc(events, func(a, b Event) int { return int(b.Trial - a.Trial) })
	same("events", events, []Event{event, runEvent})

	want := trial
	want.ID, want.Cell, want.Block, want.Warmup, want.State, want.Epoch = w.ID(), "c001", 2, true, Done, epoch
	want.Outcomes, want.Classes, want.Bytes = live.OutcomeMap(), live.Classes, live.Bytes
	same("trials", trialsOf(t, rd), []Trial{want})

	summary, err := rd.Summary(w.ID())
	must(t, err)
	direct := NewSummary()
	direct.Ops(ops)
	same("counts", summary.Counts(), direct.Counts())
	for m := range numMeasures {
		for _, q := range []float64{0, .5, .99, 1} {
			same("quantile of "+m.String(), summary.Quantile(m, q), direct.Quantile(m, q))
			same("Kaplan-Meier of "+m.String(), summary.KaplanMeier(m, q), direct.KaplanMeier(m, q))
		}
	}
}

func TestCreateRefusesWhatIsThere(t *testing.T) {
	r := create(t)
	if _, err := Resume(r.Dir(), nil, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("second writer: %v", err)
	}
	r.Close()
	if _, err := Create(r.Dir(), nil, nil, nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("create over a run: %v", err)
	}
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600)
	if _, err := Create(dir, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("create in a directory in use: %v", err)
	}
	_, err := os.Stat(filepath.Join(dir, "precious"))
	must(t, err)
}

func TestDetailsAndSkippedTrials(t *testing.T) {
	r := create(t)
	begin := func(cell string) *TrialWriter {
		w, err := r.Begin(cell, 0, false, time.Now())
		must(t, err)
		return w
	}
	details := []Detail{
		{DetailPhase, "upload", 0.25}, {DetailPhase, "connect", 0.01}, // the system's order, not the alphabet's
		{DetailRSSPeak, "tahoe/client-1", 24e6},
	}
	must(t, begin("c001").End(Trial{Details: details}))
	must(t, begin("c002").End(Trial{State: Skipped, Error: "no RAM disk"}))
	trials := trialsOf(t, r.Reader)
	if got := trials[0]; !slices.Equal(got.Details, details) || !got.Valid() {
		t.Errorf("got %+v", got)
	}
	if got := trials[1]; got.State != Skipped || got.Valid() || got.Error == "" || got.Details != nil {
		t.Errorf("got %+v", got)
	}
	if err := begin("c003").End(Trial{Details: []Detail{details[0], details[0]}}); err == nil {
		t.Error("two details of the same name and kind")
	}
}

// Runs of other schemas are neither read nor resumed.
func TestOtherSchemas(t *testing.T) {
	for _, version := range []int{schemaVersion - 1, schemaVersion + 1} {
		r := create(t)
		must(t, r.Close())
		db, err := sql.Open("sqlite", filepath.Join(r.Dir(), dbFile))
		must(t, err)
		_, err = db.Exec(fmt.Sprintf(`UPDATE meta SET value = '%d' WHERE key = 'record.schema'`, version))
		must(t, errors.Join(err, db.Close()))
		if _, err := Resume(r.Dir(), nil, nil); err == nil || !strings.Contains(err.Error(), "use the version") {
			t.Errorf("schema %d is resumed: %v", version, err)
		}
	}
}
