package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
)

// trial is one running trial: a fresh node at place 0, and its peers at the following places.
type trial struct {
	*runner
	*nodes.Trial
	cell   experiment.Cell
	chain  system.Chain
	fresh  *nodes.Node
	peers  []peer
	store  scenario.StoreDir
	checks []record.LinkCheck
}

// Trial implements Runner.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, _ uint64, sink scenario.Sink) (scenario.Load, error) {
	t := r.trial(cell, sink)
	defer t.clean(ctx)
	if err := t.ready(ctx); err != nil {
		return scenario.Load{}, err
	}
	cpu, err := t.Run(ctx)
	return t.loaded(cpu), errors.Join(err, t.Record([]record.Op{t.op()}), ctx.Err())
}

// trial sets up a trial: its peers and faults.
func (r *runner) trial(cell experiment.Cell, sink scenario.Sink) *trial {
	s := cell.Sync
	rates := map[int]scenario.Rates{}
	t := &trial{runner: r, cell: cell, fresh: r.nodes[0], chain: r.chains[chainSpec(s, r.site.Seed)]}
	t.Trial = nodes.New(r.site, sink, cell.PollEvery(), rates, t)
	t.peers = planPeers(s, r.site.Seed, sink.Number)
	t.Add(r.nodes[:len(t.peers)+1]...)
	t.Time(t.fresh, 0)
	t.Goal, t.Bytes = t.chain.Height, t.chain.Bytes
	var places []int
	for i, p := range t.peers {
		places = append(places, i+1)
		if p.rate > 0 {
			rates[i+1] = scenario.Rates{Up: float64(p.rate)}
		}
	}
	t.AddFaults(s.Faults, nodes.Victims(s.Faults, scenario.MixSeed(r.site.Seed, "sync", int64(sink.Number)),
		map[string][]int{experiment.WhoPeers: places, experiment.WhoNode: {t.fresh.Place}}))
	return t
}

// ready prepares the trial for the start of the clock: the peers serve, the links are shaped, and
// there is an empty directory for the store.
func (t *trial) ready(ctx context.Context) error {
	if err := t.NeedLinks("a speed of peers (sync.speeds, sync.trouble)"); err != nil {
		return err
	}
	var err error
	if t.store, err = t.runner.store(ctx, t.chain, t.cell.Sync.Storage); err != nil {
		return err
	}
	if err := t.store.Files.MkdirAll(t.dir(), 0o755); err != nil {
		return err
	}
	if err := nodes.Within(ctx, t.Starting, chainNode(t.fresh).Halt); err != nil {
		return t.Failed("halt the node of an earlier trial", err)
	}
	if err := t.serve(ctx); err != nil {
		return err
	}
	if err := t.ApplyRates(ctx); err != nil {
		return err
	}
	return t.checkPeer(ctx)
}

func chainNode(n *nodes.Node) system.ChainNode { return n.System.(system.ChainNode) }

// serve makes the peers of the trial serve, a few at a time. Peers that already serve the same
// continue; the system decides whether a changed setting matters to them. Peers of earlier
// trials that are not needed now remain for later ones.
func (t *trial) serve(ctx context.Context) error {
	begun := t.Now()
	if err := t.Each(ctx, t.Nodes[1:], "serve the chain", t.Starting, t.serveOne); err != nil {
		return err
	}
	t.Event("phase", "peers serve", fmt.Sprintf("%d blocks, peers: %d", t.chain.Height, len(t.peers)), begun,
		t.Now()-begun)
	return nil
}

// serveOne makes one peer serve, and queries its address.
func (t *trial) serveOne(ctx context.Context, n *nodes.Node) error {
	p := &t.peers[n.Place-1]
	if err := chainNode(n).Serve(ctx, system.ServeTask{Chain: t.chain, Manner: p.manner}); err != nil {
		return err
	}
	address, err := chainNode(n).Address(ctx)
	t.Mu.Lock()
	defer t.Mu.Unlock()
	p.address = address
	return err
}

// dir returns the directory of the store itself.
func (t *trial) dir() string { return filepath.Join(t.store.Path, "store") }

// Start implements Actions: it starts the fresh node.
func (t *trial) Start(ctx context.Context, n *nodes.Node) error {
	var from []string
	t.Mu.Lock()
	for _, p := range t.peers {
		from = append(from, p.address)
	}
	t.Mu.Unlock()
	return chainNode(n).Follow(ctx, system.FollowTask{Chain: t.chain, Dir: t.dir(), Peers: from,
		Settings: t.settingsOf(t.cell.Sync)})
}

// Poll implements Actions. The node is on a wrong chain if two answers in turn have another tip at
// the chain's height: one alone may combine the height and the tip of successive blocks.
func (t *trial) Poll(ctx context.Context, n *nodes.Node) (nodes.Answer, error) {
	f, err := n.System.(system.Follower).Following(ctx)
	if err != nil {
		return nodes.Answer{}, err
	}
	height := max(0, f.Height)
	a := nodes.Answer{All: height >= t.Goal && f.Tip == t.chain.Tip, Own: f}
	a.Mark = record.Mark{Verified: height, Written: max(-1, f.Indexed), Received: -1, Sent: -1,
		Peers: max(-1, f.Connected), Trouble: f.Trouble, Complete: a.All && (f.Indexed < 0 || f.Indexed >= t.Goal)}
	if !a.All && height >= t.Goal {
		t.Mu.Lock()
		last, _ := n.Last.Own.(system.Following)
		t.Mu.Unlock()
		if last.Height >= t.Goal && last.Tip != t.chain.Tip {
			a.Wrong = fmt.Sprintf("at height %d its tip is %q, that of the chain is %q at %d", f.Height, f.Tip, t.chain.Tip,
				t.chain.Height)
		}
	}
	return a, nil
}

// Kill implements Actions.
func (t *trial) Kill(ctx context.Context, n *nodes.Node) error { return chainNode(n).Kill(ctx) }

// Restart implements Actions. Peers serve again with their data; the fresh node is started later,
// with its task.
func (t *trial) Restart(ctx context.Context, n *nodes.Node, drop bool) error {
	switch {
	case n != t.fresh:
		return nodes.Within(ctx, t.Starting, func(ctx context.Context) error { return t.serveOne(ctx, n) })
	case drop:
		return errors.Join(t.store.Files.RemoveAll(t.dir()), t.store.Files.MkdirAll(t.dir(), 0o755))
	}
	return nil
}

// counters returns the last answer of the fresh node, whose counters begin at 0 with each of its
// starts. All are unknown if a fault has killed it. The caller holds the lock.
func (t *trial) counters() system.Following {
	if f, ok := t.fresh.Last.Own.(system.Following); ok && !t.fresh.Killed() {
		return f
	}
	return system.Following{Commits: -1, TimedOut: -1, Failed: -1}
}

// op returns the node's operation until it had the chain and all subscribers, such as indexes, had
// followed.
func (t *trial) op() record.Op {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	op := t.Op(t.fresh, record.OpServe)
	op.Length = t.chain.Bytes
	share := float64(min(t.fresh.Verified, t.chain.Height)) / float64(t.chain.Height)
	op.Bytes = int64(float64(t.chain.Bytes) * share)
	return op
}

// loaded returns the facts about the load. cpu is the CPU time of this process during the load.
func (t *trial) loaded(cpu float64) scenario.Load {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	load := t.Loaded(cpu, nodes.NamesOf(t.nodes))
	load.Links = t.checks
	load.Details = append(append(load.Details, t.peerDetails()...), t.followed()...)
	return load
}

// peerDetails returns the numbers of the peers in their order. The caller holds the lock.
func (t *trial) peerDetails() []record.Detail {
	shares := t.counters().Peers
	var delivered, rates, kinds []float64
	for _, p := range t.peers {
		blocks := 0.0
		at := slices.IndexFunc(shares, func(s system.PeerShare) bool { return s.Address == p.address })
		switch {
		case len(shares) == 0 || at >= 0 && shares[at].Blocks < 0: // the node did not report it
			blocks = math.NaN()
		case at >= 0:
			blocks = float64(shares[at].Blocks)
		}
		delivered, kinds = append(delivered, blocks), append(kinds, manners[p.manner])
		rates = append(rates, float64(cmp.Or(p.rate, t.cell.Link.UpRate())))
	}
	names := nodes.NamesOf(t.Nodes[1:])
	return slices.Concat(nodes.Details(record.DetailPeerBlocks, names, delivered),
		nodes.Details(record.DetailPeerRate, names, rates), nodes.Details(record.DetailPeerManner, names, kinds))
}

// followed returns the facts about the fresh node that its operation does not contain. The caller
// holds the lock.
func (t *trial) followed() (all []record.Detail) {
	n := t.fresh
	add := func(name string, v float64) {
		if v >= 0 { // unknown values are NaN or −1
			all = append(all, record.Detail{Kind: record.DetailFollower, Name: name, Value: v})
		}
	}
	add(followerChainBytes, float64(t.chain.Bytes))
	add(followerChain, float64(t.chain.Height))
	if n.All > 0 {
		add(followerChainTime, (n.All - n.Released).Seconds())
	}
	add(followerGap, n.Gap.Seconds())
	if n.Polled {
		add(followerOpening, float64(n.Opening))
		add(followerConnected, float64(n.MostPeers))
		add(followerCommits, float64(t.counters().Commits))
		add(followerTimedOut, float64(t.counters().TimedOut))
		add(followerFailed, float64(t.counters().Failed))
	}
	if replayed := t.replays[t.replayKey(t.cell.Sync)]; t.cell.Sync.Replay && replayed != nil {
		add(followerReplay, replayed.Seconds)
		add(followerReplayCPU, replayed.CPU)
	}
	return all
}

// clean reverts the trial's changes, even after a failure or if the user has cancelled the run:
// it halts the node and removes its store.
func (t *trial) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nodes.CleanLimit)
	defer cancel()
	if err := nodes.Within(ctx, t.Starting, chainNode(t.fresh).Halt); err != nil {
		t.Event("node", "not halted", t.fresh.Name+": "+scenario.ShortError(err), t.Now(), 0)
		_ = nodes.Within(ctx, t.Starting, chainNode(t.fresh).Kill) // if it hangs, the deployment's end will end it
	}
	if t.store.Remove == nil {
		return
	}
	if err := t.store.Remove(); err != nil {
		t.Event("error", "store not removed", t.store.Path+": "+scenario.ShortError(err), t.Now(), 0)
	}
}

// peer is a peer of a trial.
type peer struct {
	manner  string
	rate    experiment.BitRate // upload rate; 0: that of the cell's link
	address string             // once it serves; protected by Mu
}

// planPeers draws the properties of a trial's peers in their order. They depend only on the
// experiment's seed and the number of the trial's block, so that all cells of a block with the
// same number of peers, speeds and trouble have the same peers.
func planPeers(s *experiment.Sync, seed uint64, block int) []peer {
	peers := make([]peer, s.Peers)
	rng := rand.New(rand.NewPCG(scenario.MixSeed(seed, "speeds", int64(block)), 1))
	for i, rate := range s.Speeds.Draw(s.Peers, rng.Float64) {
		peers[i].rate = rate
	}
	order := nodes.Shuffled(s.Peers, scenario.MixSeed(seed, "trouble", int64(block)))
	for _, t := range s.Trouble {
		n := t.Of(s.Peers)
		for _, i := range order[:n] {
			peers[i].manner, peers[i].rate = t.Manner(), cmp.Or(t.Rate, peers[i].rate)
		}
		order = order[n:]
	}
	return peers
}

// checkPeer measures the path of one of the peers whose rate is not the cell's, since the engine
// measures only links of the cell. The choice depends on the block, and is the same for all cells
// with the same peers.
func (t *trial) checkPeer(ctx context.Context) error {
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(t.Rates)), func(place int) bool {
		p := t.peers[place-1]
		return p.manner != system.Honest || p.rate == t.cell.Link.UpRate()
	})
	if len(own) == 0 {
		return nil
	}
	place := nodes.Draw(own, 1, scenario.MixSeed(t.site.Seed, "check", int64(t.Sink.Number)))[0]
	check, err := t.site.Network.Check(ctx, place, 0)
	if err != nil && ctx.Err() == nil { // like the engine: a moment without CPU can spoil a measurement
		check, err = t.site.Network.Check(ctx, place, 0)
	}
	if err != nil {
		return t.Failed("measure the link of "+t.nodes[place].Name, err)
	}
	t.checks = []record.LinkCheck{check}
	return nil
}
