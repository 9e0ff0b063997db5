package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// syncTrial is one trial under way: a fresh node, at place 0, and its peers, at the
// places that follow.
type syncTrial struct {
	*syncRunner
	*course
	cell     experiment.Cell
	s        *experiment.Sync
	chain    system.Chain // zero: attached
	replayed *system.Replayed
	settings system.Options
	peers    []*syncPeer
	faults   []*syncFault
	store    StoreDir
	kept     bool // the store stays where it is, to be looked at
	checks   []record.LinkCheck

	fresh freshNode // under the lock of the course
}

// syncPeer is a peer of a trial.
type syncPeer struct {
	peerPlan
	place   int
	name    string
	node    system.Follower
	address string

	down bool  // killed on purpose, and not serving again
	died error // its daemon ended by itself
	life int   // starts of its daemon that this trial knows of
}

// Trial implements Runner.
func (r *syncRunner) Trial(ctx context.Context, cell experiment.Cell, _ uint64, sink Sink) (Load, error) {
	t, err := r.trial(cell, sink)
	if err != nil {
		return Load{}, err
	}
	defer t.clean(ctx)
	if err := t.ready(ctx); err != nil {
		return Load{}, err
	}
	cpu, err := t.timed(ctx, t.sync)
	t.conclude(err == nil)
	return t.loaded(cpu), errors.Join(err, t.record(), ctx.Err())
}

// trial lays out a trial: what its peers are like, and what is to go wrong.
func (r *syncRunner) trial(cell experiment.Cell, sink Sink) (*syncTrial, error) {
	s := cell.Sync
	fail := func(err error) (*syncTrial, error) { return nil, fmt.Errorf("%s: %w", r.site.Use.Name, err) }
	rates := map[int]Rates{}
	t := &syncTrial{syncRunner: r, course: newCourse(r.site, sink, cell.PollEvery(), rates), cell: cell, s: s}
	if r.attached() {
		return t, nil
	}
	if 1+s.Peers > len(r.nodes) || s.Peers < 1 {
		return fail(fmt.Errorf("a fresh node with %d peers, and %d nodes are there", s.Peers, len(r.nodes)))
	}
	var there bool
	if t.chain, there = r.chains[chainSpec(s, r.site.Seed)]; !there {
		return fail(fmt.Errorf("the chain of cell %s was not prepared", cell.ID))
	}
	if s.Replay {
		t.replayed = r.replays[r.replayKey(s)]
	}
	t.settings = r.settingsOf(s)
	plan, err := planPeers(s, r.site.Seed, sink.Number)
	if err != nil {
		return fail(err)
	}
	for i, p := range plan {
		place := i + 1
		t.peers = append(t.peers, &syncPeer{peerPlan: p, place: place, name: r.names[place], node: r.nodes[place]})
		if p.rate > 0 {
			rates[place] = Rates{Up: float64(p.rate)}
		}
	}
	for i, places := range victimsOf(s.Faults, s.Peers, mix(r.site.Seed, "sync", int64(sink.Number))) {
		f := &syncFault{courseFault: newCourseFault(s.Faults[i], places, r.names)}
		for _, place := range places {
			if place > 0 {
				f.peers = append(f.peers, t.peers[place-1])
			}
		}
		t.faults = append(t.faults, f)
	}
	return t, nil
}

// ready brings everything to where the clock can start: the peers serve, the links
// are what they are to be, and there is an empty directory for the store.
func (t *syncTrial) ready(ctx context.Context) error {
	if t.attached() {
		return nil
	}
	slow := ""
	if len(t.links.rates) > 0 {
		slow = "a speed of peers (sync.speeds, sync.trouble)"
	}
	faults := make([]experiment.Fault, len(t.faults))
	for i, f := range t.faults {
		faults[i] = f.Fault
	}
	if err := t.needsLinks(slow, faults); err != nil {
		return err
	}
	var err error
	if t.store, err = t.syncRunner.store(ctx, t.chain, t.s.Storage); err != nil {
		return err
	}
	if err := within(ctx, t.starting, t.nodes[0].Halt); err != nil {
		return t.failed("halt the node of an earlier trial", err)
	}
	if err := t.serve(ctx); err != nil {
		return err
	}
	if err := t.links.apply(ctx); err != nil {
		return t.failed("shape the links", err)
	}
	return t.checkPeer(ctx)
}

// serve makes the peers of the trial serve, a few at a time. Those that serve the
// same already go on; whether a setting matters to them the system knows. Others,
// of earlier trials, that serve another chain are halted: they would take memory
// for nothing; those that serve this one wait for trials to come.
func (t *syncTrial) serve(ctx context.Context) error {
	begun := t.now()
	var idle []int
	for place, chain := range t.serving {
		if place > len(t.peers) && chain != t.chain.ID {
			idle = append(idle, place)
			delete(t.serving, place)
		}
	}
	slices.Sort(idle)
	halted := eachNode(ctx, idle, t.starting, func(ctx context.Context, place int) error { return t.nodes[place].Halt(ctx) })
	if err := firstOf(halted); err != nil {
		return t.failed("halt a peer that is not needed", err)
	}
	for i, err := range eachNode(ctx, t.peers, t.starting, t.serveOne) {
		if err != nil {
			delete(t.serving, t.peers[i].place)
			return t.failed(t.peers[i].name+": serve the chain", err)
		}
	}
	for _, p := range t.peers {
		t.serving[p.place] = t.chain.ID
	}
	t.event("phase", "peers serve", fmt.Sprintf("%d blocks, peers: %d", t.chain.Height, len(t.peers)), begun, t.now()-begun)
	return nil
}

// serveOne makes one peer serve, and learns its address.
func (t *syncTrial) serveOne(ctx context.Context, p *syncPeer) error {
	err := p.node.Serve(ctx, system.ServeTask{Chain: t.chain, Manner: p.manner, Settings: t.settings})
	if err != nil {
		return err
	}
	address, err := p.node.Address(ctx)
	if err != nil {
		return fmt.Errorf("its address: %w", err)
	}
	if p.address != "" && address != p.address {
		return fmt.Errorf("it serves at %s now, and did at %s before: the fresh node cannot find it: %w", address, p.address, system.ErrAnswer)
	}
	p.address = address
	return nil
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sync starts the clock and the node, and returns when it is decided what becomes
// of it.
func (t *syncTrial) sync(ctx context.Context) error {
	load, cancel := context.WithCancelCause(ctx)
	t.load = load
	release := func() {
		t.fresh.progress, t.fresh.asked = t.released, t.released
		for _, p := range t.peers {
			t.mourn(p.node, p.place, p)
		}
		for _, f := range t.faults {
			t.plan(&f.courseFault, func() { t.begin(f) }, func() { t.undo(f) })
		}
		t.reached()
		t.group.Go(func() {
			if t.attached() || t.follow() {
				t.polls(t.released+t.every, t.ask)
			}
		})
	}
	return t.run(cancel, release, t.judge, func() (done, bytes int64) {
		if t.fresh.ended > 0 {
			done = 1
		}
		return done, t.bytes(t.fresh.height)
	})
}

// follow starts the node, and says whether it runs.
func (t *syncTrial) follow() bool {
	var from []string
	for _, p := range t.peers {
		from = append(from, p.address)
	}
	t.mu.Lock()
	life := t.fresh.life
	t.mu.Unlock()
	begun := t.now()
	err := within(t.load, t.starting, func(ctx context.Context) error {
		return t.nodes[0].Follow(ctx, system.FollowTask{Chain: t.chain, Dir: t.store.Path, Peers: from, Settings: t.settings})
	})
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.fresh
	switch {
	case n.life != life: // it was killed meanwhile, and what came of this is void
		return true
	case err == nil:
		n.down, n.told, n.asked, n.progress = false, now, now, now
		n.stalled = false
		t.mourn(t.nodes[0], 0, nil)
		t.wake()
		return true
	case t.load.Err() != nil:
		return false
	}
	t.refused(err, begun, now)
	return false
}

// mourn notes it when a node's daemon ends by itself. The lock is the caller's.
func (t *syncTrial) mourn(node system.Follower, place int, p *syncPeer) {
	life := t.lifeOf(p)
	for _, process := range node.Processes() {
		t.group.Go(func() {
			select {
			case <-t.load.Done():
				return
			case <-process.Done():
			}
			now := t.now()
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.lifeOf(p) != life {
				return
			}
			why := process.Err()
			if why == nil {
				why = errors.New("it ended")
			}
			t.event("node", classDied, t.names[place]+": "+shorten(why), now, 0)
			t.gone(place, p, why, now)
			t.wake()
		})
	}
}

// lifeOf counts the starts of a peer's daemon or, of nil, of the fresh node's.
func (t *syncTrial) lifeOf(p *syncPeer) int {
	if p == nil {
		return t.fresh.life
	}
	return p.life
}

// gone notes that a daemon is no more. The lock is the caller's.
func (t *syncTrial) gone(place int, p *syncPeer, why error, now time.Duration) {
	if p == nil {
		t.fresh.died = why
		t.fresh.end(now, record.Error, classDied)
		return
	}
	p.died = why
	delete(t.serving, place)
	t.notes = append(t.notes, fmt.Sprintf("the peer %s died %.3g s after the start", p.name, (now-t.released).Seconds()))
}

// clean takes back what the trial has done, whatever has become of it: the node is
// ended and its store removed, also when the user has cancelled the run.
func (t *syncTrial) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
	defer cancel()
	if t.attached() {
		return
	}
	if err := t.links.restore(ctx); err != nil {
		t.event("error", "links not restored", shorten(err), t.now(), 0)
	}
	if err := within(ctx, t.starting, t.nodes[0].Halt); err != nil {
		t.event("node", "not halted", t.names[0]+": "+shorten(err), t.now(), 0)
		if err := within(ctx, t.starting, t.nodes[0].Kill); err != nil {
			t.event("error", "node not killed", t.names[0]+": "+shorten(err), t.now(), 0)
		}
	}
	if t.store.Remove == nil {
		return
	}
	if t.keep(ctx); t.kept {
		return
	}
	if err := t.store.Remove(); err != nil {
		t.event("error", "store not removed", t.store.Path+": "+shorten(err), t.now(), 0)
	}
}
