package nodes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
		victims := Draw(from, min(f.Count.Of(len(from)), len(from)), scenario.MixSeed(trial, "victims", int64(i)))
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
		err = t.setLinks(f, on)
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
	if err := t.each(t.During, -1, f.killed, "kill it", t.Starting, t.actions.Kill); err != nil {
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
			t.Mu.Lock()
			t.nodeFails(n, ClassAgain, err, now, now-begun)
			t.Mu.Unlock()
		} else if !t.back(n, f, now) || t.start(n) {
			t.Event("node", "started again", n.Name, now, t.Now()-begun)
		}
		return nil
	})
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

func (t *Trial) emulated() (bool, string) {
	if t.Site.Network == nil {
		return false, "the nodes share one network"
	}
	return t.Site.Network.Emulated()
}

// linkLimit limits a change of all links.
const linkLimit = time.Minute

// setLinks applies or reverts a fault that changes links.
func (t *Trial) setLinks(f *Fault, on bool) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.active = slices.DeleteFunc(t.active, func(g *Fault) bool { return g == f })
	if on {
		t.active = append(t.active, f)
	}
	return t.changeLinks(t.During)
}

// ApplyRates applies Rates to the links.
func (t *Trial) ApplyRates(ctx context.Context) error {
	if len(t.Rates) == 0 {
		return nil
	}
	if err := t.changeLinks(ctx); err != nil {
		return t.Failed("shape the links", err)
	}
	return nil
}

// changeLinks makes the links those of the cell, combined with Rates and with active faults. If two
// faults change the rate of a node, the later one wins. All nodes that are cut off at the same time,
// by whichever fault, are on one side together.
func (t *Trial) changeLinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	c := scenario.NetworkChange{Rates: maps.Clone(t.Rates)}
	for _, f := range t.active {
		for _, n := range f.Victims {
			if f.Kind() == experiment.FaultRate {
				c.Rates[n.Place] = scenario.Rates{Up: float64(f.Rate), Down: float64(f.Rate)}
			} else {
				c.Apart = append(c.Apart, n.Place)
			}
		}
	}
	slices.Sort(c.Apart)
	c.Apart = slices.Compact(c.Apart)
	return t.Site.Network.Change(ctx, c)
}

// traffic returns the traffic of the nodes' links, or nil if it is unknown.
func (t *Trial) traffic(ctx context.Context) []scenario.Traffic {
	if t.Site.Network == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	return t.Site.Network.Traffic(ctx)
}

// MeasuredAgainst returns the measured rate as a multiple of the configured one (1 if not measured),
// and the measured round trip (asked if not measured).
func MeasuredAgainst(c record.LinkCheck, asked float64) (factor, rtt float64) {
	factor, rtt = 1, asked
	if c.WantRate > 0 && c.Rate > 0 {
		factor = c.Rate / c.WantRate
	}
	if c.RTT > 0 {
		rtt = c.RTT
	}
	return factor, rtt
}

// recovery is the recovery of a timed node from a fault that will be undone.
type recovery struct {
	fault  *Fault
	node   *Node
	undone time.Duration // when the fault was undone for this node; 0: not yet
	beyond int64         // what the node had verified then
	after  time.Duration // from then until it had verified more; 0: it has not
}

// struck returns the timed nodes that a fault stops: nodes that it kills, and nodes that it
// separates from a source (a node that is not timed) by killing the source or by a cut between
// the two. A change of rate stops no node.
func (t *Trial) struck(f *Fault) (all []*Node) {
	hits := func(n *Node) bool {
		return slices.Contains(f.killed, n) || slices.ContainsFunc(f.killed, func(k *Node) bool { return !k.timed })
	}
	switch f.Kind() {
	case experiment.FaultRate:
		return nil
	case experiment.FaultCut:
		hits = func(n *Node) bool {
			return slices.ContainsFunc(t.Nodes, func(s *Node) bool {
				return !s.timed && slices.Contains(f.Victims, s) != slices.Contains(f.Victims, n)
			})
		}
	}
	for _, n := range t.Timed {
		if hits(n) {
			all = append(all, n)
		}
	}
	return all
}

// awaitUndoing notes the unfinished nodes that a fault has struck, if it will be undone. The
// caller holds the lock.
func (t *Trial) awaitUndoing(f *Fault) {
	if f.For == 0 {
		return
	}
	for _, n := range t.struck(f) {
		loses := f.WithoutData && slices.Contains(f.killed, n) && n.Outcome == record.OK
		known := slices.ContainsFunc(t.affected, func(r *recovery) bool { return r.node == n && r.fault == f })
		if n.Started > 0 && (n.Ended == 0 || loses) && !known && n.recovery == nil {
			n.recovery = &recovery{fault: f, node: n}
			t.affected = append(t.affected, n.recovery)
		}
	}
}

// awaitRecovery starts the clock of the nodes' recoveries, since the fault is undone for them.
// The caller holds the lock.
func (t *Trial) awaitRecovery(f *Fault, now time.Duration, of ...*Node) {
	t.awaitUndoing(f) // for nodes that were released meanwhile, too
	for _, n := range of {
		if r := n.recovery; r != nil && n.Ended == 0 && !n.down {
			r.undone, r.beyond = now, n.Verified
		}
	}
}

// recover ends the recovery of a node that has verified more than before. The caller holds the
// lock.
func (n *Node) recover(at time.Duration) {
	if r := n.recovery; r != nil && r.undone > 0 && at > r.undone && n.Verified > r.beyond {
		r.after, n.recovery = at-r.undone, nil
	}
}

// held reports whether a fault held up its node: the node was unfinished when the fault was
// undone, or failed before. A node that meanwhile got all from others was not held up, and one
// that another fault took away for good does not count.
func (r *recovery) held() bool {
	switch r.node.Outcome {
	case record.Cancelled:
		return r.after > 0
	case record.OK:
		return r.undone > 0
	}
	return true
}

// faultDetails returns the durations of faults that were undone, and the times that the nodes
// that they had held up took to continue.
func (t *Trial) faultDetails() (all []record.Detail) {
	for i, f := range t.Faults {
		fault := fmt.Sprintf("fault %d", i+1)
		if f.undone > 0 {
			all = append(all, record.Detail{Kind: record.DetailOutage, Name: fault,
				Value: (f.undone - f.start).Seconds()})
		}
		for _, r := range t.affected {
			if r.fault == f && r.held() {
				took := cmp.Or(r.after, -time.Second) // −1 s: it did not continue
				all = append(all, record.Detail{Kind: record.DetailRecovery, Name: fault + ", " + r.node.Name,
					Value: took.Seconds()})
			}
		}
	}
	return all
}
