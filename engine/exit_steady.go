package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// steady ends a trial that has shown what it can: the median time to store an
// object stays what it was in the first of several windows. Each is compared
// with that one: slow growth is no change from window to window.
type steady struct {
	within  float64
	windows int
	window  time.Duration

	begun bool
	from  time.Duration // the window that runs began then
	first float64       // median of the window that the others are compared with; 0: none
	same  int           // windows after it without a change
}

func newSteady(s experiment.Steady) *steady {
	return &steady{within: float64(s.Within), windows: s.Windows, window: s.Window.Std()}
}

func (c *steady) met(p progressSoFar) (string, bool) {
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
	unchanged := now > 0 && c.first > 0 && math.Abs(now-c.first) <= c.within*c.first
	if c.same++; !unchanged {
		c.same, c.first = 0, now
	}
	if c.same < c.windows {
		return "", false
	}
	return fmt.Sprintf("the median time to store an object, %.3g s, was within %.3g %% of %.3g s in each of the last "+
		"%d windows of %s",
		now, 100*c.within, c.first, c.windows, c.window), true
}
