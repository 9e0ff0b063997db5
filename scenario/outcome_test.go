package scenario

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// TestStalls: a stall is one, whether our limit ended it or the system's own.
func TestStalls(t *testing.T) {
	own := fmt.Errorf("some: get x: after 3 bytes: no byte for 1m0s: %w", system.ErrStalled)
	for _, c := range []struct {
		name       string
		err, cause error
		want       record.Outcome
	}{
		{"our limit", context.Canceled, ErrStalled, record.Stalled},
		{"the system's own", own, nil, record.Stalled},
		{"the system's own when we had ended it", own, ErrDeadline, record.Deadline},
		{"the system's own when the trial had ended", own, context.Canceled, record.Cancelled},
		{"another error", errors.New("stalled"), nil, record.Error},
	} {
		if got, class, _ := OutcomeOf(c.err, c.cause); got != c.want {
			t.Errorf("%s: outcome %v (%s), want %v", c.name, got, class, c.want)
		}
	}
}

// TestPagesAreShort: what a proxy answers in a system's place is a class of its
// own, whatever the page says.
func TestPagesAreShort(t *testing.T) {
	const page = "<!DOCTYPE html>\n<html><head><title>Sorry</title></head><body>request 8a31f</body></html>"
	for _, c := range []struct {
		err    error
		want   record.Outcome
		class  string
		status uint16
	}{
		{fmt.Errorf("some: put x: status 500: %s", page), record.Error, "status 500, HTML", 500},
		{fmt.Errorf("some: put x: status 503: %s", page), record.Refused, "status 503, HTML", 503},
		{fmt.Errorf("some: put x: status 507: %s: %w", page, system.ErrQuota), record.Error, "quota or disk full", 507},
		{errors.New("some: put x: " + page), record.Error, "HTML", 0},
		{errors.New("some: put x: status 500: no html"), record.Error, "status 500", 500},
	} {
		if got, class, status := OutcomeOf(c.err, nil); got != c.want || class != c.class || status != c.status {
			t.Errorf("%v: %v, %q, %d", c.err, got, class, status)
		}
	}
}
