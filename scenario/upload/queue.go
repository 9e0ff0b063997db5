package upload

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// objectState is where an object of an upload is: all that is kept of one that is
// done, because there may be millions.
type objectState uint8

const (
	objectNew objectState = iota // nothing was done with it
	objectUnder
	objectWaiting
	objectAccepted
	objectDurable
	objectFailed
	objectRefused
	objectUnreadable
)

// queue gives out the objects of a data set: those whose retry is due first,
// else in the set's order.
type queue struct {
	now func() time.Duration

	mu    sync.Mutex
	state []objectState
	next  int // none before it is new
	retry retries
	under int           // given out, and not back
	again chan struct{} // closed when something changes
}

func newQueue(n int, now func() time.Duration) *queue {
	return &queue{now: now, state: make([]objectState, n), again: make(chan struct{})}
}

// take gives the next object, which is then under way. While one may come it
// calls waits and waits; ok is false when none does, or ctx has ended.
func (q *queue) take(ctx context.Context, waits func()) (object int, ok bool) {
	for ctx.Err() == nil {
		q.mu.Lock()
		var wait time.Duration
		object, wait, ok = q.pick()
		over, again := q.under == 0 && len(q.retry) == 0, q.again
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
		q.state[object] = objectUnder
		q.under++
	}
	return object, wait, ok
}

// unpick is for an object that was given out and not touched: it is given out
// again, before others.
func (q *queue) unpick(object int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state[object] = objectWaiting
	q.under--
	heap.Push(&q.retry, retryAt{0, object})
	q.changed()
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

// back ends that an object is under way.
func (q *queue) back(object int, state objectState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state[object] = state
	q.under--
	q.changed()
}

// later does so too, and gives the object out again when it is due.
func (q *queue) later(object int, due time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state[object] = objectWaiting
	q.under--
	heap.Push(&q.retry, retryAt{due, object})
	q.changed()
}

// set is for an object that is not under way.
func (q *queue) set(object int, state objectState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state[object] = state
}

// first has an object that is not under way given out before all new ones.
func (q *queue) first(object int) { q.wait(object, 0) }

// wait has an object that is not under way given out when it is due.
func (q *queue) wait(object int, due time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state[object] = objectWaiting
	heap.Push(&q.retry, retryAt{due, object})
}

func (q *queue) of(object int) objectState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state[object]
}

// changed wakes all that wait for an object; q.mu is held. Most of the time no one
// waits: what is new is given out without waiting.
func (q *queue) changed() {
	close(q.again)
	q.again = make(chan struct{})
}

// retryAt is an object that is to be tried again.
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

// unretry takes back that objects are to be tried again.
func (q *queue) unretry(objects []int, state objectState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, object := range objects {
		q.state[object] = state
	}
	q.retry = slices.DeleteFunc(q.retry, func(r retryAt) bool { return q.state[r.object] != objectWaiting })
	heap.Init(&q.retry)
}
