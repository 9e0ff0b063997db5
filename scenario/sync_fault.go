package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// syncFault is a fault of a trial, with the peers that it strikes.
type syncFault struct {
	courseFault
	peers  []*syncPeer
	killed []*syncPeer // whom it has killed
}

// node reports whether it strikes the fresh node.
func (f *syncFault) node() bool { return slices.Contains(f.places, 0) }

// share is what the node has of the chain. The lock is the caller's.
func (t *syncTrial) share() float64 {
	return float64(t.fresh.height) / float64(max(1, t.chain.Height))
}

// reached begins faults whose share of the chain the node has. The lock is the
// caller's.
func (t *syncTrial) reached() {
	for _, f := range t.faults {
		t.come(&f.courseFault, t.share())
	}
}

// begin lets a fault happen.
func (t *syncTrial) begin(f *syncFault) {
	late := func(at time.Duration) string {
		return t.late(&f.courseFault, at, t.share(), "the chain", "the start")
	}
	t.strike(&f.courseFault, late, func() error { return t.crash(f) }, func() {})
}

// undo takes a fault back.
func (t *syncTrial) undo(f *syncFault) {
	t.takeBack(&f.courseFault, func() error { return t.revive(f) }, func(time.Duration) {})
}

// crash kills the fresh node, or peers, all at once. A node that is down already is
// none of the fault's.
func (t *syncTrial) crash(f *syncFault) error {
	t.mu.Lock()
	var nodes []system.Follower
	if n := &t.fresh; f.node() && n.ended == 0 && !n.down {
		n.down, n.told = true, 0
		n.life++
		t.forgetLife()
		nodes = append(nodes, t.nodes[0])
	}
	for _, p := range f.peers {
		if !p.down && p.died == nil {
			p.down = true
			p.life++
			delete(t.serving, p.place)
			f.killed = append(f.killed, p)
			nodes = append(nodes, p.node)
		}
	}
	t.mu.Unlock()
	errs := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { errs <- within(t.load, t.starting, n.Kill) }()
	}
	var failed error
	for range nodes {
		if err := <-errs; err != nil && failed == nil {
			failed = err
		}
	}
	t.wake()
	return failed
}

// forgetLife keeps what the daemon that ends now has counted: the next one counts
// anew. The lock is the caller's.
func (t *syncTrial) forgetLife() {
	n := &t.fresh
	n.commits = addTold(n.commits, n.last.Commits)
	n.timedOut, n.failed = addTold(n.timedOut, n.last.TimedOut), addTold(n.failed, n.last.Failed)
	n.shares = t.sharesNow()
	n.last.Commits, n.last.TimedOut, n.last.Failed, n.last.Peers = 0, 0, 0, nil
}

// revive starts what a fault has killed again: peers on the chain that they had,
// the fresh node on its store, or on an empty one. What becomes of the node then is
// the outcome of the trial.
func (t *syncTrial) revive(f *syncFault) error {
	begun := t.now()
	for i, err := range eachNode(t.load, f.killed, t.starting, t.serveOne) {
		p := f.killed[i]
		now := t.now()
		t.mu.Lock()
		switch {
		case t.load.Err() != nil:
		case err != nil:
			t.event("node", "not started again", p.name+": "+shorten(err), now, now-begun)
			t.notes = append(t.notes, fmt.Sprintf("the peer %s was not started again: %s", p.name, shorten(err)))
		default:
			p.down = false
			t.serving[p.place] = t.chain.ID
			t.mourn(p.node, p.place, p)
			t.event("node", "started again", p.name, now, now-begun)
		}
		t.mu.Unlock()
	}
	if !f.node() || t.load.Err() != nil {
		return nil
	}
	t.mu.Lock()
	n := &t.fresh
	restart := n.down && n.ended == 0
	if restart {
		n.last.Height, n.last.Indexed = 0, -1
		n.chain, n.serve, n.astray = 0, 0, 0
		if f.WithoutData {
			n.percent, n.height = 0, 0
		}
	}
	t.mu.Unlock()
	if !restart {
		return nil
	}
	if f.WithoutData {
		if err := empty(t.store.Path); err != nil {
			return err
		}
	}
	if t.follow() {
		now := t.now()
		t.event("node", "started again", t.names[0], now, now-begun)
	}
	return nil
}

// cutOff reports whether a fault that is under way has taken the node away from all
// of its peers. The lock is the caller's.
func (t *syncTrial) cutOff() bool {
	apart := t.links.apart()
	if !slices.Contains(apart, 0) {
		return false
	}
	return !slices.ContainsFunc(t.peers, func(p *syncPeer) bool { return slices.Contains(apart, p.place) && !p.down && p.died == nil })
}

// refused notes that the node could not be started. The lock is the
// caller's.
func (t *syncTrial) refused(err error, begun, now time.Duration) {
	class := "not started"
	if t.fresh.life > 0 {
		class = classAgain
	}
	if damaged(err, t.store.Path) {
		class = classDamaged
	}
	t.event("node", class, t.names[0]+": "+shorten(err), now, now-begun)
	t.fresh.end(now, record.Error, class)
	t.wake()
}

// lastResort is what keeping a store may take.
const lastResort = time.Minute

// keptStores is how many stores of a class a session keeps: a node that dies in
// every trial would fill the disk.
const keptStores = 3

// keep takes the store away before it is removed, of a node that did not start on
// it, or that ended by itself: damage that opening a store does not see ends the
// process when it comes to be read.
func (t *syncTrial) keep(ctx context.Context) {
	class := t.fresh.class
	if class != classDamaged && class != classDied && class != classAgain {
		return
	}
	if t.keeps[class] == keptStores {
		t.event("note", "store not kept", fmt.Sprintf("%d stores of the class %q are kept already", keptStores, class), t.now(), 0)
		return
	}
	t.keeps[class]++
	ctx, cancel := context.WithTimeout(ctx, lastResort)
	defer cancel()
	begun := t.now()
	to, err := keepStore(ctx, t.store, t.syncRunner.keepIn(), fmt.Sprintf("%s-%s", t.cell.ID, record.BlockName(t.sink.Number)))
	now := t.now()
	if err != nil {
		what := "it is removed: memory is given back"
		if t.kept = t.s.Storage != "ram"; t.kept {
			what = "it stays there"
		}
		t.event("error", "store not kept", fmt.Sprintf("%s, %s: %s", t.store.Path, what, shorten(err)), now, now-begun)
		return
	}
	t.event("note", "store kept", fmt.Sprintf("the store of %s is in %s", t.names[0], to), now, now-begun)
}
