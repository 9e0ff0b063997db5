// Package collect polls systems: read-only requests at an absolute schedule,
// each with its start and end, its failures recorded as gaps. It keeps nothing:
// it can go on for months in constant memory.
package collect

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// A call is waited for during callIntervals of the polls, but for no less than
// callLeast (the interface of a Sia renter with 50,000 files has been seen to take
// more than five minutes), and for no more than callMost: what a system does not
// tell is a gap, and is not to keep all else from being known.
const (
	callIntervals = 10
	callLeast     = 10 * time.Minute
	callMost      = time.Hour
)

// Collector polls one node.
type Collector struct {
	Node    system.Node
	Every   time.Duration           // the schedule: epoch, epoch + Every, …
	Timeout time.Duration           // of one call; 0: ten times Every, ten minutes at least and an hour at most
	Now     func() time.Duration    // since the trial's epoch, monotonic
	First   int64                   // number of the first poll: where an earlier session ended
	Earlier time.Duration           // start of the last poll of earlier sessions; with First > 0
	Keep    func(record.Poll) error // takes each poll

	once   sync.Once
	turn   chan struct{} // held by whoever polls: one at a time
	calls  []system.Call
	next   int64         // number of the next poll, if none is missed before it
	polled bool          // there was a poll, in this session or an earlier one
	latest time.Duration // its moment, or its place in the schedule if that is later
	rests  map[string]time.Duration
	sane   sanity
}

// ErrAtOnce, as the cause of the end of Run's context, leaves out the last poll,
// for a caller that must end soon.
var ErrAtOnce = errors.New("collect: ended at once")

// Run polls until ctx ends, then once more (see Bounded), so that the last
// state is known; it returns the first error of Keep.
//
// It begins at once, unless an earlier session has polled since the schedule's
// last tick. A poll that lasts beyond ticks makes them missed: they are counted
// and not made up for. One that ctx cuts off is not kept: the last poll, which
// follows it, reads a later state.
func (c *Collector) Run(ctx context.Context) error {
	if c.Every <= 0 {
		return errors.New("collect: the interval between polls is not positive")
	}
	for tick := c.begin(); c.wait(ctx, tick); tick = max(tick+1, int64((c.Now()+c.Every-1)/c.Every)) {
		tick = max(tick, int64(c.Now()/c.Every))
		err := c.poll(ctx, &tick)
		if ctx.Err() != nil && errors.Is(err, errCutOff) {
			break
		}
		if err != nil {
			return err
		}
	}
	if errors.Is(context.Cause(ctx), ErrAtOnce) {
		return nil
	}
	last, cancel := c.Bounded(context.WithoutCancel(ctx))
	defer cancel()
	return c.Once(last)
}

// Once is a single poll, beyond the schedule.
func (c *Collector) Once(ctx context.Context) error { return c.poll(ctx, nil) }

// take waits for the turn to poll and returns what gives it back. The turn is a
// channel and not a mutex, because a poll may take long, and virtual time
// (testing/synctest) does not advance while a goroutine waits for a mutex.
func (c *Collector) take() (release func()) {
	c.once.Do(func() {
		c.turn = make(chan struct{}, 1)
		c.calls, c.rests = Calls(c.Node), map[string]time.Duration{}
		c.next, c.polled, c.latest = c.First, c.First > 0, c.Earlier
	})
	c.turn <- struct{}{}
	return func() { <-c.turn }
}

// begin is the tick of the first poll: the latest one that came, unless it was
// polled since, or else the next.
func (c *Collector) begin() int64 {
	defer c.take()()
	tick := int64(c.Now() / c.Every)
	if c.polled {
		tick = max(tick, int64(c.latest/c.Every)+1)
	}
	return tick
}

// wait reports whether tick came before ctx ended. It never waits for longer
// than one interval, whatever happens to the clock.
func (c *Collector) wait(ctx context.Context, tick int64) bool {
	t := time.NewTimer(min(time.Duration(tick)*c.Every-c.Now(), c.Every))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}

func (c *Collector) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return min(max(callIntervals*c.Every, callLeast), callMost)
}

// Bounded ends a poll as a whole after twice the time limit of one call, because
// the caller waits for it. The calls that it had no time for are gaps.
func (c *Collector) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 2*c.timeout())
}
