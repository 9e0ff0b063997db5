package scenario

import (
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// courseFault is a fault of a trial, with whom it strikes.
type courseFault struct {
	experiment.Fault
	places []int         // of the nodes
	whom   string        // their names
	part   chan struct{} // closed when the load has its share; of a fault by time: never
	begun  bool
	start  time.Duration
	undone time.Duration // all that it had done; 0: it is not, or not before the load was over
}

func newCourseFault(f experiment.Fault, places []int, names []string) courseFault {
	c := courseFault{Fault: f, places: places, part: make(chan struct{})}
	for i, place := range places {
		if i > 0 {
			c.whom += ", "
		}
		c.whom += names[place]
	}
	return c
}

// byShare reports whether it begins when the load has come to a share of all.
func (f *courseFault) byShare() bool { return !f.At.Timed }

// plan lets a fault happen at its moment, and be undone at its end. A trial waits
// for a fault that has a moment; one that comes with progress may never come. The
// lock is the caller's.
func (c *course) plan(f *courseFault, begin, undo func()) {
	moment := c.released + f.At.After.Std()
	if !f.byShare() {
		c.pending++
	}
	c.group.Go(func() {
		if f.byShare() {
			select {
			case <-f.part:
			case <-c.load.Done():
				return
			}
		} else if !c.until(moment) {
			return
		}
		began := c.now()
		begin()
		if f.For > 0 && c.until(began+f.For.Std()) {
			undo()
		}
		c.mu.Lock()
		c.pending--
		c.mu.Unlock()
		c.wake()
	})
}

// come lets a fault begin whose share the load has. The lock is the caller's.
func (c *course) come(f *courseFault, share float64) {
	if f.byShare() && !f.begun && share >= float64(f.At.Share) {
		f.begun = true
		c.pending++
		close(f.part)
	}
}

// strike lets a fault happen: crash does it where it is one, links change
// otherwise. late says, with the lock, how far from its moment that is; struck
// follows with the lock when it went well.
func (c *course) strike(f *courseFault, late func(at time.Duration) string, crash func() error, struck func()) {
	c.mu.Lock()
	at := c.now()
	if text := late(at); text != "" {
		c.notes = append(c.notes, text)
	}
	c.mu.Unlock()
	var err error
	if f.Kind() == experiment.FaultCrash {
		err = crash()
	} else {
		err = c.links.begin(c.load, f)
	}
	took := c.now() - at
	c.mu.Lock()
	defer c.mu.Unlock()
	f.begun, f.start = true, at
	if err == nil {
		struck()
	}
	c.concluded(f, "begins", at, took, c.stall, err)
}

// takeBack undoes a fault: revive where it was a crash. undone follows with the
// lock when that went well, and the load goes on.
func (c *course) takeBack(f *courseFault, revive func() error, undone func(now time.Duration)) {
	at := c.now()
	var err error
	if f.Kind() == experiment.FaultCrash {
		err = revive()
	} else {
		err = c.links.end(c.load, f)
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.load.Err() != nil { // it came to its end without this
		return
	}
	if err == nil {
		undone(now)
		f.undone = now
	}
	c.concluded(f, "ends", at, now-at, afterUndoing*c.stall, err)
}

// late says by how much a fault comes later than it was due, when that is more than
// coarse: share is what the load has, and of what. The lock is the caller's.
func (c *course) late(f *courseFault, at time.Duration, share float64, of, since string) string {
	if f.byShare() {
		if share > float64(f.At.Share)+coarse {
			return fmt.Sprintf("the fault %q was due at %.3g %% of %s and came at %.3g %%: no answer in between", f.Fault, 100*float64(f.At.Share), of, 100*share)
		}
		return ""
	}
	if by := at - c.released - f.At.After.Std(); by > c.every && by.Seconds() > coarse*f.At.After.Seconds() {
		return fmt.Sprintf("the fault %q came %.3g s after %s, %.3g s late", f.Fault, (f.At.After.Std() + by).Seconds(), since, by.Seconds())
	}
	return ""
}

// coarse is the share from which on a trial says how inexact a moment is: of all
// that there is to get, or of the time.
const coarse = 0.1

// afterUndoing is how many times limits.stall nodes that have stalled are waited
// for when a fault was undone: once for noticing that the others are back, which
// systems ask for at intervals of their own, and once for going on.
const afterUndoing = 2

// concluded records the beginning or the end of a fault, and for how long those
// that have stalled may go on now. The lock is the caller's.
func (c *course) concluded(f *courseFault, what string, at, took, patience time.Duration, err error) {
	if err != nil {
		if c.load.Err() == nil {
			c.fail(c.failed(f.String()+" "+what, err))
		}
		return
	}
	c.hope = max(c.hope, c.now()+patience)
	c.event("fault", string(f.Kind())+" "+what, f.String()+": "+f.whom, at, took)
}

// unhappened notes what the load was over before: a fault that never began, as it
// had a share of something at most, or that was not undone.
func (c *course) unhappened(f *courseFault, had, since string) {
	switch {
	case !f.begun:
		c.notes = append(c.notes, fmt.Sprintf("the fault %q never came: %s when the load was over, %.3g s after %s", f.Fault, had, (c.ended-c.released).Seconds(), since))
	case f.For > 0 && f.undone == 0:
		c.notes = append(c.notes, fmt.Sprintf("the fault %q was not undone before the load was over, %.3g s after %s", f.Fault, (c.ended-c.released).Seconds(), since))
	}
}
