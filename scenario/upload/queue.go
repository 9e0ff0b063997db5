package upload

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// objectState is where an object of an upload is: all that is kept of one that is
// done, because there may be millions.
type objectState uint8

const (
	objectNew     objectState = iota // nothing was done with it
	objectUnder                      // given out to be put
	objectWaiting                    // to be put again
	objectAccepted
	objectDurable
	objectFailed
	objectRefused
	objectUnreadable
	objectStates
)

// counts are how many objects are in each state, and the bytes of the accepted ones.
type counts struct {
	in    [objectStates]int64
	bytes int64
}

// accepted are all of them, durable or not.
func (c *counts) accepted() int64 { return c.in[objectAccepted] + c.in[objectDurable] }

// queue knows the state of each object of a data set, and gives out those that are to
// be put: those whose retry is due first, else in the set's order.
type queue struct {
	now  func() time.Duration
	size func(object int) int64

	mu    sync.Mutex
	state []objectState
	total counts
	next  int // none before it is new
	retry retries
	again chan struct{} // closed when something changes
}

func newQueue(n int, size func(object int) int64, now func() time.Duration) *queue {
	q := &queue{now: now, size: size, state: make([]objectState, n), again: make(chan struct{})}
	q.total.in[objectNew] = int64(n)
	return q
}

// take gives the next object, which is then under way. While one may come it
// calls waits and waits; ok is false when none does, or ctx has ended.
func (q *queue) take(ctx context.Context, waits func()) (object int, ok bool) {
	for ctx.Err() == nil {
		q.mu.Lock()
		var wait time.Duration
		object, wait, ok = q.pick()
		over, again := q.total.in[objectUnder] == 0 && len(q.retry) == 0, q.again
		q.mu.Unlock()
		if ok || over {
			return object, ok
		}
		waits()
		pause(ctx, wait, again)
	}
	return 0, false
}

// try is take without waiting: ok is false when none can be given out now.
func (q *queue) try() (object int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	object, _, ok = q.pick()
	return object, ok
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
		object, ok = heap.Pop(&q.retry).(retryAt).object, true
	default:
		for q.next < len(q.state) && q.state[q.next] != objectNew {
			q.next++
		}
		if q.next < len(q.state) {
			object, ok = q.next, true
		}
	}
	if ok {
		q.move(object, objectUnder)
	}
	return object, wait, ok
}

// move changes a state and what is counted by states; q.mu is held.
func (q *queue) move(object int, to objectState) {
	from := q.state[object]
	stored := func(s objectState) bool { return s == objectAccepted || s == objectDurable }
	if stored(to) != stored(from) {
		size := q.size(object)
		if stored(from) {
			size = -size
		}
		q.total.bytes += size
	}
	q.total.in[from]--
	q.total.in[to]++
	q.state[object] = to
}

// set changes the state of an object that is not to be put again.
func (q *queue) set(object int, state objectState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(object, state)
	q.changed()
}

// later gives an object out again when it is due, before all new ones.
func (q *queue) later(object int, due time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(object, objectWaiting)
	heap.Push(&q.retry, retryAt{due, object})
	q.changed()
}

func (q *queue) of(object int) objectState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state[object]
}

func (q *queue) counts() counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
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

// retries is a heap, the earliest first; of those due at once the set's order.
type retries []retryAt

func (r retries) Len() int { return len(r) }
func (r retries) Less(i, j int) bool {
	return r[i].due < r[j].due || r[i].due == r[j].due && r[i].object < r[j].object
}
func (r retries) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *retries) Push(x any)   { *r = append(*r, x.(retryAt)) }
func (r *retries) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
