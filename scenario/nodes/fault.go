package nodes

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// Fault is a fault of a trial, with whom it strikes.
type Fault struct {
	experiment.Fault
	Victims []*Node

	killed []*Node       // whom it has killed
	part   chan struct{} // closed when the load has its share; of a fault by time: never
	begun  bool
	start  time.Duration
	undone time.Duration // all that it had done; 0: it is not, or not before the load was over
}

// Victims draws whom each fault strikes, by place, from the groups of nodes.
func Victims(faults []experiment.Fault, trial uint64, groups map[string][]int) (all [][]int) {
	for i, f := range faults {
		from := groups[f.Who()]
		all = append(all, Draw(from, min(f.Of(len(from)), len(from)), scenario.MixSeed(trial, "victims", int64(i))))
	}
	return all
}

// AddFault lets a fault strike nodes, by place.
func (t *Trial) AddFault(f experiment.Fault, places []int) {
	all := &Fault{Fault: f, part: make(chan struct{})}
	for _, n := range t.Nodes {
		for _, place := range places {
			if n.Place == place {
				all.Victims = append(all.Victims, n)
			}
		}
	}
	t.Faults = append(t.Faults, all)
}

// byShare reports whether it begins when the load has come to a share of all.
func (f *Fault) byShare() bool { return !f.At.Timed }

// plan lets a fault happen at its moment, and be undone at its end. A trial waits
// for a fault that has a moment; one that comes with progress may never come. With the
// lock.
func (t *Trial) plan(f *Fault) {
	moment := t.Released + f.At.After.Std()
	if !f.byShare() {
		t.pending++
	}
	t.group.Go(func() {
		if f.byShare() {
			select {
			case <-f.part:
			case <-t.Load.Done():
				return
			}
		} else if !t.Until(moment) {
			return
		}
		began := t.Now()
		t.begin(f)
		if f.For > 0 && t.Until(began+f.For.Std()) {
			t.undo(f)
		}
		t.Mu.Lock()
		t.pending--
		t.Mu.Unlock()
		t.wake()
	})
}

// reached begins faults whose share the load has. With the lock.
func (t *Trial) reached() {
	for _, f := range t.Faults {
		if f.byShare() && !f.begun && t.share() >= float64(f.At.Share) {
			f.begun = true
			t.pending++
			close(f.part)
		}
	}
}

// begin lets a fault happen.
func (t *Trial) begin(f *Fault) {
	t.Mu.Lock()
	at := t.Now()
	t.noteLate(f, at)
	t.Mu.Unlock()
	var err error
	if f.Kind() == experiment.FaultCrash {
		err = t.crash(f)
	} else {
		err = t.Links.begin(t.Load, f)
	}
	took := t.Now() - at
	t.Mu.Lock()
	defer t.Mu.Unlock()
	f.begun, f.start = true, at
	if err == nil {
		t.awaitUndoing(f)
	}
	t.concluded(f, "begins", at, took, t.stall, err)
}

// undo takes a fault back. Those that it had killed recover each from when they run
// again.
func (t *Trial) undo(f *Fault) {
	at := t.Now()
	var err error
	if f.Kind() == experiment.FaultCrash {
		t.revive(f)
	} else {
		err = t.Links.end(t.Load, f)
	}
	now := t.Now()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if t.Load.Err() != nil { // it came to its end without this
		return
	}
	if err == nil {
		if f.Kind() != experiment.FaultCrash {
			t.awaitUndoing(f) // of those that came meanwhile, too
			t.awaitRecovery(now, t.struck(f)...)
		}
		f.undone = now
	}
	t.concluded(f, "ends", at, now-at, afterUndoing*t.stall, err)
}

// coarse is the share from which on a trial says how inexact a moment is: of all
// that there is to get, or of the time.
const coarse = 0.1

// noteLate notes by how much a fault comes later than it was due, when that is more than
// coarse. With the lock.
func (t *Trial) noteLate(f *Fault, at time.Duration) {
	share, by := t.share(), at-t.Released-f.At.After.Std()
	switch {
	case f.byShare() && share > float64(f.At.Share)+coarse:
		t.Note("the fault %q was due at %.3g %% and came at %.3g %%: no answer in between", f.Fault,
			100*float64(f.At.Share),
			100*share)
	case !f.byShare() && by > t.every && by.Seconds() > coarse*f.At.After.Seconds():
		t.Note("the fault %q came %.3g s after the start, %.3g s late", f.Fault, (f.At.After.Std() + by).Seconds(),
			by.Seconds())
	}
}

// afterUndoing is how many times limits.stall nodes that have stalled are waited
// for when a fault was undone: once for noticing that the others are back, which
// systems ask for at intervals of their own, and once for going on.
const afterUndoing = 2

// concluded records the beginning or the end of a fault, and for how long those
// that have stalled may go on now. With the lock.
func (t *Trial) concluded(f *Fault, what string, at, took, patience time.Duration, err error) {
	if err != nil {
		if t.Load.Err() == nil {
			t.fail(t.Failed(f.String()+" "+what, err))
		}
		return
	}
	t.hope = max(t.hope, t.Now()+patience)
	t.Event("fault", string(f.Kind())+" "+what, f.String()+": "+Names(f.Victims), at, took)
}

// crash kills nodes, all at once: that is what a rack without power looks like. One that
// is down already, or has left, is none of the fault's.
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
			if err := Within(t.Load, t.Starting, func(ctx context.Context) error {
				return t.actions.Kill(ctx,
					n)
			}); err != nil {
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

// revive starts the nodes that a fault has killed again, a few at a time; those that are
// timed and have not got all get their task again. What goes wrong with one is its own
// affair.
func (t *Trial) revive(f *Fault) {
	_ = t.Each(t.Load, f.killed, "start it again", t.Starting+t.deadline, func(ctx context.Context, n *Node) error {
		begun := t.Now()
		err := t.actions.Restart(ctx, n, f.WithoutData)
		if t.Load.Err() != nil {
			return nil
		}
		now := t.Now()
		t.Mu.Lock()
		if err != nil {
			t.Event("node", ClassAgain, n.Name+": "+scenario.ShortError(err), now, now-begun)
			if n.timed {
				n.lost(now, record.Error, ClassAgain)
			} else {
				t.Note("%s was not started again: %s", n.Name, scenario.ShortError(err))
			}
			t.wake()
			t.Mu.Unlock()
			return nil
		}
		n.down, n.Stale = false, false
		t.watchProcesses(n)
		if n.timed {
			n.again(f.WithoutData, t.Lasting)
		}
		task := n.Started > 0 && n.Ended == 0
		t.awaitUndoing(f) // of those that came meanwhile, too
		if n.timed {
			t.awaitRecovery(now, n)
		} else { // all that lacked this one
			t.awaitRecovery(now, t.struck(f)...)
		}
		t.Mu.Unlock()
		if !task || t.start(n) {
			t.Event("node", "started again", n.Name, now, t.Now()-begun)
		}
		return nil
	})
}
