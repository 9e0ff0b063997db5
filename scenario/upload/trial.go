package upload

import (
	"context"
	"errors"
	"fmt"
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
	data func() (workload.Set, error)
	pre  string // what names begin with

	queue *queue
	polls *polls

	telling sync.Mutex // one report at a time, in order

	mu      sync.Mutex
	held    []record.Job        // accepted, to be written with what is written next
	jobs    map[int]*record.Job // of objects that are not done, once a put began, and of those not yet durable
	doubt   map[int]bool        // the latest attempt may have left something in the system
	refs    map[int]system.Ref  // of those done that are read or removed at the end
	fetched map[int]bool        // by earlier sessions at their end
	unread  int                 // objects that were to be fetched and could not be asked for
	suspect int                 // objects that this session could not verify
	late    []int               // accepted, and not durable when the wait for it ended
	pending []int               // accepted, to be looked at
	pended  chan struct{}       // closed when that changes
	noMore  bool                // nothing will be accepted any more
	tally   tally
	recent  recentTimes
	ops     []record.Op
	sent    time.Time
	began   time.Duration // of this session, since the epoch
	full    string
	quotas  int // attempts in a row that it had no room for
	idle    bool
	probing bool            // what is put now is a probe
	probed  []float64       // seconds of its puts
	probes  []record.Detail // medians
	notes   []string
}

// Trial implements Runner.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink scenario.Sink) (scenario.Load, error) {
	t := &trial{
		runner: r, cell: cell, u: cell.Upload, seed: seed, sink: sink, sent: time.Now(), began: sink.Now(),
		pre:  r.trialNames(cell, seed),
		jobs: map[int]*record.Job{}, doubt: map[int]bool{}, refs: map[int]system.Ref{}, fetched: map[int]bool{},
		tally: newUploadTally(), pended: make(chan struct{}),
		recent: recentTimes{window: r.site.Steady},
	}
	t.data = func() (workload.Set, error) {
		return scenario.DataSet(cell.Data, r.dataSeed(seed), r.site.Base)
	}
	return t.trial(ctx)
}

func (t *trial) trial(ctx context.Context) (scenario.Load, error) {
	cpu := scenario.SelfCPU()
	if err := t.open(); err != nil {
		return scenario.Load{}, err
	}
	t.polls = newPolls(t.site, t.node, t.sink, t.u.Poll.Std())
	t.polls.told = t.report
	if err := t.restore(ctx); err != nil {
		return t.load(cpu), err
	}
	err := t.session(ctx)
	if e := t.flush(); err == nil {
		err = e
	}
	return t.load(cpu), err
}

// session does what is left of the trial. Its error is nil when that is done, or
// an exit condition ended it.
func (t *trial) session(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	endPolls, err := t.polls.begin(ctx, cancel)
	if err != nil {
		return err
	}
	endReports := t.reports(ctx, cancel)
	err = t.work(ctx)
	var stop *scenario.Stop
	switch {
	case errors.As(context.Cause(outer), &stop):
		t.note("stopped by " + stop.Condition + ": " + stop.Why)
		err = t.resolve(context.WithoutCancel(outer))
	case outer.Err() != nil:
		err = context.Cause(outer)
	case err == nil:
		err = context.Cause(ctx)
	}
	endReports()
	if e := endPolls(err != nil); err == nil {
		err = e
	}
	if err == nil {
		// After an exit condition, too: what was asked to go is not to be paid for.
		clearing, cancel := outer, context.CancelFunc(func() {})
		if stop != nil {
			clearing, cancel = context.WithTimeout(context.WithoutCancel(outer), clearStopped)
		}
		t.clear(clearing)
		cancel()
	}
	t.report()
	return err
}

// work stores the objects, waits until they are durable, and verifies some.
func (t *trial) work(ctx context.Context) error {
	endSettling := t.settling(ctx)
	err := t.put(ctx)
	if err == nil {
		err = t.resolve(ctx)
	}
	if err == nil && t.pollLate() {
		err = t.polls.once(ctx)
	}
	t.setIdle(true) // no object is left to be stored: that none is, is no lack of progress
	if e := endSettling(); err == nil {
		err = e
	}
	if err == nil {
		err = t.settleLate(ctx)
	}
	if err == nil {
		err = t.verify(ctx)
	}
	return err
}

// pollsOfPuts is how many polls of the schedule are to fall into the time in which a
// session stores: what the first after it saw is then of that time, but for little.
const pollsOfPuts = 10

// pollLate reports whether polls are too far apart for the servers' bandwidth while
// objects were stored: then one is made when that is over.
func (t *trial) pollLate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	stored := t.tally.last - max(t.tally.first, t.began)
	return stored > 0 && t.u.Poll.Std() > stored/pollsOfPuts
}

// put stores what is left of the objects.
func (t *trial) put(ctx context.Context) error {
	return t.workers(ctx, t.u.Concurrency)
}

// workers put objects, n at a time, until none is left.
func (t *trial) workers(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	release := func() {
		if err := t.write(); err != nil {
			cancel(err)
		}
	}
	var group sync.WaitGroup
	for worker := range min(n, max(1, t.set.Len())) {
		group.Go(func() {
			defer release()
			if err := t.worker(ctx, worker, release); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// open makes the data set.
func (t *trial) open() error {
	set, err := t.data()
	if err != nil {
		return fmt.Errorf("%s: data set: %w", t.site.Use.Name, err)
	}
	t.set = set
	t.queue = newQueue(set.Len(), t.sink.Now)
	return nil
}

func (t *trial) name(object int) string { return t.pre + t.set.Object(object).Name }

// event records something that happened in the trial.
func (t *trial) event(kind, what, detail string) error {
	return t.sink.Journal.Event(record.Event{At: time.Now(), Kind: kind, What: what, Detail: detail})
}

// write records what became of objects, and before it what is held, in one
// commit. It may be kept from the end of the session: what has happened has
// happened.
func (t *trial) write(jobs ...record.Job) error {
	t.mu.Lock()
	jobs, t.held = append(t.held, jobs...), nil
	t.mu.Unlock()
	if len(jobs) == 0 {
		return nil
	}
	return t.sink.Journal.Jobs(jobs...)
}

// hold has an accepted object recorded together with what is written next, which
// is mostly that another is put: a commit less for each. Whoever is to wait
// first, for anything, writes. A session that is killed before leaves the object
// in doubt, as it does one that is killed within its put.
func (t *trial) hold(job record.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = append(t.held, job)
}

func (t *trial) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, text)
}

func (t *trial) setIdle(idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = idle
}
