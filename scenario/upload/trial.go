package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
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
	t.queue = &queue{objects: set, state: make([]record.JobState, set.Len()), count: map[record.JobState]int64{}}
	t.queue.changed = sync.NewCond(&t.queue.mu)
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
		t.notes = append(t.notes, stop.Error())
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

// done counts and logs an ended operation.
func (t *trial) done(op record.Op) error {
	t.mu.Lock()
	t.tally.ended(op)
	t.mu.Unlock()
	return t.log.Add(op)
}

func (t *trial) state() scenario.State {
	s := t.polls.state()
	t.queue.report(&s)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Finished, s.Failures, s.Full = t.tally.finished, t.tally.failures, t.full
	return s
}

// load returns the facts about the load generator. cpu is this process's CPU time at the start
// of the trial.
func (t *trial) load(cpu float64) scenario.Load {
	used, peak := timing.Self()
	t.mu.Lock()
	defer t.mu.Unlock()
	load := scenario.Load{
		Seconds: max(0, t.last-max(0, t.tally.first)).Seconds(), // last is 0 if none was accepted
		CPU:     used - cpu, RSSPeak: peak,
		Notes: t.notes,
		Details: []record.Detail{scenario.Fact(scenario.LoadObjects, float64(t.set.Len())),
			scenario.Fact(scenario.LoadAttempts, float64(t.session)),
			scenario.Fact(scenario.LoadNotCompared, float64(t.unread))},
	}
	if t.settler() != nil {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadSettles, 1))
	}
	return load
}

// polls polls a system during a trial, and keeps the values that exit conditions need, over all
// sessions of the trial.
type polls struct {
	*collect.Collector
	sink     scenario.Sink
	restored time.Duration // end of earlier sessions' last poll with absolute bytes; negative: none

	mu      sync.Mutex
	first   float64       // absolute bytes of the first poll that reported them
	last    float64       // likewise of the last one
	lastEnd time.Duration // end of the last one; negative: none
	used    collect.Used
}

func newPolls(node system.Node, sink scenario.Sink, every time.Duration) *polls {
	p := &polls{sink: sink, restored: -1, lastEnd: -1}
	p.Collector = &collect.Collector{Node: node, Every: every, Now: sink.Now, Keep: p.keep}
	return p
}

// add adds a poll.
func (p *polls) add(poll record.Poll) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range poll.Readings {
		if r.Name != system.ReadAbsolute || r.Bad != "" {
			continue
		}
		if p.lastEnd < 0 {
			p.first = r.Value
		}
		p.last, p.lastEnd = r.Value, poll.End
	}
	p.used.Add(poll.Readings)
}

// restore adds the polls of earlier sessions.
func (p *polls) restore() error {
	in := p.sink.Recorded()
	for earlier := range in.Polls {
		p.First, p.Earlier = max(p.First, earlier.Seq+1), max(p.Earlier, earlier.Start)
		p.add(earlier)
	}
	p.restored = p.lastEnd
	return in.Err()
}

// stopOf returns the exit condition that ended a context, or nil.
func stopOf(ctx context.Context) (stop *scenario.Stop) {
	errors.As(context.Cause(ctx), &stop)
	return stop
}

// during polls before, during and after work. The final poll is omitted after an error. stop is
// the exit condition that ended the work, if any. An error in recording polls ends the work; a
// call that the system does not answer is only a gap.
func (p *polls) during(outer context.Context, work func(context.Context) error) (stop *scenario.Stop, err error) {
	ctx, fail := context.WithCancelCause(outer)
	defer fail(nil)
	// Polls continue to the very end, even if the trial is interrupted.
	going, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	if err := p.once(ctx); err != nil && ctx.Err() == nil { // nothing is stored before this poll ends
		return nil, err
	}
	over := make(chan error, 1)
	go func() {
		err := p.Run(going)
		if err != nil {
			fail(err)
		}
		over <- err
	}()
	err = work(ctx)
	if stop = stopOf(outer); stop == nil {
		err = cmp.Or(context.Cause(outer), err, context.Cause(ctx))
	}
	if err != nil {
		end(collect.ErrAtOnce)
	}
	end(nil)
	return stop, cmp.Or(err, <-over)
}

// once polls in addition to the schedule.
func (p *polls) once(ctx context.Context) error {
	if err := p.Once(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

func (p *polls) keep(poll record.Poll) error {
	p.add(poll)
	return p.sink.Poll(poll)
}

// state returns the part of the trial's state that the polls know: the absolute bytes gained since
// the first one, and the money used up.
func (p *polls) state() scenario.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := scenario.State{At: p.sink.Now(), Absolute: -1, AbsoluteAt: -1, Spent: p.used.Sum}
	if p.lastEnd >= 0 {
		s.Absolute = max(0, int64(p.last-p.first))
		if p.lastEnd > p.restored {
			s.AbsoluteAt = p.lastEnd
		}
	}
	return s
}
