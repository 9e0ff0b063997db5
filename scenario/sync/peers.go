package sync

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
)

// peerPlan is what a peer of a trial is like.
type peerPlan struct {
	manner string
	rate   experiment.BitRate // at which it sends; 0: as the cell's link says
}

// planPeers draws what the peers of a trial are like, in their order, by the
// experiment's seed and the number of the trial's block alone: all cells of a block
// with as many peers, and the same words, see the same ones.
func planPeers(s *experiment.Sync, seed uint64, block int) ([]peerPlan, error) {
	peers := make([]peerPlan, s.Peers)
	rng := rand.New(rand.NewPCG(scenario.MixSeed(seed, "speeds", int64(block)), 1))
	for i, rate := range s.Speeds.Draw(s.Peers, rng.Float64) {
		peers[i].rate = rate
	}
	order := nodes.Shuffled(s.Peers, scenario.MixSeed(seed, "trouble", int64(block)))
	for _, t := range s.Trouble {
		n := t.Of(s.Peers)
		if n > len(order) {
			return nil, fmt.Errorf("sync.trouble: %q is about more than the %d peers that there are", s.Trouble, s.Peers)
		}
		for _, i := range order[:n] {
			peers[i].manner, peers[i].rate = t.Manner(), cmp.Or(t.Rate, peers[i].rate)
		}
		order = order[n:]
	}
	return peers, nil
}

// victimsOf chooses whom each fault strikes, by place: the fresh node is 0, its
// peers follow.
func victimsOf(faults []experiment.Fault, peers int, trial uint64) [][]int {
	all := make([][]int, len(faults))
	for i, f := range faults {
		if f.Who() == experiment.WhoNode {
			all[i] = []int{0}
			continue
		}
		places := make([]int, peers)
		for k := range places {
			places[k] = k + 1
		}
		all[i] = slices.Sorted(slices.Values(nodes.Draw(places, min(f.Of(peers), peers), scenario.MixSeed(trial, "victims", int64(i)))))
	}
	return all
}
