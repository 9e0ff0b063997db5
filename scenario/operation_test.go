package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// The time of a system's cleanup after its operation was cut off does not count. An operation
// that succeeded, even late, is not shortened.
func TestTidyingIsNoPartOfAnOperation(t *testing.T) {
	limits := experiment.Limits{}
	limits.Deadline, limits.Stall = experiment.Duration(10*time.Second), experiment.Duration(4*time.Second)
	for name, c := range map[string]struct {
		act  func(*Operation) error
		want time.Duration
	}{
		"deadline": {func(w *Operation) error { <-w.Ctx.Done(); time.Sleep(time.Second); return context.Cause(w.Ctx) },
			10 * time.Second},
		"stall": {func(w *Operation) error {
			w.count(1, false)
			<-w.Ctx.Done()
			time.Sleep(3 * time.Second)
			return context.Cause(w.Ctx)
		}, 4 * time.Second},
		"failed": {func(*Operation) error { time.Sleep(2 * time.Second); return errors.New("refused") },
			2 * time.Second},
		"late": {func(*Operation) error { time.Sleep(11 * time.Second); return nil }, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var op record.Op
				epoch := time.Now().Add(-time.Second)
				_ = Timed(t.Context(), limits, func() time.Duration { return time.Since(epoch) }, &op, c.act)
				if took := time.Duration(op.LastByte - op.Start); took != c.want {
					t.Errorf("took %v, want %v", took, c.want)
				}
			})
		})
	}
}

// An operation has wrong bytes if the system itself detects this without passing them on.
func TestWrongBytesOfASystem(t *testing.T) {
	op := record.Op{Length: 3}
	err := Timed(t.Context(), experiment.Limits{}, func() time.Duration { return 1 }, &op, func(w *Operation) error {
		w.count(3, false)
		return fmt.Errorf("block 1: %w", ErrWrongBytes)
	})
	if op.Outcome != record.WrongBytes || op.Class != "" || !errors.Is(err, ErrWrongBytes) {
		t.Errorf("%v, class %q: %v", op.Outcome, op.Class, err)
	}
}

func TestOutcomeOf(t *testing.T) {
	own := fmt.Errorf("some: get x: after 3 bytes: no byte for 1m0s: %w", system.ErrStalled)
	for _, c := range []struct {
		err, cause error
		want       record.Outcome
		class      string
		status     uint16
	}{
		{nil, nil, record.OK, "", 0},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), ErrDeadline, record.Deadline, "", 0},
		{errors.New("closed"), context.Canceled, record.Cancelled, "", 0},
		{fmt.Errorf("s3: %w", system.ErrNotFound), nil, record.Error, "not found", 0},
		{fmt.Errorf("tahoe: PUT: status 500: %w", system.ErrTooFew), nil, record.Error, "too few servers", 500},
		{fmt.Errorf("sia: status 503: %w", system.ErrLocked), nil, record.Error, "locked", 503},
		{errors.New("web: GET http://a:1/b: status 503: slow down"), nil, record.Refused, "status 503", 503},
		{errors.New("web: GET http://a:1/b: status 500"), nil, record.Error, "status 500", 500},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, nil, record.Refused, "connection refused", 0},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), nil, record.Error, "connection reset", 0},
		{fmt.Errorf("after 7 bytes: %w", io.ErrUnexpectedEOF), nil, record.Truncated, "", 0},
		{fmt.Errorf("probe: %w", context.DeadlineExceeded), nil, record.Error, "timeout of the system's own", 0},
		{errors.New("upload of 7f3a9c: shard 3 of 10 lost"), nil, record.Error, "upload of #: shard # of # lost", 0},
		{errors.New(strings.Repeat("ä", 500)), nil, record.Error, strings.Repeat("ä", classLength-1) + "…", 0},
		// A stall is a stall, whether the experiment's limit or the system's own ended it.
		{errors.New("closed"), ErrStalled, record.Stalled, "", 0},
		{own, nil, record.Stalled, "", 0},
		{own, ErrDeadline, record.Deadline, "", 0}, // after the experiment's deadline
		{own, context.Canceled, record.Cancelled, "", 0},
		{errors.New("stalled"), nil, record.Error, "stalled", 0},
		{errors.New("some: put x: status 500: <html>"), nil, record.Error, "status 500", 500},
	} {
		outcome, class, status := OutcomeOf(c.err, c.cause)
		if outcome != c.want || class != c.class || status != c.status {
			t.Errorf("%v (%v): %s, %q, %d", c.err, c.cause, outcome, class, status)
		}
	}
}
