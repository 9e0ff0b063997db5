package overhead

import (
	"context"
	"fmt"
	"time"
)

// within does one step that surrounds operations, under a deadline of its own as
// long as that of an operation. Its error says which step it was, and when the
// deadline ended it, so.
func (r *runner) within(ctx context.Context, what string, do func(context.Context) error) error {
	return r.withinTime(ctx, r.site.Limits.Deadline.Std(), what, do)
}

func (r *runner) withinTime(ctx context.Context, limit time.Duration, what string, do func(context.Context) error) error {
	cause := fmt.Errorf("it took longer than %s: %w", limit, context.DeadlineExceeded)
	step, cancel := context.WithTimeoutCause(ctx, limit, cause)
	defer cancel()
	err := do(step)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && step.Err() != nil:
		return fmt.Errorf("%s: %s: %w (%w)", r.site.Use.Name, what, cause, err)
	}
	return fmt.Errorf("%s: %s: %w", r.site.Use.Name, what, err)
}
