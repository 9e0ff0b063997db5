package agent

import (
	"testing"
	"testing/synctest"
	"time"
)

// An agent waits for its first call for an hour, for the next for as long as it was told, and for a
// day where it keeps what an engine recorded.
func TestAwait(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name   string
		called bool
		keep   string
		want   time.Duration
	}{
		{"never called", false, "", time.Hour},
		{"called", true, "", DefaultOrphaned},
		{"called, and keeps nothing", true, dir + "/missing", DefaultOrphaned},
		{"keeps a run", true, dir, 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s server
			if c.called {
				s.last.Store(time.Now().UnixNano())
			}
			begun := time.Now()
			if err := s.await(t.Context(), DefaultOrphaned, c.keep); err != nil || time.Since(begun) != c.want {
				t.Errorf("%s: it ended after %s: %v; want %s", c.name, time.Since(begun), err, c.want)
			}
		})
	}
}
