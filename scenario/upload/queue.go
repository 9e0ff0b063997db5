package upload

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

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
// be put: those whose retry is due first, else in the set's order.
type queue struct {
	now  func() time.Duration
	size func(object int) int64

	mu    sync.Mutex
	state []record.JobState
	total counts
	next  int           // none before it is new
	retry []retryAt     // the earliest first; of those due at once the set's order
	again chan struct{} // closed when something changes
}

func newQueue(n int, size func(object int) int64, now func() time.Duration) *queue {
	return &queue{
		now: now, size: size, state: make([]record.JobState, n), again: make(chan struct{}),
		total: counts{in: map[record.JobState]int64{"": int64(n)}},
	}
}

// take gives the next object, which is then under way. While one may come it
// calls waits and waits; ok is false when none does, or ctx has ended.
func (q *queue) take(ctx context.Context, waits func()) (object int, ok bool) {
	for ctx.Err() == nil {
		q.mu.Lock()
		var wait time.Duration
		object, wait, ok = q.pick()
		over, again := q.total.in[record.JobPutting] == 0 && len(q.retry) == 0, q.again
		q.mu.Unlock()
		if ok || over {
			return object, ok
		}
		waits()
		pause(ctx, wait, again)
	}
	return 0, false
}

// pick gives out the object that is next, if one is; else it says after what time
// one may be, and negative when that does not depend on the time. q.mu is held.
func (q *queue) pick() (object int, wait time.Duration, ok bool) {
	wait = -1
	if len(q.retry) > 0 {
		wait = q.retry[0].due - q.now()
	}
	switch {
	case len(q.retry) > 0 && wait <= 0:
		object, ok, q.retry = q.retry[0].object, true, q.retry[1:]
	default:
		for q.next < len(q.state) && q.state[q.next] != "" {
			q.next++
		}
		if q.next < len(q.state) {
			object, ok = q.next, true
		}
	}
	if ok {
		q.move(object, record.JobPutting)
	}
	return object, wait, ok
}

// move changes a state and what is counted by states; q.mu is held.
func (q *queue) move(object int, to record.JobState) {
	from := q.state[object]
	if isStored(to) != isStored(from) {
		size := q.size(object)
		if isStored(from) {
			size = -size
		}
		q.total.bytes += size
	}
	q.total.in[from]--
	q.total.in[to]++
	q.state[object] = to
}

// set changes the state of an object that is not to be put again.
func (q *queue) set(object int, state record.JobState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(object, state)
	q.changed()
}

// later gives an object out again when it is due, before all new ones.
func (q *queue) later(object int, due time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(object, record.JobWaiting)
	r := retryAt{due, object}
	at, _ := slices.BinarySearchFunc(q.retry, r, func(a, b retryAt) int {
		return cmp.Or(cmp.Compare(a.due, b.due),
			a.object-b.object)
	})
	q.retry = slices.Insert(q.retry, at, r)
	q.changed()
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

// changed wakes all that wait for an object; q.mu is held. Most of the time no one
// waits: what is new is given out without waiting.
func (q *queue) changed() {
	close(q.again)
	q.again = make(chan struct{})
}

// pause waits for d (negative: for ever), for again, or for the end of ctx.
func pause(ctx context.Context, d time.Duration, again <-chan struct{}) {
	var due <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-again:
	case <-ctx.Done():
	}
}

// retryAt is an object that is to be put again.
type retryAt struct {
	due    time.Duration
	object int
}
