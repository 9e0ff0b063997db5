package upload

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
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

// A put whose answer was lost has stored its object. If the lookup of the object is not answered
// either, this proves nothing: the object is not deleted.
func TestUploadUnansweredQuestionDeletesNothing(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(3, 1000))
		deleted, asked, lost := 0, 0, false
		b.node = b.mem.Hooked(
			func(_ context.Context, call, _ string) error {
				switch call {
				case "delete":
					deleted++
				case "get":
					if asked++; asked == 1 {
						return errors.New("503 busy")
					}
				}
				return nil
			},
			on("put", func() error {
				if !lost {
					lost = true
					return errors.New("connection reset")
				}
				return nil
			}))
		y := b.must()
		if deleted > 0 || asked == 0 {
			t.Errorf("deleted %d, asked %d times", deleted, asked)
		}
		if err := b.holds(); err != nil || y.metrics["accepted"] != 3 {
			t.Errorf("%v %v", err, y.metrics)
		}
	})
}

// An object that is proven to be wrong is broken; unreadable own data proves nothing.
func TestInspect(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(2, 1000))
		b.must()
		all, err := system.All(t.Context(), b.mem)
		must(t, err)
		var fails error
		n := b.mem.Hooked(on("get", func() error { return fails }), nil)
		b.node = n
		trial := &trial{runner: b.prepared(), set: b.set(), jobs: map[int]*job{},
			sink: scenario.Sink{Now: func() time.Duration { return time.Since(b.epoch) }}}
		pre := b.prepared().trialNames(b.cell, 42)
		for _, o := range all {
			object := slices.IndexFunc([]int{0, 1}, func(i int) bool { return pre+trial.set.Object(i).Name == o.Name })
			short := o
			short.Size--
			for _, c := range []struct {
				name   string
				object int
				o      system.Object
				get    error
				want   finding
			}{
				{"as it should be", object, o, nil, whole},
				{"another's bytes", 1 - object, o, nil, broken},
				{"too short", object, short, nil, broken},
				{"busy", object, o, errors.New("503 busy"), unknown},
				{"gone since", object, o, system.ErrNotFound, absent},
				{"its own word", object, o, system.ErrTooFew, broken},
			} {
				fails = c.get
				if got := trial.inspect(t.Context(), c.object, c.o); got != c.want {
					t.Errorf("%s: %v, want %v", c.name, got, c.want)
				}
			}
			good := trial.set
			trial.set = unreadableSet{good}
			if got := trial.inspect(t.Context(), object, o); got != unknown {
				t.Errorf("our own data cannot be read: %v", got)
			}
			trial.set = good
		}
		// Even for a large object, the comparison takes no longer than an operation may.
		begun := time.Now()
		fails = nil
		b.mem.Change(func(m *mem.Model) { m.A = 11 * time.Minute })
		if got := trial.inspect(t.Context(), 0, all[0]); got != unknown ||
			time.Since(begun) > synthetic.Limits().Deadline.Std() {
			t.Errorf("it is slow: %v after %v", got, time.Since(begun))
		}
	})
}

// unreadableSet is a set whose files are gone.
type unreadableSet struct{ workload.Set }

func (unreadableSet) Open(int) (io.ReadSeekCloser, error) { return nil, errors.New("no such file") }

// A list without most accepted objects is not trusted: nothing is put and paid for again.
func TestUploadEmptyListIsNotBelieved(t *testing.T) {
	for gone, want := range map[int]string{
		2: "",
		3: "3 of 4 accepted objects are missing from its list; none",
	} {
		synthetic.Virtual(t, func(t *testing.T) {
			b := newUploadBench(t, nil, uploadCell(4, 100))
			b.must()
			first := len(b.ledger.ops)
			all, _ := system.All(t.Context(), b.mem)
			for _, o := range all[:gone] {
				must(t, b.mem.Delete(t.Context(), o.Ref))
			}
			_, err := b.session(t.Context())
			again := len(puts(b.ledger.ops[first:]))
			switch {
			case want == "" && (err != nil || again != gone):
				t.Errorf("%d are gone: %v, %d puts more", gone, err, again)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want) || again > 0 ||
				b.ledger.count(record.JobMissing) > 0):
				t.Errorf("%d are gone: %v, %d puts more", gone, err, again)
			}
		})
	}
}

// Objects are durable even if the daemon is down when it is asked.
func TestUploadSettleIsAskedAgain(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"settle": "10s"}, uploadCell(5, 10))
		asked := 0
		b.node = b.mem.Hooked(on("settle", func() error {
			if asked++; asked%2 == 1 {
				return errors.New("connection refused")
			}
			return nil
		}), nil)
		b.must()
		for _, j := range b.ledger.jobs {
			if j.State != record.JobDurable || j.Durable-j.Accepted > time.Minute {
				t.Errorf("%+v", j)
			}
		}
	})
}

// A later session counts from the recorded operations: the experiment's deadlines are no failures
// of the server, and objects that could not be read were never put.
func TestUploadCountsGoOn(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(30, 10))
		for i := range 20 {
			b.ledger.ops = append(b.ledger.ops,
				record.Op{Kind: record.OpPut, Object: uint32(i), Outcome: record.Cancelled},
				record.Op{Kind: record.OpPut, Object: uint32(i), Outcome: record.OK},
				record.Op{Kind: record.OpPutDurable, Object: uint32(i), Outcome: record.OK})
		}
		sink := scenario.Sink{Now: func() time.Duration { return time.Hour }, Recorded: b.ledger.Recorded,
			Jobs: b.ledger.Jobs, Poll: b.ledger.Poll, Event: b.ledger.Event}
		trial := newTrial(b.prepared(), b.cell, 42, sink, b.set())
		for i := range 30 {
			job := record.Job{Object: int64(i), State: record.JobAccepted, Attempts: 2, Began: 1, Accepted: 2,
				Name: trial.name(i), Size: 10}
			if i >= 20 {
				job.State, job.Attempts = record.JobUnreadable, 0
			}
			if i >= 25 {
				job.Attempts = 3
			}
			b.ledger.jobs[int64(i)] = job
		}
		must(t, trial.replay(&restored{known: index{}}))
		m := Scenario{}.Measure(*measuredFrom(b.ledger, b.cell, scenario.Load{}))
		if trial.tally.finished != 20 || m["puts_ended"] != 20 || m["success_rate"] != 1 ||
			m["attempts_per_object"] != 55.0/25 {
			t.Errorf("finished %d, metrics %v", trial.tally.finished, m)
		}
	})
}

// An interrupted verification continues where it was: only objects that were being fetched then,
// or were put again since, are fetched twice.
func TestUploadVerificationGoesOn(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(20, 1000, func(u *experiment.Upload) { u.Verify = 1 }))
		n := b.mem.Hooked(nil, nil)
		b.node = n
		fetches := 0
		for _, until := range []int{8, 15} {
			ctx, cancel := context.WithCancel(t.Context())
			n.Before = on("get", func() error {
				switch fetches++; fetches {
				case 3:
					return errors.New("503 busy")
				case until:
					cancel()
					return ctx.Err()
				}
				return nil
			})
			if _, err := b.session(ctx); !errors.Is(err, context.Canceled) || fetches != until {
				t.Fatalf("%d fetches, %v", fetches, err)
			}
		}
		n.Before = on("get", func() error { fetches++; return nil })
		must(t, b.mem.Delete(t.Context(), system.Ref(b.ledger.jobs[0].Ref)))
		y := b.must()
		if want := 20 + 2 + 1; fetches != want { // 20 objects, 2 interruptions, 1 put again
			t.Errorf("%d fetches, want %d", fetches, want)
		}
		if y.metrics["verified"] != 19 || y.metrics["verify_failed"] != 1 || y.metrics["missing"] != 1 {
			t.Errorf("metrics %v", y.metrics)
		}
	})
}
