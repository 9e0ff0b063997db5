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
		{"our limit", context.Canceled, errStalled, record.Stalled},
		{"the system's own", own, nil, record.Stalled},
		{"the system's own when we had ended it", own, errDeadline, record.Deadline},
		{"the system's own when the trial had ended", own, context.Canceled, record.Cancelled},
		{"another error", errors.New("stalled"), nil, record.Error},
	} {
		if got, class, _ := outcomeOf(c.err, c.cause); got != c.want {
			t.Errorf("%s: outcome %v (%s), want %v", c.name, got, class, c.want)
		}
	}
}
