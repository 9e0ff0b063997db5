package upload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A file that vanishes or changes while others are stored is no failure of the system. Nothing of
// it remains in the system, and the other files are stored.
func TestUploadUnreadableData(t *testing.T) {
	for what, spoil := range map[string]func(path string) error{
		"vanished": os.Remove,
		"shorter":  func(path string) error { return os.WriteFile(path, []byte("b"), 0o644) },
		"longer":   func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("b", 100)), 0o644) },
	} {
		dir := tree(t, map[string]string{"a": "aaaa", "b": "bbbb", "c/d": "dddd"})
		synthetic.Virtual(t, func(t *testing.T) {
			cell := uploadCell(0, 0)
			cell.Data = experiment.Data{Directory: dir, Copies: 1}
			b := newUploadBench(t, system.Options{"a": "1s"}, cell)
			during := "b" // whose file is open at that time
			if what == "vanished" {
				during = "a"
			}
			b.faulty(func(name string, _ int) error {
				if name == during {
					return spoil(filepath.Join(dir, "b"))
				}
				return nil
			})
			y, err := b.session(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if j := b.ledger.jobs[1]; j.State != record.JobUnreadable || j.Error == "" {
				t.Errorf("%s: job %+v", what, j)
			}
			if m := y.metrics; m["accepted"] != 2 || m["unreadable"] != 1 || m["failed"] != 0 ||
				m["success_rate"] != 1 {
				t.Errorf("%s: metrics %v", what, m)
			}
			if all, _ := system.All(t.Context(), b.mem); len(all) != 2 {
				t.Errorf("%s: there are %v", what, all)
			}
			if b.ledger.happened("data unreadable") == "" {
				t.Errorf("%s: it is not said", what)
			}
			// The data set differs from the one that the trial began with.
			if _, err := b.session(t.Context()); err == nil || !strings.Contains(err.Error(),
				"the data set has changed") {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// Errors, hangs and a system that loses bytes: in the end, each object is stored once, and the
// operations contain the failures.
func TestUploadThroughTrouble(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"a": "100ms", "seed": "5"},
			uploadCell(60, 3000, func(u *experiment.Upload) {
				u.Concurrency, u.Retries = 4, 50
			}))
		b.mem.Change(func(m *mem.Model) { m.Errors, m.Hangs = 0.2, 0.1 })
		y := b.must()
		b.mem.Change(func(m *mem.Model) { m.Errors, m.Hangs = 0, 0 })
		if err := b.holds(); err != nil {
			t.Error(err)
		}
		outcomes := map[record.Outcome]int{}
		for _, op := range y.ops {
			if op.Kind == record.OpPut {
				outcomes[op.Outcome]++
			}
		}
		if outcomes[record.OK] != 60 || outcomes[record.Stalled] == 0 || outcomes[record.Error] == 0 ||
			len(outcomes) != 3 {
			t.Errorf("outcomes %v", outcomes)
		}
		want := 60 / float64(60+outcomes[record.Stalled]+outcomes[record.Error])
		if !synthetic.Near(y.metrics["success_rate"], want) {
			t.Errorf("success rate %v, want %v", y.metrics["success_rate"], want)
		}
	})
}

// Verify finds objects that come back with wrong bytes, truncated, or not at all, and reports
// each as such.
func TestUploadVerifies(t *testing.T) {
	for outcome, spoil := range map[record.Outcome]func(*mem.Model){
		record.WrongBytes: func(m *mem.Model) { m.Corrupt = 1 },
		record.Truncated:  func(m *mem.Model) { m.Truncate = 1 },
		record.Error:      func(m *mem.Model) { m.Errors = 1 },
	} {
		synthetic.Virtual(t, func(t *testing.T) {
			b := newUploadBench(t, system.Options{"a": "1s"}, uploadCell(400, 1000,
				func(u *experiment.Upload) { u.Verify = 0.5 }))
			f := b.faulty(nil)
			f.after = func(string, int) error {
				if len(f.puts) == 400 {
					b.mem.Change(spoil)
				}
				return nil
			}
			y := b.must()
			got := 0
			for _, op := range y.ops {
				if op.Kind == record.OpGet {
					if got++; op.Outcome != outcome {
						t.Errorf("operation %+v, want %s", op, outcome)
					}
				}
			}
			if got < 160 || got > 240 || y.metrics["verify_failed"] != float64(got) || y.metrics["verified"] != 0 {
				t.Errorf("%s: %d of 400 were verified; metrics %v", outcome, got, y.metrics)
			}
			if b.ledger.happened("object not verified") == "" {
				t.Error("it is not said")
			}
		})
	}
}

// If the experiment asks for it, the session that ends the trial removes the stored objects from
// an attached system. An interrupted session removes nothing.
func TestUploadRemoves(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"a": "1s"}, uploadCell(10, 10,
			func(u *experiment.Upload) { u.After = "remove" }))
		b.mode = system.Attach
		if _, err := b.mem.Seed(t.Context(), "someone's", 1, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
		defer cancel()
		from := time.Now()
		if _, err := b.session(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(from) > 6*time.Second {
			t.Fatalf("%v after %v", err, time.Since(from))
		}
		if all, _ := system.All(t.Context(), b.mem); len(all) != 6 {
			t.Errorf("an interrupted session leaves %d objects, not 5 and another's", len(all))
		}
		y := b.must()
		all, _ := system.All(t.Context(), b.mem)
		if len(all) != 1 || all[0].Name != "someone's" {
			t.Errorf("there are %v", all)
		}
		if y.metrics["accepted"] != 10 || y.metrics["absolute_bytes"] != 100 {
			t.Errorf("metrics %v", y.metrics)
		}
	})
}

func TestCollectPollsAndStoresNothing(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		cluster, err := mem.System{}.Start(t.Context(), system.Deployment{})
		must(t, err)
		cell := experiment.Cell{ID: "c001", Collect: &experiment.Collect{Every: experiment.Duration(time.Minute),
			For: experiment.Duration(10 * time.Minute)}}
		runner, err := Collect{}.Prepare(t.Context(), scenario.Site{Use: experiment.SystemUse{Name: "mem"},
			Cluster: cluster, Limits: synthetic.Limits()}, []experiment.Cell{cell})
		must(t, err)
		l, epoch := newLedger(), time.Now()
		states := 0
		sink := scenario.Sink{Epoch: epoch, Recorded: l.Recorded, Jobs: l.Jobs, Poll: l.Poll, Event: l.Event,
			Now:   func() time.Duration { return time.Since(epoch) },
			State: func(scenario.State) { states++ }}
		// Four minutes, a pause of two, then the rest of the ten.
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute+time.Second)
		defer cancel()
		if _, err := runner.Trial(ctx, cell, 1, sink); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		load, err := runner.Trial(t.Context(), cell, 1, sink)
		if err != nil || time.Since(epoch) != 10*time.Minute {
			t.Errorf("%v after %v", err, time.Since(epoch))
		}
		m := Collect{}.Measure(*measuredFrom(l, cell, load))
		if n := float64(len(l.polls)); n < 9 || m["polls"] != n || m["polls_missed"] < 1 || m["poll_gaps"] != 0 ||
			states < len(l.polls) {
			t.Errorf("%d polls, %d states, metrics %v", len(l.polls), states, m)
		}
		for i, p := range l.polls {
			if i > 0 && p.Seq <= l.polls[i-1].Seq {
				t.Errorf("poll %d follows poll %d", p.Seq, l.polls[i-1].Seq)
			}
		}
		if all, _ := system.All(t.Context(), cluster.Nodes()[0].(*mem.Node)); len(all) != 0 {
			t.Errorf("it stored %v", all)
		}
		// An exit condition ends it without an error.
		stop, end := context.WithCancelCause(t.Context())
		end(&scenario.Stop{Condition: "max_runtime", Why: "it is late"})
		cell.Collect.For = 0
		if load, err = runner.Trial(stop, cell, 1, sink); err != nil ||
			fmt.Sprint(load.Notes) != "[stopped by max_runtime: it is late]" {
			t.Errorf("%v, notes %q", err, load.Notes)
		}
	})
}

// A load test beyond its load line is invalid by the common rule of all scenarios. Objects that
// need not have crossed the link in the known time do not count.
func TestUploadBeyondItsLine(t *testing.T) {
	const line, size = 1e6, 1e6
	second := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	job := func(object int64, began, accepted, durable float64) record.Job {
		j := record.Job{Object: object, Size: size, State: record.JobAccepted, Attempts: 1, Began: second(began),
			Accepted: second(accepted)}
		if durable > 0 {
			j.State, j.Durable = record.JobDurable, second(durable)
		}
		return j
	}
	adopted := job(2, 1, 1.1, 0)
	adopted.Adopted = true
	for _, c := range []struct {
		name    string
		jobs    []record.Job
		settles bool
		resumed bool
		copies  int
		want    float64 // 0: unknown
		valid   bool
	}{
		{"at its line", []record.Job{job(0, 0, 1, 0), job(1, 1, 2, 0)}, false, false, 1, 1, true},
		{"impossible", []record.Job{job(0, 0, 0.5, 0), job(1, 0.5, 1, 0)}, false, false, 1, 2, false},
		{"impossible, resumed", []record.Job{job(0, 0, 0.5, 0), job(1, 0.5, 1, 0)}, false, true, 1, 2, false},
		{"accepted into a buffer", []record.Job{job(0, 0, 0.1, 1.1), job(1, 0.1, 0.2, 2)}, true, false, 1, 1, true},
		{"durable too soon", []record.Job{job(0, 0, 0.1, 0.5), job(1, 0.1, 0.2, 1)}, true, false, 1, 2, false},
		{"durable between sessions", []record.Job{job(0, 0, 0.1, 0.5), job(1, 0.1, 0.2, 1)}, true, true, 1, 0, true},
		{"found stored", []record.Job{job(0, 0, 1, 0), adopted}, false, false, 1, 1 / 1.1, true},
		{"copies", []record.Job{job(0, 0, 0.5, 0), job(1, 0.5, 1, 0)}, false, false, 2, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell := uploadCell(2, size)
			cell.Data.Copies = c.copies
			in := newLedger().Recorded()
			in.Cell, in.Jobs, in.Link = cell, slices.Values(c.jobs), &record.LinkCheck{WantRate: 8 * line, Rate: 8 * line}
			if c.settles {
				in.Load.Details = []record.Detail{scenario.Fact(scenario.LoadSettles, 1)}
			}
			if share, known := (Scenario{}).Measure(in)["line_share"]; known {
				t.Errorf("a trial that did not end has the share %v", share)
			}
			in.Load.Details = append(in.Load.Details, scenario.Fact(scenario.LoadObjects, 2))
			if c.resumed {
				in.Events = slices.Values([]record.Event{{Kind: eventResume, What: whatReconciled}})
			}
			m := Scenario{}.Measure(in)
			if math.Abs(m["line_share"]-c.want) > 1e-9 {
				t.Errorf("share %v, want %v", m["line_share"], c.want)
			}
			why := analysis.InvalidReasons(cell, experiment.Limits{}, record.Trial{State: record.Done, Metrics: m})
			if slices.Contains(why, record.ReasonBeyondLine) == c.valid {
				t.Errorf("reasons %v", why)
			}
		})
	}
}

// With more accepted objects than entries, sums up to any moment and series are the same as with
// an entry per object, except within merged entries.
func TestManyObjectsTakeBoundedMemory(t *testing.T) {
	const n = 2*mostAccepted + 1
	jobs := func(yield func(record.Job) bool) {
		for i := range int64(n) {
			at := time.Duration(i+1) * time.Millisecond
			if !yield(record.Job{Object: i, Size: 3, State: record.JobAccepted, Attempts: 1, Began: at - time.Millisecond,
				Accepted: at}) {
				return
			}
		}
	}
	in := newLedger().Recorded()
	in.Jobs = jobs
	s := readObjects(&in, 1, func(size int64) int64 { return 2 * size })
	if all := s.accepted(); all != (stored{n, 3 * n, 6 * n}) || len(s.all) >= mostAccepted {
		t.Errorf("%+v in %d", all, len(s.all))
	}
	for _, at := range []float64{0, 1, n / 3000., n / 1000.} {
		if got, want := float64(s.by(at).objects), 1000*at; math.Abs(got-want) > 4 {
			t.Errorf("by %v s: %v, want %v", at, got, want)
		}
	}
	l := &loadTest{trial: &analysis.Trial{}, objects: s}
	l.ofObjects()
	for _, series := range l.out.Series {
		for i, p := range series.Points[1:] {
			if want := 3000.; series.Metric == "file_bandwidth" && math.Abs(p.Value-want) > 0.001*want {
				t.Errorf("point %d of the bandwidth is %v, want %v", i, p.Value, want)
			}
		}
	}
}

func TestUploadProblems(t *testing.T) {
	for can, want := range map[string]string{"put": "[]", "http": `no ability "put"`} {
		problems := Scenario{}.Problems(experiment.SystemUse{}, system.Info{Can: []string{can}}, nil)
		if text := fmt.Sprint(problems); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", can, text, want)
		}
	}
	objects, bytes := Scenario{}.Prepares([]experiment.Cell{uploadCell(10, 5), uploadCell(1, 7)})
	if objects != 11 || bytes != 57 {
		t.Errorf("%d objects, %d bytes", objects, bytes)
	}
}
