package scenario

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/workload"
)

// watched is one operation under the experiment's limits: it ends at its
// deadline, and once no byte of its object has moved for the stall limit.
//
// Bytes are seen where they pass between the system's code and us. So a read
// stalls from its beginning on; a write stalls only until the system has taken
// the last byte, because many answer after a long silent work; what moves no
// object cannot stall. For all of them the deadline holds.
type watched struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	limit time.Duration // of a stall
	note  func() bool   // forgets to note when it is cut off

	mu     sync.Mutex
	cut    time.Time   // when it was cut off; zero: it was not
	timer  *time.Timer // nil: cannot stall
	closed bool
	moved  int64
	first  time.Time     // the first byte to us
	ours   time.Duration // in which content was made or compared
}

// watch begins to watch an operation. Its caller calls stop.
func watch(ctx context.Context, limits experiment.Limits) *watched {
	ctx, forget := context.WithTimeoutCause(ctx, limits.Deadline.Std(), errDeadline)
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watched{ctx: ctx, limit: limits.Stall.Std(), end: func(cause error) { cancel(cause); forget() }}
	w.note = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cut = time.Now()
	})
	return w
}

// tidied is how long ago an operation that failed with err was cut off: what the
// system's code did since then, removing what it had left behind, is no part of the
// operation. 0 when it was not cut off.
func (w *watched) tidied(err error) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil || w.cut.IsZero() {
		return 0
	}
	return time.Since(w.cut)
}

// stop ends the watch and gives the cause for which the operation was cut off;
// nil when it was not.
func (w *watched) stop() error {
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	cause := context.Cause(w.ctx)
	w.note()
	w.end(nil)
	return cause
}

// alive counts n bytes and puts the stall off. done says that no byte is to come.
func (w *watched) alive(n int, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved += int64(n)
	switch {
	case w.closed:
	case done:
		if w.timer != nil {
			w.timer.Stop()
		}
	case w.timer == nil:
		w.timer = time.AfterFunc(w.limit, func() { w.end(errStalled) })
	default:
		w.timer.Reset(w.limit)
	}
}

// came counts n bytes that came to us.
func (w *watched) came(n int) {
	if n > 0 {
		w.mu.Lock()
		if w.first.IsZero() {
			w.first = time.Now()
		}
		w.mu.Unlock()
	}
	w.alive(n, false)
}

// bytes is how many have moved.
func (w *watched) bytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moved
}

// content counts the time since begun as spent on content.
func (w *watched) content(begun time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ours += time.Since(begun)
}

// contentTime is how long content was made or compared while the system waited
// for it, or could have been doing other things meanwhile.
func (w *watched) contentTime() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ours
}

// firstByte is when the first byte came to us; zero: none did.
func (w *watched) firstByte() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// sending is the content as the system reads it.
func (w *watched) sending(c workload.Content) io.Reader { return w.sendingFrom(c.Reader(), c.Size) }

// sendingFrom is likewise for size bytes of from.
func (w *watched) sendingFrom(from io.Reader, size int64) io.Reader {
	w.alive(0, false)
	return &sender{w: w, from: from, left: size}
}

type sender struct {
	w    *watched
	from io.Reader
	left int64
}

func (s *sender) Read(p []byte) (int, error) {
	begun := time.Now()
	n, err := s.from.Read(p)
	s.w.content(begun)
	s.left -= int64(n)
	s.w.alive(n, s.left == 0)
	return n, err
}

// errWrongBytes ends a read whose bytes are not the object's.
var errWrongBytes = errors.New("these bytes are not the object's")

// receiver takes what a system writes and compares every byte of it with the
// object's, from an offset on.
type receiver struct {
	w     *watched
	want  *workload.Reader
	wrong bool
	buf   []byte
}

// receiving makes a receiver for the bytes of c from off on.
func (w *watched) receiving(c workload.Content, off int64) (*receiver, error) {
	want := c.Reader()
	if _, err := want.Seek(off, io.SeekStart); err != nil {
		return nil, err
	}
	w.alive(0, false)
	return &receiver{w: w, want: want}, nil
}

// Write implements io.Writer. Its error ends the operation: more bytes of
// another object tell nothing new.
func (r *receiver) Write(p []byte) (int, error) {
	begun := time.Now()
	r.w.came(len(p))
	defer r.w.content(begun)
	r.buf = append(r.buf[:0], p...) // Check works in place, and p is the system's
	if _, ok := r.want.Check(r.buf); !ok {
		r.wrong = true
		return 0, errWrongBytes
	}
	return len(p), nil
}
