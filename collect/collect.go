// Package collect polls systems with read-only requests on an absolute schedule. It reports the
// start and end of each request, and failures as gaps. It stores nothing, so it can run for months
// in constant memory.
package collect

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// Collector polls one node.
type Collector struct {
	Node    system.Node
	Every   time.Duration           // the schedule: epoch, epoch + Every, …; positive
	Now     func() time.Duration    // since the trial's epoch, monotonic
	First   int64                   // number of the first poll, where an earlier session ended
	Earlier time.Duration           // start of the last poll of earlier sessions; only if First > 0
	Keep    func(record.Poll) error // called with each poll

	once   sync.Once
	turn   chan struct{} // held during a poll, so that only one runs at a time
	calls  []system.Call
	next   int64         // number of the next poll if none is missed before it
	polled bool          // there was a poll in this session or an earlier one
	latest time.Duration // its start, or its scheduled time if that is later
	rests  map[string]time.Duration
	sane   sanity
}

// ErrAtOnce, as the cause of the end of Run's context, omits the last poll, for callers that must
// end quickly.
var ErrAtOnce = errors.New("collect: ended at once")

// Run polls until ctx ends, then once more, so that the last state is known. It
// returns the first error of Keep.
//
// The first poll begins at once, unless an earlier session has polled since the last tick of the
// schedule. If a poll takes longer than the interval, the ticks in between are missed: they are
// counted, but their polls are not made up for. A poll that is interrupted by the end of ctx is
// discarded, because the last poll reads a later state.
func (c *Collector) Run(ctx context.Context) error {
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
	return c.Once(context.WithoutCancel(ctx))
}

// Once makes a single poll outside the schedule. It ends after twice the time limit of one call,
// because the caller waits for it; calls that did not finish in time are gaps.
func (c *Collector) Once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*c.timeout())
	defer cancel()
	return c.poll(ctx, nil)
}

// take waits for the turn to poll and returns a function that ends the turn. The turn is a channel
// rather than a mutex, because a poll may take long and virtual time (testing/synctest) does not
// advance while a goroutine waits for a mutex.
func (c *Collector) take() (release func()) {
	c.once.Do(func() {
		c.turn = make(chan struct{}, 1)
		c.calls, c.rests = Calls(c.Node), map[string]time.Duration{}
		c.next, c.polled, c.latest = c.First, c.First > 0, c.Earlier
	})
	c.turn <- struct{}{}
	return func() { <-c.turn }
}

// begin returns the tick of the first poll: the latest tick or, if there was a poll since then, the
// next one.
func (c *Collector) begin() int64 {
	defer c.take()()
	tick := int64(c.Now() / c.Every)
	if c.polled {
		tick = max(tick, int64(c.latest/c.Every)+1)
	}
	return tick
}

// wait reports whether tick came before ctx ended. It never waits longer than one interval,
// whatever happens to the clock.
func (c *Collector) wait(ctx context.Context, tick int64) bool {
	return timing.Pause(ctx, min(time.Duration(tick)*c.Every-c.Now(), c.Every)) && ctx.Err() == nil
}

// timeout is the limit of one call: ten intervals between polls, but at least ten minutes (the API
// of a Sia renter with 50,000 files has been seen to take more than five) and at most an hour: a
// call without an answer becomes a gap and must not block all other calls.
func (c *Collector) timeout() time.Duration {
	return min(max(10*c.Every, 10*time.Minute), time.Hour)
}
