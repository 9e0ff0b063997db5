package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// StopAtEnd stops a cluster when the test is over, within half a minute. That it
// cannot be stopped is a failure of the test.
func StopAtEnd(t *testing.T, c system.Cluster) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}
