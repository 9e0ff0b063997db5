package scenario

import (
	"context"
	"sync"
)

// Workers has so many workers do something beside each other. The first error ends the
// context of all, and is returned, as is the cause of ctx's end.
func Workers(ctx context.Context, n int, do func(ctx context.Context, worker int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for worker := range n {
		group.Go(func() {
			if err := do(ctx, worker); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
