package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// steady ends a trial that has shown what it can: the median time to store an
// object no longer changes from window to window.
type steady struct {
	within  float64
	windows int
	window  time.Duration

	begun  bool
	from   time.Duration // the window that runs began then
	before float64       // median of the last window; 0: none
	same   int           // windows in a row without a change
}

func newSteady(s experiment.Steady) *steady {
	return &steady{within: float64(s.Within), windows: s.Windows, window: s.Window.Std()}
}

func (*steady) Name() string { return "steady" }

func (c *steady) Met(p progressSoFar) (string, bool) {
	if p.State == nil {
		return "", false
	}
	at, now := p.State.At, p.State.PutP50
	if !c.begun {
		c.begun, c.from = true, at
	}
	if at-c.from < c.window {
		return "", false
	}
	c.from = at
	unchanged := now > 0 && c.before > 0 && math.Abs(now-c.before) <= c.within*c.before
	if c.same++; !unchanged {
		c.same = 0
	}
	c.before = now
	if c.same < c.windows {
		return "", false
	}
	return fmt.Sprintf("the median time to store an object, %.3g s, has changed by less than %.3g %% in each of the last %d windows of %s",
		now, 100*c.within, c.windows, c.window), true
}
