package scenario

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// What a system does after its operation was cut off, to remove what is left, is no
// part of it; one that came through, however late, is not shortened.
func TestTidyingIsNoPartOfAnOperation(t *testing.T) {
	limits := experiment.Limits{}
	limits.Deadline, limits.Stall = experiment.Duration(10*time.Second), experiment.Duration(4*time.Second)
	for name, c := range map[string]struct {
		act  func(*watched) error
		want time.Duration
	}{
		"deadline": {func(w *watched) error { <-w.ctx.Done(); time.Sleep(time.Second); return context.Cause(w.ctx) }, 10 * time.Second},
		"stall": {func(w *watched) error {
			w.came(1)
			<-w.ctx.Done()
			time.Sleep(3 * time.Second)
			return context.Cause(w.ctx)
		}, 4 * time.Second},
		"failed": {func(*watched) error { time.Sleep(2 * time.Second); return errors.New("refused") }, 2 * time.Second},
		"late":   {func(*watched) error { time.Sleep(11 * time.Second); return nil }, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, begun := watch(t.Context(), limits), time.Now()
				err := c.act(w)
				took := time.Since(begun) - w.tidied(err)
				w.stop()
				if took != c.want {
					t.Errorf("took %v, want %v", took, c.want)
				}
			})
		})
	}
}
