package member

import (
	"context"
	"sync"
)

// Background is the work for a content in the background, until it is stopped. The zero value is
// idle.
type Background struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil: not started, or stopped
	wg     sync.WaitGroup
}

// Begin starts the work, after the previous work has ended.
func (b *Background) Begin(work ...func(ctx context.Context)) {
	b.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	for _, w := range work {
		b.wg.Go(func() { w(ctx) })
	}
}

// Begun reports whether the work was started and not stopped since.
func (b *Background) Begun() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cancel != nil
}

// Stop ends the work and waits for its end.
func (b *Background) Stop() {
	b.mu.Lock()
	cancel := b.cancel
	b.cancel = nil
	b.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	b.wg.Wait()
}
