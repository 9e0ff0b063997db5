package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// Fault is a fault of a trial with its victims.
type Fault struct {
	experiment.Fault
	Victims []*Node

	killed    []*Node // nodes that it has killed
	scheduled bool
	start     time.Duration // 0: it has not begun
	undone    time.Duration // when it was completely undone; 0: not, or not before the end of the load
}

// Victims draws the places of the victims of each fault from those of groups of nodes.
func Victims(faults []experiment.Fault, trial uint64, groups map[string][]int) (all [][]int) {
	for i, f := range faults {
		from := groups[f.Who()]
		victims := Draw(from, min(f.Of(len(from)), len(from)), scenario.MixSeed(trial, "victims", int64(i)))
		all = append(all, slices.Sorted(slices.Values(victims)))
	}
	return all
}

// AddFaults adds faults with the places of their victims.
func (t *Trial) AddFaults(faults []experiment.Fault, victims [][]int) {
	for i, f := range faults {
		t.Faults = append(t.Faults, &Fault{Fault: f, Victims: Pick(t.Nodes, victims[i])})
	}
}

// schedule lets faults begin at their time, and end: those that have a time at the load's start,
// the others when the load has reached their share of progress. A trial waits for the faults that
// it has scheduled. The caller holds the lock.
func (t *Trial) schedule() {
	for _, f := range t.Faults {
		if f.scheduled || !f.At.Timed && t.share() < float64(f.At.Share) {
			continue
		}
		f.scheduled = true
		t.pending++
		t.group.Go(func() {
			if !t.Until(t.Released + f.At.After.Std()) {
				return
			}
			began := t.Now()
			t.turn(f, true)
			if f.For > 0 && t.Until(began+f.For.Std()) {
				t.turn(f, false)
			}
			t.Mu.Lock()
			t.pending--
			t.Mu.Unlock()
			t.wake()
		})
	}
}

// afterUndoing is the time for stalled nodes to continue after a fault was undone, in units of
// limits.stall: one for noticing that the others are back, for which systems poll at their own
// intervals, and one for continuing.
const afterUndoing = 2

// turn begins or undoes a fault, and gives stalled nodes more time (patience) to continue. The
// recovery of a node that it had killed begins when the node runs again.
func (t *Trial) turn(f *Fault, on bool) {
	what, patience := "begins", t.stall
	if !on {
		what, patience = "ends", afterUndoing*t.stall
	}
	crash, at := f.Kind() == experiment.FaultCrash, t.Now()
	var err error
	switch {
	case !crash:
		err = t.Links.set(t.During, f, on)
	case on:
		err = t.crash(f)
	default:
		t.revive(f)
	}
	now := t.Now()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if on {
		f.start = at
	}
	over := t.During.Err() != nil
	if err != nil && !over {
		t.fail(t.Failed(f.String()+" "+what, err))
	}
	if err != nil || over && !on { // the load ended before the fault was undone
		return
	}
	if on {
		t.awaitUndoing(f)
	} else {
		f.undone = now
	}
	if !on && !crash {
		t.awaitRecovery(f, now, t.struck(f)...)
	}
	t.hope = max(t.hope, t.Now()+patience)
	t.Event("fault", string(f.Kind())+" "+what, f.String()+": "+strings.Join(NamesOf(f.Victims), ", "), at, now-at)
}

// crash kills the victims all at once, like a power failure of a rack. Nodes that are already
// down or have left are not affected.
func (t *Trial) crash(f *Fault) error {
	t.Mu.Lock()
	for _, n := range f.Victims {
		if n.Serving() {
			n.down, n.Stale, n.tasked = true, true, false
			n.starts++
			f.killed = append(f.killed, n)
		}
	}
	t.Mu.Unlock()
	var group errgroup.Group
	for _, n := range f.killed {
		group.Go(func() error {
			err := Within(t.During, t.Starting, func(ctx context.Context) error { return t.actions.Kill(ctx, n) })
			if err != nil {
				return fmt.Errorf("kill %s: %w", n.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	now := t.Now()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for _, n := range f.killed {
		if n.timed && f.For == 0 {
			n.lost(now, record.Cancelled, ClassCrashed)
		}
	}
	t.wake()
	return nil
}

// revive restarts the nodes that a fault has killed, a few at a time, and gives unfinished timed
// nodes their task again. A failure affects only the node itself.
func (t *Trial) revive(f *Fault) {
	_ = t.Each(t.During, f.killed, "start it again", t.Starting+t.deadline, func(ctx context.Context, n *Node) error {
		begun := t.Now()
		err := t.actions.Restart(ctx, n, f.WithoutData)
		if t.During.Err() != nil {
			return nil
		}
		now := t.Now()
		if err != nil {
			t.notBack(n, now, now-begun, err)
		} else if !t.back(n, f, now) || t.start(n) {
			t.Event("node", "started again", n.Name, now, t.Now()-begun)
		}
		return nil
	})
}

func (t *Trial) notBack(n *Node, now, took time.Duration, err error) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.Event("node", ClassAgain, n.Name+": "+scenario.ShortError(err), now, took)
	if n.timed {
		n.lost(now, record.Error, ClassAgain)
	} else {
		t.Note("%s was not started again: %s", n.Name, scenario.ShortError(err))
	}
	t.wake()
}

// back marks a node as running again, and reports whether it must be given its task.
func (t *Trial) back(n *Node, f *Fault, now time.Duration) (task bool) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	n.down, n.Stale = false, false
	t.watchProcesses(n)
	waited := t.struck(f) // all that needed this node
	if n.timed {
		waited = []*Node{n}
		n.again(f.WithoutData)
	}
	t.awaitRecovery(f, now, waited...)
	return n.Started > 0 && n.Ended == 0
}
