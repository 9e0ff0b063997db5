package httpload

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/record"
)

const (
	// recvBuffer is the size of a loop's receive buffer, which all its connections share.
	recvBuffer = 256 << 10
	// headBuffer limits how much of a body is copied along with the head in drop mode.
	headBuffer = 4 << 10
	// noWait is the duration (ns) below which epoll did not have to wait.
	noWait  = 5000
	maxTick = 100 * time.Millisecond
	minTick = 2 * time.Millisecond
)

// loop is an event loop on its own thread with its share of the connections.
type loop struct {
	*raw
	id    int
	ep    int
	conns []*conn
	free  []*conn // open loop: free connections, the last used at the end
	live  int     // closed loop: connections with requests left; open loop: operations in flight

	buf    []byte
	out    []byte // the request being written
	events []unix.EpollEvent
	now    int64 // ns since the epoch, set by clock
	woke   int64 // when epoll last returned
	ready  int64 // estimated time when the current events became ready
	freed  int64 // open loop: when a connection became free after all were busy
	tally  *tally
	idle   int64
	delay  int64 // ns that the thread waited for a CPU
	began  int64
	ended  int64
	warm   bool // warming up, before the clock starts
	cut    bool // the window ended, or the run was cancelled, before all was done
}

func newLoop(r *raw) (*loop, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("httpload: epoll: %w", err)
	}
	return &loop{raw: r, ep: ep, buf: make([]byte, recvBuffer), events: make([]unix.EpollEvent, 256),
		tally: newTally(r.rec, r.link)}, nil
}

func (l *loop) close() {
	for _, c := range l.conns {
		l.drop(c)
	}
	unix.Close(l.ep)
}

// worker returns the number of a connection among those of all generators.
func (l *loop) worker(i int) int { return l.spec.FirstWorker + i*len(l.loops) + l.id }

func (l *loop) clock() int64 {
	l.now = int64(time.Since(l.epoch))
	return l.now
}

// serve runs the loop until its share of the work is done, the window has ended or the run
// is cancelled.
func (l *loop) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Timers of this thread may be at most 1 ns late instead of 50 µs.
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	defer unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)

	if l.spec.Warmup > 0 {
		l.warmUp()
	}
	l.barrier.Done()
	<-l.release // closed when every loop is here
	l.clock()
	l.began, l.idle = l.now, 0
	delay := threadRunDelay()
	defer func() { l.delay, l.ended = threadRunDelay()-delay, l.clock() }()

	if l.open {
		l.free = slices.Clone(l.conns)
		slices.Reverse(l.free)
	} else {
		l.live = len(l.conns)
		for _, c := range l.conns {
			// Each has its actual start time: opening a thousand connections takes a
			// while, which should not count against the server.
			l.clock()
			l.next(c)
		}
	}
	if outcome := l.until(l.end); outcome != record.OK {
		l.abandon(outcome)
	}
}

// until runs until everything is done (OK), end is reached (InFlight) or the run is cancelled.
func (l *loop) until(end int64) record.Outcome {
	for sweep := l.now; ; {
		l.clock()
		wake, more := l.startDue()
		switch {
		case l.live == 0 && !more:
			return record.OK
		case l.now >= end:
			return record.InFlight
		}
		if l.now >= sweep {
			if l.ctx.Err() != nil {
				return record.Cancelled
			}
			l.sweep()
			sweep = l.now + int64(l.tick)
		}
		l.wait(min(sweep, end, wake) - l.now)
	}
}

// wait handles events that are ready, or become ready within d nanoseconds.
func (l *loop) wait(d int64) {
	before := l.clock()
	n := epollWait(l.ep, l.events, time.Duration(d))
	now := l.clock()
	l.idle += now - before
	l.ready = now
	if now-before < noWait {
		// They became ready at some time during the last batch.
		l.ready = (l.woke + now) / 2
	}
	l.woke = now
	for i := range l.events[:n] {
		ev := &l.events[i]
		if c := l.conns[ev.Fd]; c.generation == ev.Pad {
			l.handle(c, ev.Events)
		}
	}
}

// startDue starts the arrivals of an open loop that are due. wake is when to call it again;
// more reports whether any may follow.
func (l *loop) startDue() (wake int64, more bool) {
	if !l.open {
		return math.MaxInt64, false
	}
	for len(l.free) > 0 {
		req, ok, at, more := l.schedule.claimDue(l.now - l.started)
		if !ok && more {
			return l.started + at, true
		}
		if !ok {
			return l.end, false
		}
		c := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		l.live++
		l.clock()
		l.start(c, req)
	}
	return l.end, true // all connections are in use: one of them ends first
}

// next gives a connection of a closed loop its next operation.
func (l *loop) next(c *conn) {
	if l.spec.PerWorker > 0 && c.ops >= l.spec.PerWorker {
		l.live--
		return
	}
	req, ok := l.schedule.claim()
	if !ok {
		l.live--
		return
	}
	req.intended = l.now - l.started
	l.start(c, req)
}

// sweep applies the limits to every connection.
func (l *loop) sweep() {
	for _, c := range l.conns {
		switch {
		case c.parked && l.now >= c.until:
			c.parked = false
			l.next(c)
		case c.busy:
			l.limits(c)
		}
	}
	if l.now-l.tally.flushed >= int64(l.spec.Window) {
		l.tally.flush(l.now)
	}
}

// abandon ends every operation in flight.
func (l *loop) abandon(o record.Outcome) {
	l.cut = true
	for _, c := range l.conns {
		if !c.busy {
			continue
		}
		c.last = true
		l.pull(c) // data that has arrived counts as received
		if c.busy {
			l.finish(c, o, c.phase(), false)
		}
	}
}

// warmUp sends one request on each connection before the clock starts.
func (l *loop) warmUp() {
	l.warm, l.live = true, len(l.conns)
	limit := l.clock() + 2*int64(l.spec.Stall)
	for i, c := range l.conns {
		req := l.schedule.warmup(l.worker(i), l.spec.Warmup)
		req.intended = l.clock()
		l.start(c, req)
	}
	l.until(limit)
	for _, c := range l.conns {
		if c.busy {
			l.finish(c, record.InFlight, c.phase(), false)
		}
		c.ops = 0
	}
	l.warm, l.live = false, 0
}

// threadRunDelay returns how long this thread has waited for a CPU, in nanoseconds; 0 if the
// kernel does not report it.
func threadRunDelay() int64 {
	b, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return 0
	}
	var run, delay int64
	fmt.Sscan(string(b), &run, &delay)
	return delay
}
