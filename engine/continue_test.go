package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// A trial that goes on has the time that has passed since its epoch, and never
// less than it has recorded, whatever became of the wall clock.
func TestClockOfAContinuedTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name             string
			passed           time.Duration // by the wall clock, since the epoch
			last, want, back time.Duration
		}{
			{"a pause of an hour", 3 * time.Hour, 2 * time.Hour, 3 * time.Hour, 0},
			{"the clock was set back", 30 * time.Minute, 2 * time.Hour, 2 * time.Hour, 90 * time.Minute},
			{"before the epoch", -time.Hour, 5 * time.Second, 5 * time.Second, time.Hour + 5*time.Second},
			{"25 days", 25 * 24 * time.Hour, 24 * time.Hour, 25 * 24 * time.Hour, 0},
		} {
			now := time.Now()
			clock, back := continued(now.Add(-c.passed).UTC().Round(0), now, c.last)
			if got := clock.Now(); got != c.want || back != c.back {
				t.Errorf("%s: %v (back %v), want %v (back %v)", c.name, got, back, c.want, c.back)
			}
			time.Sleep(time.Minute)
			if got := clock.Now(); got != c.want+time.Minute {
				t.Errorf("%s: a minute later it is %v", c.name, got)
			}
		}
	})
}
