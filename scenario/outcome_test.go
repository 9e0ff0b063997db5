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

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

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
		{errors.New(strings.Repeat("ä", 500)), nil, record.Error, strings.Repeat("ä", ClassLength-1) + "…", 0},
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
