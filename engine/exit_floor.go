package engine

import (
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

// floor ends a trial that has become too slow: fewer bytes in a whole window
// than asked for. Bytes are those of the storage servers, redundancy included,
// where the system reports them, by the moments of those polls, else
// file bytes; none at all is less than any.
type floor struct {
	bytes    int64
	window   time.Duration
	absolute bool      // what the points count
	points   []floored // of the last window, ascending, about floorPoints of them
}

// floored is a point of the sliding window.
type floored struct {
	at    time.Duration
	bytes int64
}

// floorPoints bounds the memory: the window slides in steps of that part of it.
const floorPoints = 100

func newFloor(f experiment.Floor) *floor {
	return &floor{bytes: int64(f.Bytes), window: f.Window.Std()}
}

func (c *floor) met(p progressSoFar) (string, bool) {
	s := p.State
	if s == nil {
		return "", false
	}
	// What pauses on purpose, or has nothing left to send, need not hurry.
	if s.Idle || s.Objects > 0 && s.Ended() >= s.Objects {
		c.points = c.points[:0]
		return "", false
	}
	now := floored{s.At, s.Bytes}
	reported := s.Absolute >= 0 && s.AbsoluteAt >= 0
	if reported { // as of that poll: until the next one nothing is known
		now = floored{s.AbsoluteAt, s.Absolute}
	}
	if reported != c.absolute || len(c.points) > 0 && now.at < c.points[len(c.points)-1].at {
		c.absolute, c.points = reported, c.points[:0]
	}
	if n := len(c.points); n == 0 || now.at-c.points[n-1].at >= c.window/floorPoints {
		c.points = append(c.points, now)
	}
	// The oldest that is kept is the youngest of those a window ago.
	for len(c.points) > 1 && c.points[1].at <= now.at-c.window {
		c.points = append(c.points[:0], c.points[1:]...)
	}
	first := c.points[0]
	if now.at-first.at < c.window {
		return "", false
	}
	moved := now.bytes - first.bytes
	if moved >= c.bytes {
		return "", false
	}
	over := (now.at - first.at).Round(time.Second) // with polls that are rarer it is more than the window
	return fmt.Sprintf("%d bytes were stored in the last %s, the floor is %d in %s", moved,
		words.Duration(max(over, c.window)), c.bytes, words.Duration(c.window)), true
}
