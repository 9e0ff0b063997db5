package upload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// trial is one session of a trial.
type trial struct {
	*runner
	u    *experiment.Upload
	seed uint64
	sink scenario.Sink
	set  workload.Set
	pre  string // prefix of object names

	queue *queue
	polls *polls
	log   *scenario.Tally

	mu       sync.Mutex
	jobs     map[int]*job          // unfinished objects: their put began, or they are not yet durable
	listed   map[int]system.Object // listed objects that are not recorded as stored whole
	fetched  map[int]fetch         // results of earlier sessions' final fetches
	unread   int                   // objects not fetched because their own data could not be read
	troubled map[string]int        // objects in trouble in this session, by kind of trouble
	tally    putCounts             // over all sessions
	session  int64                 // attempts of this session
	last     time.Duration         // time of the last acceptance
	full     string
	quotas   int // consecutive attempts that the system had no room for
	notes    []string
}

// job is the state of an unfinished object. It belongs to the worker that handles the object.
type job struct {
	record.Job
	doubt bool // the latest attempt may have left something in the system
}

// Trial implements Runner.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64,
	sink scenario.Sink) (scenario.Load, error) {
	cpu := timing.SelfCPU()
	set, err := scenario.DataSet(ctx, cell.Data, r.dataSeed(seed), r.site.Base)
	if err != nil {
		return scenario.Load{}, fmt.Errorf("%s: data set: %w", r.site.Use.Name, err)
	}
	t := newTrial(r, cell, seed, sink, set)
	if err = t.restore(ctx); err == nil {
		err = cmp.Or(t.run(ctx), t.log.Flush())
	}
	return t.load(cpu), err
}

func newTrial(r *runner, cell experiment.Cell, seed uint64, sink scenario.Sink, set workload.Set) *trial {
	sink.Progress = func(int64, int64) {} // the state says more
	t := &trial{
		runner: r, u: cell.Upload, seed: seed, sink: sink, set: set,
		pre: r.trialNames(cell, seed), log: scenario.NewTally(sink),
		jobs: map[int]*job{}, listed: map[int]system.Object{}, troubled: map[string]int{},
		tally: noPuts,
	}
	t.queue = newQueue(set.Len(), func(object int) int64 { return set.Object(object).Size })
	t.polls = newPolls(r.node, sink, t.u.Poll.Std())
	return t
}

// run does what is left of the trial. It returns nil when all is done or an exit condition
// ended the trial.
func (t *trial) run(ctx context.Context) error {
	stop, err := t.polls.during(ctx, func(during context.Context) error {
		defer timing.Every(t.reportEvery, func() {
			t.sink.State(t.state())
			_ = t.log.Flush() // the record keeps its first error
		})()
		err := t.work(during)
		if stopOf(ctx) != nil {
			err = t.resolve(context.WithoutCancel(ctx))
		}
		return err
	})
	clearing, cancel := ctx, context.CancelFunc(func() {})
	if stop != nil { // remove objects even so: they would cost money
		t.note(stop.Error())
		clearing, cancel = context.WithTimeout(context.WithoutCancel(ctx), clearStopped)
	}
	defer cancel()
	if err == nil {
		err = t.clear(clearing)
	}
	t.sink.State(t.state())
	return err
}

// clearStopped limits the removal after an exit condition, since the user is waiting.
const clearStopped = 30 * time.Minute

// work stores the objects, waits until they are durable, and verifies some. Since polls may be
// far apart, it polls once more when all objects are stored, for the bandwidth up to then.
func (t *trial) work(ctx context.Context) (err error) {
	steps := []func(context.Context) error{t.put, t.resolve, t.polls.once, t.settleLate, t.verify}
	for i := 0; i < len(steps) && err == nil; i++ {
		err = steps[i](ctx)
	}
	return err
}

// put stores the remaining objects, upload.concurrency at a time, and waits for the durability
// of those that earlier sessions stored. A worker keeps an object until it is durable or its
// time to become so is over.
func (t *trial) put(ctx context.Context) error {
	return scenario.Workers(ctx, min(t.u.Concurrency, max(1, t.set.Len())), func(ctx context.Context, worker int) error {
		for {
			object, ok := t.queue.take(ctx)
			if !ok {
				return nil
			}
			do := t.attempt
			if isStored(t.queue.of(object)) {
				do = t.settle
			}
			if err := do(ctx, worker, object); err != nil {
				return err
			}
		}
	})
}

func (t *trial) name(object int) string { return t.pre + t.set.Object(object).Name }

// event records an event of the trial.
func (t *trial) event(kind, what, detail string) error {
	return t.sink.Event(record.Event{At: time.Now(), Kind: kind, What: what, Detail: detail})
}

func (t *trial) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, text)
}

// done counts and logs an ended operation.
func (t *trial) done(op record.Op) error {
	t.mu.Lock()
	t.tally.ended(op)
	t.mu.Unlock()
	return t.log.Add(op)
}

func (t *trial) state() scenario.State {
	s, n := t.polls.state(), t.queue.counts()
	s.Objects, s.Accepted, s.Durable, s.Bytes = int64(t.set.Len()), n.accepted(), n.in[record.JobDurable], n.bytes
	s.Failed, s.Refused, s.Unreadable = n.in[record.JobFailed], n.in[record.JobRefused], n.in[record.JobUnreadable]
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Finished, s.Failures, s.Full = t.tally.finished, t.tally.failures, t.full
	return s
}

// load returns the facts about the load generator. cpu is this process's CPU time at the start
// of the trial.
func (t *trial) load(cpu float64) scenario.Load {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own) // fails only for wrong arguments
	t.mu.Lock()
	defer t.mu.Unlock()
	load := scenario.Load{
		Seconds: max(0, t.last-max(0, t.tally.first)).Seconds(), // last is 0 if none was accepted
		CPU:     timing.SelfCPU() - cpu, RSSPeak: float64(own.Maxrss) * 1024,
		Notes: slices.Clone(t.notes),
		Details: []record.Detail{scenario.Fact(scenario.LoadObjects, float64(t.set.Len())),
			scenario.Fact(scenario.LoadAttempts, float64(t.session)),
			scenario.Fact(scenario.LoadNotCompared, float64(t.unread))},
	}
	if t.settler() != nil {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadSettles, 1))
	}
	return load
}

// counts holds the number of objects in each state, and the bytes of the accepted ones. The
// state of an untouched object is empty; that of an object that a worker took to put it is
// [record.JobPutting].
type counts struct {
	in    map[record.JobState]int64
	bytes int64
}

// accepted returns the number of accepted objects, durable or not.
func (c *counts) accepted() int64 { return c.in[record.JobAccepted] + c.in[record.JobDurable] }

func isStored(s record.JobState) bool { return s == record.JobAccepted || s == record.JobDurable }

// queue keeps the state of each object of a data set, and hands out the objects to put or to
// settle: first those that were queued again, then new ones in the order of the set.
type queue struct {
	size func(object int) int64

	mu      sync.Mutex
	changed *sync.Cond // signals a change of state or due
	state   []record.JobState
	total   counts
	next    int   // no object before it is new
	due     []int // queued again
}

func newQueue(n int, size func(object int) int64) *queue {
	q := &queue{size: size, state: make([]record.JobState, n),
		total: counts{in: map[record.JobState]int64{"": int64(n)}}}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// take returns the next object, and marks it as being put unless it is stored. It waits while
// other objects may be queued again; ok is false when none is left or ctx has ended.
func (q *queue) take(ctx context.Context) (object int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})()
	for ctx.Err() == nil {
		for q.next < len(q.state) && q.state[q.next] != "" {
			q.next++
		}
		switch {
		case len(q.due) > 0:
			object, q.due = q.due[0], q.due[1:]
		case q.next < len(q.state):
			object = q.next
		case q.total.in[record.JobPutting]+q.total.in[record.JobWaiting] > 0:
			q.changed.Wait()
			continue
		default:
			return 0, false
		}
		if !isStored(q.state[object]) {
			q.move(object, record.JobPutting)
		}
		return object, true
	}
	return 0, false
}

// move changes the state of an object and updates the counts. The caller holds q.mu.
func (q *queue) move(object int, to record.JobState) {
	from := q.state[object]
	if isStored(from) {
		q.total.bytes -= q.size(object)
	}
	if isStored(to) {
		q.total.bytes += q.size(object)
	}
	q.total.in[from]--
	q.total.in[to]++
	q.state[object] = to
	q.changed.Broadcast()
}

func (q *queue) set(object int, state record.JobState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(object, state)
}

// again queues an object before all new ones.
func (q *queue) again(object int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = append(q.due, object)
	q.changed.Broadcast()
}

// later queues an object for another put after a wait.
func (q *queue) later(object int, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(object, record.JobWaiting)
	time.AfterFunc(wait, func() { q.again(object) })
}

func (q *queue) of(object int) record.JobState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state[object]
}

func (q *queue) counts() counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return counts{maps.Clone(q.total.in), q.total.bytes}
}
