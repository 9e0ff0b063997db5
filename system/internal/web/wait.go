package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// lateAfter is how long an answer may take to begin until Wait.Late is called.
const lateAfter = time.Second

// Wait bounds one request to a daemon that searches a network without limit: for a missing object,
// it sends no answer instead of a 404.
type Wait struct {
	What string        // prefix of errors, such as "codex: get zDv…"
	Head time.Duration // time until the answer begins; 0: as long as ctx allows
	// Means is the error after Head: ErrNotFound or, if the object is there, ErrStalled.
	Means error
	Late  func(ctx context.Context) // called once if the answer is late; nil: nothing is done
	// Alive ends with the daemons; its cause describes how they ended. It is nil if they are not
	// watched.
	Alive context.Context
}

// reason is the error with which Wait cancelled a request.
type reason struct{ error }

func (r reason) Unwrap() error { return r.error }

// Do makes the request. The caller must read and close the answer's body.
func (w Wait) Do(ctx context.Context, do func(context.Context) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	giveUp := func(format string, args ...any) {
		cancel(reason{fmt.Errorf("%s: %w", w.What, fmt.Errorf(format, args...))})
	}
	unwatch := context.AfterFunc(cmp.Or(w.Alive, context.Background()), func() { giveUp("%w", context.Cause(w.Alive)) })
	var timers []*time.Timer
	if w.Late != nil {
		timers = append(timers, time.AfterFunc(lateAfter, func() { w.Late(ctx) }))
	}
	if w.Head > 0 {
		timers = append(timers, time.AfterFunc(w.Head, func() {
			giveUp("no answer for %v (option not_found_after); the node continues to search: %w", w.Head, w.Means)
		}))
	}
	end := func() {
		cancel(nil)
		unwatch()
	}
	resp, err := do(ctx)
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

// ours returns the reason if Wait cancelled the request, else err.
func ours(ctx context.Context, err error) error {
	if r, ok := errors.AsType[reason](context.Cause(ctx)); ok {
		return r.error
	}
	return err
}

// waited is an answer's body. Closing it ends the wait.
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
