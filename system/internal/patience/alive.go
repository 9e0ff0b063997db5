package patience

import (
	"context"
	"errors"
	"fmt"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Watch is a context that ends when one of the processes does, with the last
// lines of its log as the cause; stop ends the watching.
func Watch(processes ...testbed.Process) (alive context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	for _, p := range processes {
		go func() {
			select {
			case <-ctx.Done():
			case <-p.Done():
				err := p.Err()
				if err == nil {
					err = errors.New("it ended without an error")
				}
				cancel(fmt.Errorf("the process %s has ended: %w; its log is %s", p.Name(), err, p.LogPath()))
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// Explain adds to err that a process has ended, if one has.
func Explain(alive context.Context, err error) error {
	if err == nil || alive == nil || alive.Err() == nil {
		return err
	}
	if cause := context.Cause(alive); cause != context.Canceled {
		return fmt.Errorf("%w; %w", err, cause)
	}
	return err
}
