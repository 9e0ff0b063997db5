package record

import (
	"database/sql"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A trial is paused and goes on, in another session, as if it had not been.
func TestATrialGoesOn(t *testing.T) {
	r := create(t)
	dir, id := r.Dir(), r.ID()
	epoch := time.Unix(1700000000, 0).UTC()
	w, err := r.Begin("c001", 4, false, epoch)
	must(t, err)
	source := newSynthetic(1, 50)
	var ops []Op
	give := func(w *TrialWriter, n int) {
		t.Helper()
		batch := source.take(n)
		ops = append(ops, batch...)
		must(t, w.Ops(batch))
	}
	give(w, 5000)
	interim := Trial{State: Running, Seconds: 7, Metrics: map[string]float64{"throughput": 3},
		Notes: []string{"it goes on"}, Details: []Detail{{DetailPhase, "x", 1}}}
	for session := range 3 {
		must(t, w.Jobs(syntheticJob(int64(session)), syntheticJob(0)))
		poll := syntheticPoll(int64(10*session), 2, 9)
		must(t, w.Poll(poll))
		give(w, 100)
		if session%2 == 0 {
			must(t, w.End(interim))
			want := interim
			want.ID, want.Cell, want.Block, want.Epoch = w.ID(), "c001", 4, epoch
			checkPaused(t, r, w, want)
		}
		must(t, r.Close())
		asked := 0
		r = resume(t, dir, func(t Trial) bool {
			asked++
			return t.Cell == "c001" && t.Block == 4
		})
		defer r.Close()
		if asked != 1 || r.ID() != id || len(id) != 16 {
			t.Errorf("asked %d times; ID %q, was %q", asked, r.ID(), id)
		}
		trials := trialsOf(t, r.Reader)
		if len(trials) != 1 {
			t.Fatal(trials)
		}
		var last time.Duration
		w, last, err = r.Continue(trials[0])
		must(t, err)
		if want := max(poll.End, syntheticJob(int64(session)).Durable,
			time.Duration(ops[len(ops)-1].LastByte)); last != want {
			t.Errorf("session %d: the last moment is %v, want %v", session, last, want)
		}
		if _, _, err := r.Continue(trials[0]); err == nil {
			t.Error("two go on with the same trial")
		}
		got := trialsOf(t, r.Reader)[0]
		if got.ID != w.ID() || !got.Epoch.Equal(epoch) || got.State != Running || got.Seconds != 0 ||
			len(got.Metrics)+len(got.Notes)+len(got.Details) > 0 {
			t.Errorf("what the pause recorded is still there: %+v", got)
		}
	}
	give(w, 5000)
	must(t, w.End(Trial{Metrics: map[string]float64{"throughput": 5}}))
	if _, _, err := r.Continue(Trial{ID: w.ID()}); err == nil {
		t.Error("a trial that has ended goes on")
	}

	checkWhole(t, r, w, ops)
	if jobs := collect(t, r.Jobs(w.ID())); len(jobs) != 3 {
		t.Errorf("%d jobs", len(jobs))
	}
	if polls := collect(t, r.Polls(w.ID())); len(polls) != 3 {
		t.Errorf("%d polls", len(polls))
	}
}

// checkPaused compares what a reader has of a trial that was paused, and that it takes no more.
func checkPaused(t *testing.T, r *Run, w *TrialWriter, want Trial) {
	t.Helper()
	c := w.Summary().Counts()
	want.Outcomes, want.Classes, want.Bytes = c.OutcomeMap(), c.Classes, c.Bytes
	if d := cmp.Diff([]Trial{want}, trialsOf(t, r.Reader), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("paused (-want +got):\n%s", d)
	}
	summary, err := r.Summary(w.ID())
	must(t, err)
	if d := cmp.Diff(c, summary.Counts()); d != "" ||
		summary.Quantile(Duration, .5) != w.Summary().Quantile(Duration, .5) {
		t.Errorf("summary of the pause (-want +got):\n%s", d)
	}
	if w.Ops(newSynthetic(1, 50).take(1)) == nil || w.Jobs(syntheticJob(1)) == nil {
		t.Error("operations or jobs after the pause were accepted")
	}
}

// checkWhole compares a trial with its operations, in windows, one by one and summarised.
func checkWhole(t *testing.T, r *Run, w *TrialWriter, ops []Op) {
	t.Helper()
	_, want := windowsOf(t, ops)
	if d := cmp.Diff(want, collect(t, r.Windows(w.ID()))); d != "" {
		t.Errorf("windows (-want +got):\n%s", d)
	}
	if d := cmp.Diff(ops, collect(t, r.Ops(w.ID()))); d != "" {
		t.Errorf("operations (-want +got):\n%s", d)
	}
	got, err := r.Summary(w.ID())
	must(t, err)
	direct := NewSummary()
	direct.Ops(ops)
	if d := cmp.Diff(direct.Counts(), got.Counts()); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
	for _, q := range []float64{0, .5, .99, 1} {
		if got.Quantile(Duration, q) != direct.Quantile(Duration, q) ||
			got.KaplanMeier(TTFB, q) != direct.KaplanMeier(TTFB, q) {
			t.Errorf("the quantiles %v differ", q)
		}
	}
}

func TestJobsAndPollsAreReadBack(t *testing.T) {
	r := create(t)
	w := begin(t, r, 0)
	var jobs []Job
	for i := range int64(page + 10) {
		jobs = append(jobs, syntheticJob(3*i))
	}
	jobs[1] = Job{Object: 3, State: JobPutting, Attempts: 1, Name: "ü \x00 \" \xff", Began: -time.Second}
	jobs[2] = Job{Object: 6, State: JobFailed, Attempts: 9, Error: "it's\nfull", Size: 7}
	jobs[3] = Job{Object: 9, State: JobAccepted, Adopted: true, Accepted: 1}
	early := jobs[4]
	early.State, early.Durable = JobPutting, 0
	must(t, w.Jobs(early))
	must(t, w.Jobs(jobs...))
	if d := cmp.Diff(jobs, collect(t, r.Jobs(w.ID()))); d != "" {
		t.Errorf("jobs (-want +got):\n%s", d)
	}
	var polls []Poll
	for i := range int64(2*page + 1) {
		polls = append(polls, syntheticPoll(2*i, 6, 25))
	}
	polls[3] = Poll{Seq: 6, Missed: 1}
	polls[4].Calls = []PollCall{{Name: "", Start: -1, End: 1, Error: "<html>\n\"\\\x00ü"}, {Name: "ü\"\\"}}
	polls[4].Readings = []Reading{
		{Name: "c", Bad: "not told"},
		{Name: "d", Value: math.MaxFloat64}, {Name: "e", Value: math.SmallestNonzeroFloat64},
		{Name: "f", Value: math.Copysign(0, -1)},
		{Name: "],[", Value: 0.1, Exact: "100000000000000000000000", Bad: "],["}, {Name: "a", Exact: "1"},
	}
	for _, p := range polls {
		must(t, w.Poll(p))
	}
	must(t, r.Flush())
	if d := cmp.Diff(polls, collect(t, r.Polls(w.ID())), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("polls (-want +got):\n%s", d)
	}
	checkViews(t, r.Reader, polls)
}

// checkViews compares what SQL sees of polls with them.
func checkViews(t *testing.T, rd *Reader, polls []Poll) {
	t.Helper()
	var calls []PollCall
	var readings []Reading
	for _, p := range polls {
		calls = append(calls, p.Calls...)
		readings = append(readings, p.Readings...)
	}
	seenCalls := selected(t, rd, `SELECT name, start_ns, end_ns, error FROM calls ORDER BY seq, place`,
		func(c *PollCall) []any { return []any{&c.Name, &c.Start, &c.End, &c.Error} })
	if d := cmp.Diff(calls, seenCalls); d != "" {
		t.Errorf("calls to SQL (-want +got):\n%s", d)
	}
	seenReadings := selected(t, rd, `SELECT name, value, exact, bad FROM readings ORDER BY seq, place`,
		func(r *Reading) []any { return []any{&r.Name, &r.Value, &r.Exact, &r.Bad} })
	// SQLite may read a number's last digit differently.
	if d := cmp.Diff(readings, seenReadings, cmpopts.EquateApprox(1e-14, 0)); d != "" {
		t.Errorf("readings to SQL (-want +got):\n%s", d)
	}
}

// selected are the rows of a query, whose columns are these fields.
func selected[T any](t *testing.T, rd *Reader, query string, fields func(*T) []any) (all []T) {
	t.Helper()
	must(t, eachRow(rd.db, query, nil, func(rows *sql.Rows) error {
		var row T
		err := rows.Scan(fields(&row)...)
		all = append(all, row)
		return err
	}))
	return all
}

func TestMarksAreReadBack(t *testing.T) {
	r := create(t)
	var writers []*TrialWriter
	for block := range 2 {
		writers = append(writers, begin(t, r, block))
	}
	n := int64(2*page + 3)
	for from := int64(0); from < n; from += 501 {
		for i, w := range writers { // two trials at once do not mix
			must(t, w.Marks(syntheticMarks(from+int64(i)*n, min(501, n-from))))
		}
	}
	must(t, r.Flush())
	for i, w := range writers {
		if d := cmp.Diff(syntheticMarks(int64(i)*n, n), collect(t, r.Marks(w.ID()))); d != "" {
			t.Errorf("marks of trial %d (-want +got):\n%s", w.ID(), d)
		}
	}
	if got := collect(t, r.Marks(99)); len(got) > 0 {
		t.Errorf("a trial that there is not has %d marks", len(got))
	}
}
