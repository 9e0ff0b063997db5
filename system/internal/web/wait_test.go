package web

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// silent answers nothing until the client gives up.
func silent(ctx context.Context) (*http.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNoAnswer(t *testing.T) {
	unknown := func(context.Context) (bool, error) { return false, nil }
	known := func(context.Context) (bool, error) { return true, nil }
	for name, c := range map[string]struct {
		wait     Wait
		deadline time.Duration
		want     error
		after    time.Duration
	}{
		"not known": {Wait{Head: 15 * time.Second}, time.Hour, system.ErrNotFound, 15 * time.Second},
		"no node has it": {Wait{Head: 15 * time.Second, Known: unknown}, time.Hour, system.ErrNotFound,
			look},
		"a node has it": {Wait{Head: 15 * time.Second, Known: known}, time.Hour, system.ErrStalled,
			15 * time.Second},
		"no limit of ours": {Wait{Known: known}, time.Hour, context.DeadlineExceeded, time.Hour},
		"the caller is less patient": {Wait{Head: 15 * time.Second}, 3 * time.Second, context.DeadlineExceeded,
			3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				from := time.Now()
				_, err := c.wait.Do(ctx, silent)
				if took := time.Since(from); !errors.Is(err, c.want) || took != c.after {
					t.Errorf("after %v: %v; want %v after %v", took, err, c.want, c.after)
				}
				if c.want == context.DeadlineExceeded && errors.Is(err, system.ErrNotFound) {
					t.Errorf("the caller's deadline says nothing about the object: %v", err)
				}
			})
		})
	}
}

func TestDaemonGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("killed")
		alive, end := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { end(gone) })
		from := time.Now()
		_, err := Wait{Head: time.Hour, Alive: alive}.Do(t.Context(), silent)
		if took := time.Since(from); !errors.Is(err, gone) || errors.Is(err, system.ErrNotFound) ||
			took != 3*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
