// Package collect polls systems with read-only requests on an absolute schedule. It reports the
// start and end of each request, and failures as gaps. It stores nothing, so it can run for months
// in constant memory.
package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/words"
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

var errCutOff = errors.New("collect: the poll was cut off")

// poll makes one poll and passes it to Keep. tick is its number in the schedule; nil: it is not
// scheduled.
func (c *Collector) poll(ctx context.Context, tick *int64) error {
	defer c.take()()
	p := record.Poll{Start: c.Now()}
	p.Intended = p.Start
	if tick != nil {
		p.Intended = time.Duration(*tick) * c.Every
	}
	if c.polled {
		p.Missed = int(max(0, int64(p.Intended/c.Every)-int64(c.latest/c.Every)-1))
	}
	p.Seq = c.next + int64(p.Missed)
	_, own := c.Node.(system.Monitored)
	names := map[string]bool{}
	for _, call := range c.calls {
		if tick != nil && c.Now() < c.rests[call.Name] {
			continue
		}
		readings, took := c.ask(ctx, call)
		if ctx.Err() != nil && (tick != nil || errors.Is(ctx.Err(), context.Canceled)) {
			return errCutOff
		}
		if !own {
			c.rests[call.Name] = took.End + (rest-1)*(took.End-took.Start)
		}
		for _, r := range readings {
			if !names[r.Name] { // if two calls return it, the first one counts
				names[r.Name] = true
				p.Readings = append(p.Readings, recorded(c.sane.check(r)))
			}
		}
		p.Calls = append(p.Calls, took)
	}
	p.End = c.Now()
	if err := c.Keep(p); err != nil {
		return err
	}
	c.next, c.polled, c.latest = p.Seq+1, true, max(p.Intended, p.Start)
	return nil
}

// ask makes one call. A call that fails returns no readings.
func (c *Collector) ask(ctx context.Context, call system.Call) ([]system.Reading, record.PollCall) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	took := record.PollCall{Name: call.Name, Start: c.Now()}
	readings, err := call.Read(ctx)
	took.End = c.Now()
	if err != nil {
		took.Error = reason(err, took.End-took.Start)
		return nil, took
	}
	return readings, took
}

// recorded converts a reading for the record. The number of an impossible reading appears only in
// its reason, as text, because a database can store any text.
func recorded(r system.Reading) record.Reading {
	out := record.Reading{Name: r.Name, Value: r.Value, Bad: r.Bad}
	if r.Bad != "" {
		out.Value = 0
	} else if r.Amount != nil {
		out.Exact = r.Amount.String()
	}
	return out
}

// rest limits how often calls derived from a node's abilities are repeated. They may be expensive
// for the system (a listing of all objects, a walk over the servers' disks), and observing must not
// slow it down. After such a call, scheduled polls omit it until rest times its duration have
// passed since it began, so it takes at most a twentieth of the time. A node's own calls are made
// in every poll.
const rest = 20

// Calls returns the requests of one poll of a node: its own or, if it has none, those derived from
// its abilities.
func Calls(node system.Node) []system.Call {
	if m, ok := node.(system.Monitored); ok {
		return m.Calls()
	}
	calls := []system.Call{} // not nil, even if there is nothing to request
	if s, ok := node.(system.Stats); ok {
		calls = append(calls, system.Call{Name: "stats", Read: func(ctx context.Context) ([]system.Reading, error) {
			h, err := s.Stats(ctx)
			return holdings(h), err
		}})
	}
	if s, ok := node.(system.Lister); ok {
		calls = append(calls, system.Call{Name: "list", Read: func(ctx context.Context) ([]system.Reading, error) {
			return listing(ctx, s)
		}})
	}
	if s, ok := node.(system.Healther); ok {
		calls = append(calls, system.Call{Name: "health", Read: func(ctx context.Context) ([]system.Reading, error) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return nil, s.Health(ctx)
		}})
	}
	return calls
}

// holdings returns the readings that the system reports.
func holdings(h system.Holdings) (out []system.Reading) {
	for _, r := range []struct {
		name  string
		value int64
	}{
		{"objects", h.Objects}, {system.ReadAbsolute, h.Absolute}, {system.ReadDisk, h.Disk},
		{system.ReadEntries, h.Entries}, {system.ReadInodes, h.Inodes},
	} {
		if r.value != -1 {
			out = append(out, system.Reading{Name: r.name, Value: float64(r.value)})
		}
	}
	return out
}

// listing counts objects and adds up their sizes; if one size is unknown, it returns no sum.
func listing(ctx context.Context, node system.Lister) ([]system.Reading, error) {
	var files, bytes int64
	known := true
	err := node.List(ctx, func(o system.Object) error {
		files, bytes, known = files+1, bytes+o.Size, known && o.Size >= 0
		return nil
	})
	out := []system.Reading{{Name: system.ReadFiles, Value: float64(files)}}
	if known {
		out = append(out, system.Reading{Name: system.ReadFileBytes, Value: float64(bytes)})
	}
	return out, err
}

const (
	mostCount = 1 << 62 // above, a 64-bit unsigned counter has wrapped below zero
	mostBits  = 127     // above, a 128-bit one has; all siacoins ever need 117
	reorg     = 100     // blocks by which a chain's height may fall when it switches branches
)

// sanity marks readings that cannot be true. No reading is negative. Of all counts, only a chain's
// height never falls: files can be deleted, and the cost of contracts leaves the sum when they end.
type sanity struct{ height float64 }

// check returns r with the reason in Bad if it cannot be true.
func (s *sanity) check(r system.Reading) system.Reading {
	if r.Bad != "" {
		return r
	}
	switch {
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0):
		r.Bad = fmt.Sprintf("not a number: %v", r.Value)
	case r.Value < 0:
		r.Bad = fmt.Sprintf("negative: %g", r.Value)
	case r.Amount != nil && r.Amount.BitLen() > mostBits, r.Amount == nil && r.Value >= mostCount:
		r.Bad = fmt.Sprintf("below zero in an unsigned counter: %.4g", r.Value)
	case r.Name == system.ReadHeight && r.Value < s.height-reorg:
		r.Bad = fmt.Sprintf("fell from %.0f to %.0f", s.height, r.Value)
	}
	if r.Bad == "" && r.Name == system.ReadHeight {
		s.height = max(s.height, r.Value)
	}
	return r
}

// mostReason limits the length of a recorded failure, in characters: a year of failed polls has half a
// million of them.
const mostReason = 300

// reason describes briefly why a call that took this long failed: its class, a colon, and the
// system's message.
func reason(err error, took time.Duration) string {
	class := classOf(err)
	if class == "timeout" {
		return fmt.Sprintf("timeout: no answer within %s", words.Duration(took))
	}
	return class + ": " + words.Clip(strings.Join(strings.Fields(err.Error()), " "), mostReason)
}

// Class returns the first part of the reason why a call failed. There are few classes: "timeout", "connection
// refused", "connection reset", "unreachable", "malformed answer", "cut off", "status
// 500", "failed".
func Class(reason string) string {
	class, _, _ := strings.Cut(reason, ": ")
	return class
}

func classOf(err error) string {
	var status interface{ StatusCode() int }
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.As(err, &status):
		return fmt.Sprintf("status %d", status.StatusCode())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "cut off"
	case errors.Is(err, system.ErrAnswer), errors.As(err, new(*json.SyntaxError)),
		errors.As(err, new(*json.UnmarshalTypeError)):
		return "malformed answer"
	case errors.As(err, &network):
		return "unreachable"
	}
	return "failed"
}
