package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

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
