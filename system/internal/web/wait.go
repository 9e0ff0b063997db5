package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// look is how long an answer may take to begin before the cluster's nodes are
// asked whether any of them has the object at all.
const look = time.Second

// Wait bounds one request to a daemon that searches a network for ever: it answers nothing
// where others say 404, and falls silent in the middle of an answer where others break it
// off.
type Wait struct {
	What string        // begins errors: "codex: get zDv…"
	Head time.Duration // until the answer begins; 0: as long as ctx allows
	Body time.Duration // without a byte; 0: as long as ctx allows
	// Known asks every node of a closed cluster whether it has the object; nil
	// when there may be others that have it.
	Known func(ctx context.Context) (bool, error)
	// Alive ends with the daemons; its cause says how. Nil: they are not watched.
	Alive context.Context
}

// reason is what we ended a request for.
type reason struct{ error }

func (r reason) Unwrap() error { return r.error }

// Do makes the request. Reading and closing the answer's body stays with the
// caller; a stall ends it with system.ErrStalled.
func (w Wait) Do(ctx context.Context, do func(context.Context) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	began := make(chan struct{})
	go w.watch(ctx, cancel, began)
	unwatch := func() bool { return true }
	if w.Alive != nil {
		unwatch = context.AfterFunc(w.Alive, func() {
			cancel(reason{fmt.Errorf("%s: %w", w.What, context.Cause(w.Alive))})
		})
	}
	resp, err := do(ctx)
	close(began)
	if err != nil {
		err = ours(ctx, err)
		cancel(nil)
		unwatch()
		return nil, err
	}
	b := &waited{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, unwatch: unwatch, wait: w}
	if w.Body > 0 {
		b.timer = time.AfterFunc(w.Body, b.stalled)
		b.timer.Stop() // it runs during reads
	}
	resp.Body = b
	return resp, nil
}

// watch ends a request whose answer does not begin.
func (w Wait) watch(ctx context.Context, cancel context.CancelCauseFunc, began <-chan struct{}) {
	reached := func(moment <-chan time.Time) bool {
		select {
		case <-ctx.Done():
		case <-began:
		case <-moment:
			return true
		}
		return false
	}
	var head <-chan time.Time // nil: never
	if w.Head > 0 {
		head = time.After(w.Head)
	}
	has := false
	if w.Known != nil {
		if !reached(time.After(look)) {
			return
		}
		known, err := w.Known(ctx)
		if has = err == nil && known; err == nil && !known {
			cancel(reason{fmt.Errorf("%s: none of the nodes has it: %w", w.What, system.ErrNotFound)})
			return
		}
	}
	if !reached(head) {
		return
	}
	if has {
		cancel(reason{fmt.Errorf("%s: no answer for %v (option not_found_after), though one of the nodes has it: %w",
			w.What, w.Head, system.ErrStalled)})
		return
	}
	cancel(reason{fmt.Errorf("%s: no answer for %v (option not_found_after): the node goes on searching, and never "+
		"says that an object is missing: %w", w.What, w.Head, system.ErrNotFound)})
}

// ours is the reason that we ended the request for, when we did.
func ours(ctx context.Context, err error) error {
	var r reason
	if errors.As(context.Cause(ctx), &r) {
		return r.error
	}
	return err
}

// waited is an answer's body that must go on.
type waited struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	unwatch func() bool
	wait    Wait
	timer   *time.Timer
	n       int64
}

func (b *waited) Read(p []byte) (int, error) {
	if b.timer != nil {
		// The reader's own pauses do not count as the daemon's.
		b.timer.Reset(b.wait.Body)
		defer b.timer.Stop()
	}
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF {
		err = ours(b.ctx, err)
		if errors.Is(err, system.ErrStalled) {
			err = fmt.Errorf("after %d bytes: %w", b.n, err)
		}
	}
	return n, err
}

func (b *waited) stalled() {
	b.cancel(reason{fmt.Errorf("%s: no byte for %v (option stall_after): %w", b.wait.What, b.wait.Body,
		system.ErrStalled)})
}

// Close implements io.Closer.
func (b *waited) Close() error {
	if b.timer != nil {
		b.timer.Stop()
	}
	err := b.ReadCloser.Close()
	b.cancel(nil)
	b.unwatch()
	return err
}
