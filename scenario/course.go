package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// course is what the trials have in common whose nodes are asked how far they are
// while faults come and go: a clock, links, and a load that is over when it is
// decided what becomes of everybody.
type course struct {
	name  string // of the system
	sink  Sink
	links *courseLinks

	every     time.Duration // from poll to poll of a node
	patience  time.Duration // for the answer to one
	stall     time.Duration
	deadline  time.Duration
	starting  time.Duration  // what a node may take to start
	group     sync.WaitGroup // of everything that goes on at the same time
	load      context.Context
	changed   chan struct{} // something to judge has happened
	measuring []Traffic     // what had crossed each node's link when the load began, then what has since

	mu       sync.Mutex
	released time.Duration // since the epoch: the load begins
	ended    time.Duration // of the load
	pending  int           // faults that have a moment and are not over, and their undoings
	hope     time.Duration // until when those that stall may go on: a fault came or was undone
	marks    []record.Mark
	said     time.Time // progress
	notes    []string

	failure atomic.Pointer[error] // why the trial cannot go on
}

// newCourse lays out a trial of a cell whose nodes are asked at an interval.
func newCourse(site Site, sink Sink, every time.Duration, rates map[int]Rates) *course {
	limits := site.Limits
	c := &course{
		name: site.Use.Name, sink: sink, links: &courseLinks{network: site.Network, rates: rates},
		changed: make(chan struct{}, 1), every: every,
		// Nothing can be said of less time than a few polls take.
		stall: max(limits.Stall.Std(), 3*every), deadline: limits.Deadline.Std(), starting: limits.Start.Std() + startMargin,
	}
	c.patience = min(longestQuestion, max(every, c.stall/2))
	return c
}

// longestQuestion is how long an answer to how far a node is may take at most.
const longestQuestion = 10 * time.Second

// startMargin is what a node may take to end and to clear its store, beside
// limits.start.
const startMargin = 15 * time.Second

// now is the time since the epoch. It is never 0, which says of a moment that it
// has not come.
func (c *course) now() time.Duration { return max(1, time.Since(c.sink.Epoch)) }

// event records something that happened in the trial, at a moment since the epoch.
func (c *course) event(kind, what, detail string, at, took time.Duration) {
	if c.sink.Event == nil {
		return
	}
	err := c.sink.Event(record.Event{At: c.sink.Epoch.Add(at), Kind: kind, What: what, Detail: detail, Took: took})
	if err != nil {
		c.fail(err)
	}
}

func (c *course) failed(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", c.name, what, err)
}

// fail ends the trial: it could not be executed, or not be recorded. It may be
// called with the lock or without.
func (c *course) fail(err error) {
	c.failure.CompareAndSwap(nil, &err)
	c.wake()
}

// wake lets the trial be judged anew.
func (c *course) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// errOver ends what goes on beside the load when that is over.
var errOver = errors.New("the trial's load is over")

// run lets the load go on from when release has begun it, with the lock, until
// judge says that it is over, and returns when nothing of it goes on any more.
// judge also says when to judge again; soFar, where the load is.
func (c *course) run(cancel context.CancelCauseFunc, release func(), judge func(now time.Duration) (over bool, next time.Duration), soFar func() (done, bytes int64)) error {
	c.mu.Lock()
	c.released = c.now()
	release()
	c.mu.Unlock()
	err := c.await(judge, soFar)
	c.mu.Lock()
	c.ended = c.now()
	c.mu.Unlock()
	cancel(errOver)
	c.group.Wait()
	return err
}

// await returns when the load is over.
func (c *course) await(judge func(now time.Duration) (over bool, next time.Duration), soFar func() (done, bytes int64)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := c.failure.Load(); err != nil {
			return *err
		}
		c.mu.Lock()
		now := c.now()
		over, next := judge(now)
		done, bytes := soFar()
		tell := c.sink.Progress != nil && time.Since(c.said) >= progressEvery
		if tell {
			c.said = time.Now()
		}
		c.mu.Unlock()
		if tell {
			c.sink.Progress(done, bytes)
		}
		if over {
			return nil
		}
		timer.Reset(next - now)
		select {
		case <-c.load.Done():
			return context.Cause(c.load)
		case <-c.changed:
		case <-timer.C:
		}
	}
}

// progressEvery is how often the user is told how far the nodes are.
const progressEvery = 200 * time.Millisecond

// until waits for a moment of the trial; false: the load was over before.
func (c *course) until(moment time.Duration) bool {
	timer := time.NewTimer(moment - c.now())
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.load.Err() == nil
	case <-c.load.Done():
		return false
	}
}

// polls calls ask at moments of one absolute schedule, one at a time, until the
// load is over or ask says that it is enough. Those that come while one is under
// way drop out.
func (c *course) polls(first time.Duration, ask func() (enough bool)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := c.now()
		next := first
		if now >= first {
			next += ((now-first)/c.every + 1) * c.every
		}
		timer.Reset(next - now)
		select {
		case <-c.load.Done():
			return
		case <-timer.C:
		}
		if ask() {
			return
		}
	}
}

// measure begins to measure: from here on it is the load.
func (c *course) measure(ctx context.Context) {
	c.measuring = c.links.traffic(ctx)
	if c.sink.Begin != nil {
		c.sink.Begin()
	}
}

// timed executes the load between the two, and tells what CPU seconds it took of
// this process.
func (c *course) timed(ctx context.Context, load func(context.Context) error) (cpu float64, err error) {
	c.measure(ctx)
	before := selfCPU()
	err = load(ctx)
	cpu = selfCPU() - before
	c.measured(ctx)
	return cpu, err
}

// measured ends that.
func (c *course) measured(ctx context.Context) {
	now := c.links.traffic(context.WithoutCancel(ctx))
	for i := range c.measuring {
		since := Traffic{math.NaN(), math.NaN()}
		if i < len(now) {
			since = Traffic{now[i].Received - c.measuring[i].Received, now[i].Sent - c.measuring[i].Sent}
		}
		c.measuring[i] = since
	}
	if c.sink.End != nil {
		c.sink.End()
	}
}

// crossed is what has crossed the link of the node at a place in the load, once
// that was measured; NaN: it cannot be told.
func (c *course) crossed(place int) Traffic {
	if place < len(c.measuring) {
		return c.measuring[place]
	}
	return Traffic{math.NaN(), math.NaN()}
}

// details are numbers of all nodes, in their order, those of which nothing is
// known as −1. A kind of which nothing is known of any node is left out.
func details(kind string, names []string, of func(place int) float64) []record.Detail {
	known := false
	each := make([]record.Detail, len(names))
	for i, name := range names {
		each[i] = record.Detail{Kind: kind, Name: name, Value: -1}
		if v := of(i); !math.IsNaN(v) {
			each[i].Value, known = v, true
		}
	}
	if !known {
		return nil
	}
	return each
}

// needsLinks is why a trial is left out whose links are changed, by slow or by a
// fault; nil: it is not.
func (c *course) needsLinks(slow string, faults []experiment.Fault) error {
	what := slow
	for _, f := range faults {
		if what == "" && f.Kind() != experiment.FaultCrash {
			what = fmt.Sprintf("the fault %q", f)
		}
	}
	if what == "" {
		return nil
	}
	if ok, why := c.links.emulated(); !ok {
		return &SkipError{fmt.Sprintf("%s changes links, and they are not emulated here: %s", what, why)}
	}
	return nil
}

// atOnce is how many nodes are prepared, verified or cleaned at a time: they are
// processes of one machine.
const atOnce = 4

// eachNode does something with nodes, a few at a time, each within a limit, and tells
// what became of each, after all have ended.
func eachNode[N any](ctx context.Context, all []N, limit time.Duration, do func(context.Context, N) error) []error {
	errs := make([]error, len(all))
	places := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i, n := range all {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if ctx.Err() != nil {
				errs[i] = context.Cause(ctx)
				return
			}
			errs[i] = within(ctx, limit, func(ctx context.Context) error { return do(ctx, n) })
		})
	}
	group.Wait()
	return errs
}

func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// ended is how a node's daemon ended; nil: it runs.
func ended(all []*testbed.Process) error {
	for _, p := range all {
		select {
		case <-p.Done():
			if err := p.Err(); err != nil {
				return err
			}
			return errors.New("it ended")
		default:
		}
	}
	return nil
}
