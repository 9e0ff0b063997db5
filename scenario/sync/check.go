package sync

import (
	"context"
	"maps"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
)

// peerPath is the way from a peer whose rate is its own to the fresh node.
type peerPath struct {
	block, place int
	rate         experiment.BitRate
	link         string // its key
}

// checkPeer measures the path of one of the peers whose rate is not the cell's:
// what the engine measures are the links as the cell says. Which one the block
// draws, the same for all cells that have the same peers. Like those it is measured
// once a block, and recorded with each trial.
func (t *trial) checkPeer(ctx context.Context) error {
	var own []int
	for place := range t.Links.Rates {
		if p := t.peers[place-1]; p.manner == system.Honest && p.rate != t.cell.Link.UpRate() {
			own = append(own, place)
		}
	}
	if len(own) == 0 {
		return nil
	}
	slices.Sort(own)
	place := nodes.Draw(own, 1, scenario.MixSeed(t.site.Seed, "check", int64(t.Sink.Number)))[0]
	path := peerPath{t.Sink.Number, place, t.peers[place-1].rate, t.cell.Link.Key()}
	check, done := t.checked[path]
	if !done {
		begun := t.Now()
		var err error
		if check, err = t.site.Network.Check(ctx, place, 0); err != nil && ctx.Err() == nil {
			// As the engine does: a starved moment of the machine can swallow a measurement.
			t.Event("note", "link measured again", err.Error(), begun, t.Now()-begun)
			check, err = t.site.Network.Check(ctx, place, 0)
		}
		if err != nil {
			return t.Failed("measure the link of "+t.names[place], err)
		}
		maps.DeleteFunc(t.checked, func(p peerPath, _ record.LinkCheck) bool { return p.block != path.block })
		t.checked[path] = check
	}
	t.checks = []record.LinkCheck{check}
	return nil
}
