package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// look is how long an answer may take to begin before the cluster's nodes are
// asked whether any of them has the object at all.
const look = time.Second

// Wait bounds one request to a daemon that searches a network for ever: it answers nothing
// where others say 404.
type Wait struct {
	What string        // begins errors: "codex: get zDv…"
	Head time.Duration // until the answer begins; 0: as long as ctx allows
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
// caller.
func (w Wait) Do(ctx context.Context, do func(context.Context) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	giveUp := func(format string, args ...any) {
		cancel(reason{fmt.Errorf("%s: %w", w.What, fmt.Errorf(format, args...))})
	}
	var has, began atomic.Bool
	unwatch := context.AfterFunc(cmp.Or(w.Alive, context.Background()), func() { giveUp("%w", context.Cause(w.Alive)) })
	var timers []*time.Timer
	if w.Known != nil {
		timers = append(timers, time.AfterFunc(look, func() {
			known, err := w.Known(ctx)
			if has.Store(err == nil && known); err == nil && !known && !began.Load() {
				giveUp("none of the nodes has it: %w", system.ErrNotFound)
			}
		}))
	}
	if w.Head > 0 {
		timers = append(timers, time.AfterFunc(w.Head, func() {
			if has.Load() {
				giveUp("no answer for %v (option not_found_after), though one of the nodes has it: %w", w.Head,
					system.ErrStalled)
			} else {
				giveUp("no answer for %v (option not_found_after): the node continues to search, and never says that an "+
					"object is missing: %w", w.Head, system.ErrNotFound)
			}
		}))
	}
	end := func() {
		cancel(nil)
		unwatch()
	}
	resp, err := do(ctx)
	began.Store(true)
	for _, t := range timers {
		t.Stop()
	}
	if err != nil {
		err = ours(ctx, err)
		end()
		return nil, err
	}
	resp.Body = waited{resp.Body, ctx, end}
	return resp, nil
}

// ours is the reason that we ended the request for, when we did.
func ours(ctx context.Context, err error) error {
	if r, ok := errors.AsType[reason](context.Cause(ctx)); ok {
		return r.error
	}
	return err
}

// waited is an answer's body, whose end ends the wait.
type waited struct {
	io.ReadCloser
	ctx context.Context
	end func()
}

func (b waited) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = ours(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b waited) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
