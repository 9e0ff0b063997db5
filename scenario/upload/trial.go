package upload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// trial is one session of a trial.
type trial struct {
	*runner
	cell experiment.Cell
	u    *experiment.Upload
	seed uint64
	sink scenario.Sink
	set  workload.Set
	pre  string // what names begin with

	queue     *queue
	polls     *polls
	log       *scenario.OpLog
	reporting sync.Mutex // one report at a time, in order

	mu       sync.Mutex
	jobs     map[int]*job          // of objects that are not done, once a put began, and of those not yet durable
	listed   map[int]system.Object // what a list had of objects that are not stored whole, by what is recorded
	fetched  map[int]fetch         // how earlier sessions fetched objects at their end
	unread   int                   // objects that were to be fetched and could not be asked for
	troubled map[string]int        // objects in trouble in this session, by what it is
	tally    putCounts             // over all sessions
	session  int64                 // attempts of this session
	last     time.Duration         // the last acceptance
	began    time.Duration         // of this session, since the epoch
	full     string
	quotas   int // attempts in a row that it had no room for
	idle     bool
	notes    []string
}

// job is what is known of an object that is not done. Who has the object under way owns it.
type job struct {
	record.Job
	doubt bool // its latest attempt may have left something in the system
}

// Trial implements Runner.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64,
	sink scenario.Sink) (scenario.Load, error) {
	cpu := scenario.SelfCPU()
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
	t := &trial{
		runner: r, cell: cell, u: cell.Upload, seed: seed, sink: sink, set: set, began: sink.Now(),
		pre: r.trialNames(cell, seed), log: scenario.NewOpLog(sink.Block),
		jobs: map[int]*job{}, listed: map[int]system.Object{}, troubled: map[string]int{},
		tally: noPuts,
	}
	t.queue = newQueue(set.Len(), func(object int) int64 { return set.Object(object).Size }, sink.Now)
	t.polls = newPolls(r.node, sink, t.u.Poll.Std())
	t.polls.polled = t.report
	return t
}

// run does what is left of the trial. Its error is nil when that is done, or
// an exit condition ended it.
func (t *trial) run(ctx context.Context) error {
	stop, err := t.polls.during(ctx, func(during context.Context, fail context.CancelCauseFunc) error {
		defer t.reports(during, fail)()
		err := t.work(during)
		if stopOf(ctx) != nil {
			err = t.resolve(context.WithoutCancel(ctx))
		}
		return err
	})
	clearing, cancel := ctx, context.CancelFunc(func() {})
	if stop != nil { // what was asked to go is not to be paid for
		t.note(stop.Error())
		clearing, cancel = context.WithTimeout(context.WithoutCancel(ctx), clearStopped)
	}
	defer cancel()
	if err == nil {
		err = t.clear(clearing)
	}
	t.report()
	return err
}

// clearStopped bounds the removal after an exit condition: who set it waits.
const clearStopped = 30 * time.Minute

// work stores the objects, waits until they are durable, and verifies some. Polls may be
// far apart: one more when all is stored gives the bandwidth of that time.
func (t *trial) work(ctx context.Context) (err error) {
	steps := []func(context.Context) error{t.put, t.resolve, t.polls.once, t.rest, t.settleLate, t.verify}
	for i := 0; i < len(steps) && err == nil; i++ {
		err = steps[i](ctx)
	}
	return err
}

// rest says that no object is left to be stored: that none is, is no lack of progress.
func (t *trial) rest(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = true
	return nil
}

// put stores what is left of the objects, so many at a time, and asks about those that earlier
// sessions have stored. Each is under way until it is durable, or its time for that is over.
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

// event records something that happened in the trial.
func (t *trial) event(kind, what, detail string) error {
	return t.sink.Event(record.Event{At: time.Now(), Kind: kind, What: what, Detail: detail})
}

func (t *trial) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, text)
}

// done takes an operation that has ended.
func (t *trial) done(op record.Op) error {
	t.mu.Lock()
	t.tally.ended(op)
	t.mu.Unlock()
	return t.log.Add(op)
}

// report passes on the progress of the trial.
func (t *trial) report() {
	t.reporting.Lock()
	defer t.reporting.Unlock()
	t.sink.State(t.state())
}

func (t *trial) state() scenario.State {
	at, n := t.sink.Now(), t.queue.counts()
	s := scenario.State{
		At: at, Objects: int64(t.set.Len()), Accepted: n.accepted(), Durable: n.in[record.JobDurable],
		Failed: n.in[record.JobFailed], Refused: n.in[record.JobRefused], Unreadable: n.in[record.JobUnreadable],
		Bytes: n.bytes,
	}
	t.polls.sofar(&s)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Finished, s.Failures, s.Full, s.Idle = t.tally.finished, t.tally.failures, t.full, t.idle
	return s
}

// reports calls report periodically. The function that it returns ends that.
func (t *trial) reports(ctx context.Context, fail context.CancelCauseFunc) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			t.report()
			pause(ctx, t.reportEvery)
			if err := t.log.Flush(); err != nil {
				fail(err)
			}
		}
	})
	return func() { cancel(); group.Wait() }
}

// load is what the trial says of itself. cpu is this process's at its beginning.
func (t *trial) load(cpu float64) scenario.Load {
	n := t.queue.counts()
	used, peak := scenario.Self()
	t.mu.Lock()
	defer t.mu.Unlock()
	load := scenario.Load{
		Seconds: (t.last - max(0, t.tally.first)).Seconds(), CPU: used - cpu, RSSPeak: peak,
		Notes: slices.Clone(t.notes),
		Details: []record.Detail{scenario.Fact(scenario.LoadObjects, float64(t.set.Len())),
			scenario.Fact(scenario.LoadAttempts, float64(t.session)),
			scenario.Fact(scenario.LoadNotCompared, float64(t.unread))},
	}
	if accepted := n.accepted(); accepted > 0 && load.Seconds > 0 {
		load.AchievedRate = float64(accepted) / load.Seconds
	}
	if t.settler() != nil {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadSettles, 1))
	}
	return load
}

// counts are how many objects are in each state, and the bytes of the accepted ones. The
// state of an object that nothing was done with is empty, that of one that was given out to
// be put is [record.JobPutting].
type counts struct {
	in    map[record.JobState]int64
	bytes int64
}

// accepted are all of them, durable or not.
func (c *counts) accepted() int64 { return c.in[record.JobAccepted] + c.in[record.JobDurable] }

func isStored(s record.JobState) bool { return s == record.JobAccepted || s == record.JobDurable }

// queue knows the state of each object of a data set, and gives out those that are to
// be put, or asked about: those that are given back first, else in the set's order.
type queue struct {
	now  func() time.Duration
	size func(object int) int64

	mu      sync.Mutex
	changed *sync.Cond // a state, or what is due
	state   []record.JobState
	total   counts
	next    int   // none before it is new
	due     []int // given back
}

func newQueue(n int, size func(object int) int64, now func() time.Duration) *queue {
	q := &queue{now: now, size: size, state: make([]record.JobState, n),
		total: counts{in: map[record.JobState]int64{"": int64(n)}}}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// take gives the next object, which is then under way, unless it is stored. It waits while one
// may come; ok is false when none does, or ctx has ended.
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

// move changes a state and what is counted by states; q.mu is held.
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

// again gives an object out before all new ones.
func (q *queue) again(object int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = append(q.due, object)
	q.changed.Broadcast()
}

// later gives an object out again to be put, when that is due.
func (q *queue) later(object int, due time.Duration) {
	q.set(object, record.JobWaiting)
	if wait := due - q.now(); wait > 0 {
		time.AfterFunc(wait, func() { q.again(object) })
	} else {
		q.again(object)
	}
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

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
