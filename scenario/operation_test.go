package scenario

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
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
