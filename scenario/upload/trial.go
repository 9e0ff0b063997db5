package upload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
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
	writing   sync.Mutex // one write at a time: a later state of an object is not overwritten by an earlier one

	mu      sync.Mutex
	held    []record.Job          // accepted, to be written with what is written next
	jobs    map[int]*job          // of objects that are not done, once a put began, and of those not yet durable
	listed  map[int]system.Object // what a list had of objects that are not recorded as accepted
	fetched map[int]time.Duration // when earlier sessions fetched objects at their end
	unread  int                   // objects that were to be fetched and could not be asked for
	suspect int                   // objects that this session could not verify
	pending chan int              // accepted, to be looked at; has room for all objects
	tally   tally
	began   time.Duration // of this session, since the epoch
	full    string
	quotas  int // attempts in a row that it had no room for
	idle    bool
	notes   []string
}

// job is what is known of an object that is not done.
type job struct {
	record.Job
	doubt bool // its latest attempt may have left something in the system
}

// tally adds up attempts over all sessions of a trial.
type tally struct {
	putCounts
	session int64         // attempts of this session
	last    time.Duration // the last acceptance
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
	if err := t.restore(ctx); err != nil {
		return t.load(cpu), err
	}
	err = t.session(ctx)
	if e := t.log.Flush(); err == nil {
		err = e
	}
	return t.load(cpu), err
}

func newTrial(r *runner, cell experiment.Cell, seed uint64, sink scenario.Sink, set workload.Set) *trial {
	t := &trial{
		runner: r, cell: cell, u: cell.Upload, seed: seed, sink: sink, set: set, began: sink.Now(),
		pre:  r.trialNames(cell, seed),
		log:  scenario.NewOpLog(sink.Block),
		jobs: map[int]*job{}, listed: map[int]system.Object{}, fetched: map[int]time.Duration{},
		tally: tally{putCounts: noPuts}, pending: make(chan int, set.Len()),
	}
	t.queue = newQueue(set.Len(), func(object int) int64 { return set.Object(object).Size }, sink.Now)
	t.polls = newPolls(r.node, sink, t.u.Poll.Std())
	t.polls.polled = t.report
	return t
}

// session does what is left of the trial. Its error is nil when that is done, or
// an exit condition ended it.
func (t *trial) session(ctx context.Context) error {
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
	t.setIdle() // no object is left to be stored: that none is, is no lack of progress
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

// put stores what is left of the objects, so many at a time.
func (t *trial) put(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	release := func() {
		if err := t.write(); err != nil {
			cancel(err)
		}
	}
	var group sync.WaitGroup
	for worker := range min(t.u.Concurrency, max(1, t.set.Len())) {
		group.Go(func() {
			defer release()
			for {
				object, ok := t.queue.take(ctx, release)
				if !ok {
					return
				}
				if err := t.attempt(ctx, worker, object); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
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
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	jobs, t.held = append(t.held, jobs...), nil
	t.mu.Unlock()
	if len(jobs) == 0 {
		return nil
	}
	return t.sink.Journal.Jobs(jobs...)
}

func (t *trial) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, text)
}

func (t *trial) setIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = true
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
		Settles: t.settler() != nil,
		Failed:  n.in[record.JobFailed], Refused: n.in[record.JobRefused], Unreadable: n.in[record.JobUnreadable],
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
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			t.report()
			pause(ctx, t.reportEvery, stop)
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			default:
			}
			if err := t.log.Flush(); err != nil {
				fail(err)
			}
		}
	}()
	return func() { close(stop); <-over }
}

// load is what the trial says of itself. cpu is this process's at its beginning.
func (t *trial) load(cpu float64) scenario.Load {
	gained, n, settles := t.polls.gained(), t.queue.counts(), t.settler() != nil
	t.mu.Lock()
	defer t.mu.Unlock()
	load := scenario.Load{
		Seconds: (t.tally.last - max(0, t.tally.first)).Seconds(), CPU: scenario.SelfCPU() - cpu,
		RSSPeak: selfRSSPeak(),
		Notes:   slices.Clone(t.notes),
		Details: []record.Detail{scenario.Fact(scenario.LoadObjects, float64(t.set.Len())),
			scenario.Fact(scenario.LoadAttempts, float64(t.tally.session)), scenario.Fact(scenario.LoadNotCompared,
				float64(t.unread))},
	}
	accepted := n.accepted()
	if accepted > 0 && load.Seconds > 0 {
		load.AchievedRate = float64(accepted) / load.Seconds
	}
	if settles {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadSettles, 1))
	}
	if gained == 0 && accepted > 0 {
		load.Notes = append(load.Notes, fmt.Sprintf("nothing reached the storage servers: what they hold has not "+
			"grown by a byte, though %d objects were accepted (small ones may be kept elsewhere, as Tahoe-LAFS "+
			"keeps up to "+
			"55 bytes in the capability)", accepted))
	}
	if open := n.in[record.JobAccepted]; settles && open > 0 && t.u.Until == "durable" {
		load.Notes = append(load.Notes, fmt.Sprintf("%d accepted objects were not seen durable: after %s "+
			"(upload.settle) each gave its slot to the next, and was asked about again at the end", open, t.u.Settle))
	}
	return load
}

// selfRSSPeak is the highest resident set of this process, in bytes.
func selfRSSPeak() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Maxrss) * 1024
}
