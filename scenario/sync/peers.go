package sync

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
)

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
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(t.Links.Rates)), func(place int) bool {
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
