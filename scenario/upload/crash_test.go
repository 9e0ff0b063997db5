package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

var errCrash = errors.New("killed")

// crash kills a session at a step: from then on, its actions have no effect, as after kill -9.
type crash struct {
	at    int
	mu    sync.Mutex // parts of a session run concurrently
	steps int
	dead  bool
	kill  context.CancelCauseFunc
	path  []string // the steps so far
}

// step reports whether the session is still alive after one more step.
func (c *crash) step(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return false
	}
	c.path = append(c.path, what)
	if c.steps++; c.steps == c.at {
		c.dead = true
		c.kill(errCrash)
		return false
	}
	return true
}

// around calls do between two steps. It returns errCrash once the session is dead.
func (c *crash) around(what string, do func() error) error {
	if !c.step("before " + what) {
		return errCrash
	}
	err := do()
	if !c.step("after " + what) {
		return errCrash
	}
	return err
}

func (c *crash) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead
}

// mortal returns a node whose client may be killed before and after each change. put, if not nil,
// is called before each put of a living session.
func (c *crash) mortal(n *mem.Node, put func(name string)) *mem.Node {
	hook := func(when string) func(context.Context, string, string) error {
		return func(_ context.Context, call, of string) error {
			if put != nil && when+call == "before put" && c.alive() {
				put(of)
			}
			if slices.Contains([]string{"put", "settle", "delete"}, call) && !c.step(when+call) {
				return errCrash
			}
			return nil
		}
	}
	return n.Hooked(hook("before "), hook("after "))
}

// unsettled is the interface of a node that does not report durability.
type unsettled interface {
	system.Store
	system.Namer
	system.Deleter
	system.Lister
	system.Stater
	system.Ranger
}

// mortalLedger is a journal whose writer may be killed before and after each write.
type mortalLedger struct {
	*ledger
	c *crash
}

func (l mortalLedger) Jobs(jobs ...record.Job) error {
	var states []string
	for _, j := range jobs {
		states = append(states, string(j.State))
	}
	return l.c.around(strings.Join(states, " and "), func() error { return l.ledger.Jobs(jobs...) })
}

func (l mortalLedger) Event(e record.Event) error {
	return l.c.around("event "+e.What, func() error { return l.ledger.Event(e) })
}

// A session is killed at each of its steps, and the next one at each of its first steps; the
// third leaves each object in the system exactly once, byte for byte, and its records say so.
// Between the sessions, the system loses an accepted object, or has stored half of one in doubt,
// or nothing happens. This holds with and without reports of durability.
func TestUploadSurvivesAnyCrash(t *testing.T) {
	// stored leaves a part of an object that was being put, with other bytes.
	stored := func(divided int64) func(*testing.T, *uploadBench) {
		return func(t *testing.T, b *uploadBench) {
			for _, j := range b.ledger.jobs {
				if size := j.Size / divided; j.State == record.JobPutting {
					_, err := b.mem.Put(t.Context(), j.Name, size, bytes.NewReader(make([]byte, size)))
					must(t, err)
				}
			}
		}
	}
	sabotages := map[string]func(t *testing.T, b *uploadBench){
		"nothing": func(*testing.T, *uploadBench) {},
		"lost": func(t *testing.T, b *uploadBench) {
			accepted := b.ledger.count(record.JobAccepted) + b.ledger.count(record.JobDurable)
			for _, j := range b.ledger.jobs {
				if accepted > 1 && isStored(j.State) { // a list without most of them would not be believed
					if err := b.mem.Delete(t.Context(), system.Ref(j.Ref)); err != nil &&
						!errors.Is(err, system.ErrNotFound) {
						t.Fatal(err)
					}
					return
				}
			}
		},
		"half":  stored(2),
		"wrong": stored(1),
	}
	for name, sabotage := range sabotages {
		for _, settles := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, settles %v", name, settles), func(t *testing.T) {
				t.Parallel()
				for first := 1; ; first++ {
					second, over := 0, false
					for !over {
						var secondOver, firstOver bool
						var seen []string
						synthetic.Virtual(t, func(t *testing.T) {
							firstOver, secondOver, seen = crashTwice(t, settles, first, second, sabotage)
						})
						if t.Failed() {
							t.Fatalf("killed at step %d, then at step %d", first, second)
						}
						if firstOver {
							if first < 16 {
								t.Errorf("a whole session has %d steps: %v", first-1, seen)
							}
							return
						}
						// Over all first steps, every second step is covered.
						if second += 3; second == 3 {
							second = 1 + first%3
						}
						over = secondOver || second > 15
					}
				}
			})
		}
	}
}

// crashTwice reports whether the first and the second session ended before they were killed.
func crashTwice(t *testing.T, settles bool, first, second int, sabotage func(*testing.T, *uploadBench)) (firstOver,
	secondOver bool, steps []string) {
	cell := uploadCell(3, 100, func(u *experiment.Upload) { u.Concurrency = 1; u.Verify = 1 })
	options, done := system.Options{"a": "1s"}, record.JobAccepted
	if settles {
		options["settle"], done = "5s", record.JobDurable
	}
	b := newUploadBench(t, options, cell)
	// A put begins only after the journal records its start. By then, every stored object is
	// recorded as stored or, after a session was killed, as in doubt.
	doubted := map[string]bool{}
	before := func(name string) {
		recorded := map[string]record.JobState{}
		b.ledger.mu.Lock()
		for _, j := range b.ledger.jobs {
			recorded[j.Name] = j.State
		}
		b.ledger.mu.Unlock()
		all, _ := system.All(t.Context(), b.mem)
		for _, o := range all {
			state := recorded[o.Name]
			if state == record.JobPutting && doubted[o.Name] {
				continue
			}
			if o.Name != name && state != record.JobAccepted && state != done {
				t.Errorf("when %s was put, %s was stored, and recorded as %q", name, o.Name, state)
			}
		}
		if state := recorded[name]; state != record.JobPutting {
			t.Errorf("when %s was put, it was recorded as %q", name, state)
		}
	}
	run := func(at int) (*crash, yield, error) {
		ctx, kill := context.WithCancelCause(t.Context())
		defer kill(nil)
		c := &crash{at: at, kill: kill}
		for _, j := range b.ledger.jobs {
			doubted[j.Name] = j.State == record.JobPutting
		}
		node := c.mortal(b.mem, before)
		if b.node = node; !settles {
			b.node = struct{ unsettled }{node}
		}
		y, err := b.sessionWith(ctx, mortalLedger{b.ledger, c})
		synctest.Wait()
		return c, y, err
	}
	c, _, err := run(first)
	if !c.dead {
		must(t, err)
		return true, true, c.path
	}
	if err == nil {
		t.Errorf("a session that was killed at %q says that it is done", c.path[len(c.path)-1])
	}
	sabotage(t, b)
	if second > 0 {
		c, _, err = run(second)
		if secondOver = !c.dead; secondOver && err != nil {
			t.Fatal(err)
		}
	}
	_, y, err := run(0)
	if err != nil {
		t.Error(err)
	}
	if err := b.holds(); err != nil {
		t.Error(err)
	}
	for i := range 3 {
		if j := b.ledger.jobs[int64(i)]; j.State != done || j.Ref == "" {
			t.Errorf("job %+v", j)
		}
	}
	if m := y.metrics; m["accepted"] != 3 || settles && m["durable"] != 3 || m["verified"] != 3 || m["failed"] != 0 ||
		m["accepted_bytes"] != 300 {
		t.Errorf("metrics %v", m)
	}
	return false, secondOver, c.path
}

// An object in doubt that was stored whole is not put again.
func TestUploadAdoptsWhatIsThere(t *testing.T) {
	t.Run("by its name", func(t *testing.T) { adoptsWhatIsThere(t, func(n *mem.Node) system.Store { return n }) })
	t.Run("by its ref", func(t *testing.T) { adoptsWhatIsThere(t, func(n *mem.Node) system.Store { return hashing{n} }) })
}

// hashing is a node that lists objects by a hash of their names.
type hashing struct{ *mem.Node }

func (n hashing) List(ctx context.Context, visit func(system.Object) error) error {
	return n.Node.List(ctx, func(o system.Object) error {
		o.Name = "=sha256="
		return visit(o)
	})
}

func adoptsWhatIsThere(t *testing.T, second func(*mem.Node) system.Store) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(2, 100))
		ctx, kill := context.WithCancelCause(t.Context())
		c := &crash{at: 6, kill: kill} // events (2), putting (2), put (2)
		b.node = c.mortal(b.mem, nil)
		if _, err := b.sessionWith(ctx, mortalLedger{b.ledger, c}); err == nil || c.path[5] != "after put" {
			t.Fatalf("%v, killed at %q", err, c.path)
		}
		b.node = second(b.mem)
		y := b.must()
		if err := b.holds(); err != nil {
			t.Error(err)
		}
		if n := puts(y.ops); n[0] != 0 || n[1] != 1 {
			t.Errorf("puts by object: %v", n)
		}
		if j := b.ledger.jobs[0]; !j.Adopted || j.Attempts != 1 {
			t.Errorf("job %+v", j)
		}
		if err := has(b.ledger.happened(whatReconciled),
			"0 objects accepted, 0 of them missing; 1 in doubt; 1 other listed objects will be checked"); err != nil {
			t.Error(err)
		}
		if y.metrics["adopted"] != 1 || y.metrics["accepted"] != 2 {
			t.Errorf("metrics %v", y.metrics)
		}
	})
}

// An object that an earlier session gave up remains given up if a part of it or something else is
// listed. If it is whole, it is accepted.
func TestUploadResumeKeepsWhatWasGivenUp(t *testing.T) {
	for _, c := range []struct {
		name string
		get  error // error of fetching the object
		size int64 // size of the stored object
		want map[string]float64
	}{
		{"a part", nil, 50, map[string]float64{"failed": 1, "accepted": 1}},
		{"it does not answer", errors.New("503 busy"), 100, map[string]float64{"failed": 1, "accepted": 1}},
		{"whole", nil, 100, map[string]float64{"failed": 0, "accepted": 2, "adopted": 1}},
	} {
		synthetic.Virtual(t, func(t *testing.T) {
			b := newUploadBench(t, nil, uploadCell(2, 100))
			b.must()
			j := b.ledger.jobs[0]
			must(t, b.mem.Delete(t.Context(), system.Ref(j.Ref)))
			from, err := b.set().Open(0)
			must(t, err)
			_, err = b.mem.Put(t.Context(), j.Name, c.size, io.LimitReader(from, c.size))
			must(t, err)
			b.ledger.jobs[0] = record.Job{Name: j.Name, Size: 100, State: record.JobFailed, Attempts: 4, Began: j.Began}
			b.node = b.mem.Hooked(on("get", func() error { return c.get }), nil)
			y := b.must()
			if n := puts(y.ops); len(n) > 0 || b.ledger.jobs[0].Attempts != 4 {
				t.Errorf("%s: puts %v, job %+v", c.name, n, b.ledger.jobs[0])
			}
			for key, want := range c.want {
				if y.metrics[key] != want {
					t.Errorf("%s: %s is %v", c.name, key, y.metrics[key])
				}
			}
		})
	}
}

// A data set that differs from the one that the trial began with is refused, and the error names
// the difference.
func TestUploadRefusesAnotherDataSet(t *testing.T) {
	for want, change := range map[string]func(*experiment.Cell){
		"is 6 objects": func(c *experiment.Cell) { c.Data.Objects = 6 },
		"is 1 objects": func(c *experiment.Cell) { c.Data.Objects = 1 },
		"fingerprint":  func(c *experiment.Cell) { c.Data.Size = 101 },
	} {
		synthetic.Virtual(t, func(t *testing.T) {
			b := newUploadBench(t, system.Options{"a": "1s"}, uploadCell(4, 100))
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			if _, err := b.session(ctx); err == nil {
				t.Fatal("it is done")
			}
			before := fmt.Sprint(b.ledger.jobs)
			change(&b.cell)
			_, err := b.session(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "it: the data set has changed since the trial began: ") ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			if fmt.Sprint(b.ledger.jobs) != before {
				t.Error("the journal was changed")
			}
		})
	}
}

// marked is a system whose attached node prefixes names of objects with a mark of the session,
// like that of a Sia renter, and cannot derive refs from names.
type marked struct {
	system.Store
	of   *mem.Node
	mark string
}

func (n marked) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.of.Put(ctx, n.mark+name, size, r)
}
func (n marked) List(ctx context.Context, visit func(system.Object) error) error {
	return n.of.List(ctx, visit)
}
func (n marked) Delete(ctx context.Context, ref system.Ref) error { return n.of.Delete(ctx, ref) }
func (n marked) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.of.Get(ctx, ref, w)
}

// Objects that an earlier session stored under names with another mark are found.
func TestUploadFindsMarkedNames(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"a": "1s"}, uploadCell(6, 100))
		b.node = marked{b.mem, b.mem, "one-"}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if _, err := b.session(ctx); err == nil {
			t.Fatal("it is done")
		}
		// The interrupted put had stored its object nevertheless.
		j := b.ledger.jobs[2]
		from, err := b.set().Open(2)
		if err != nil || j.State != record.JobPutting {
			t.Fatal(err, j)
		}
		if _, err := b.mem.Seed(t.Context(), "one-"+j.Name, j.Size, from); err != nil {
			t.Fatal(err)
		}
		b.node = marked{b.mem, b.mem, "two-"}
		b.cell.Upload.Verify = 1
		y := b.must()
		if err := has(b.ledger.happened(whatReconciled),
			"2 objects accepted, 0 of them missing; 1 in doubt; 1 other listed objects will be checked"); err != nil {
			t.Error(err)
		}
		all, _ := system.All(t.Context(), b.mem)
		if len(all) != 6 || y.metrics["verified"] != 6 {
			t.Errorf("there are %v; metrics %v", all, y.metrics)
		}
	})
}
