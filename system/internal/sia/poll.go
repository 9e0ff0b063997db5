package sia

import (
	"context"
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
)

// The pause between two calls is 2 % of the time waited so far (1/share), and at least shortest. 10
// s take about 240 calls, and an hour 540.
const (
	shortest = 5 * time.Millisecond
	share    = 50
)

// Poll calls done until it returns ok. It returns late by at most 2 % of the wait or 5 ms, plus the
// time of one answer. An error of done ends the wait. If ctx ends it, the error names what Poll
// waited for and the last state that done returned.
func Poll(ctx context.Context, system, what string, done func(ctx context.Context) (ok bool, state string,
	err error)) error {
	last, from := "no answer", time.Now()
	for {
		ok, state, err := done(ctx)
		switch {
		case err == nil && ok:
			return nil
		case err == nil:
			last = state
		case ctx.Err() == nil:
			return err
		}
		if !timing.Pause(ctx, max(time.Since(from)/share, shortest)) {
			return fmt.Errorf("%s: %s: %w (last: %s)", system, what, context.Cause(ctx), last)
		}
	}
}
