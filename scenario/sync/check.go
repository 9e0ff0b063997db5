package sync

import (
	"context"
	"maps"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
)

// checkPeer measures the path of one of the peers whose rate is not the cell's:
// what the engine measures are the links as the cell says. Which one the block
// draws, the same for all cells that have the same peers.
func (t *trial) checkPeer(ctx context.Context) error {
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(t.Links.Rates)), func(place int) bool {
		p := t.peers[place-1]
		return p.manner != system.Honest || p.rate == t.cell.Link.UpRate()
	})
	if len(own) == 0 {
		return nil
	}
	place := nodes.Draw(own, 1, scenario.MixSeed(t.site.Seed, "check", int64(t.Sink.Number)))[0]
	begun := t.Now()
	check, err := t.site.Network.Check(ctx, place, 0)
	if err != nil && ctx.Err() == nil {
		// As the engine does: a starved moment of the machine can swallow a measurement.
		t.Event("note", "link measured again", err.Error(), begun, t.Now()-begun)
		check, err = t.site.Network.Check(ctx, place, 0)
	}
	if err != nil {
		return t.Failed("measure the link of "+t.names[place], err)
	}
	t.checks = []record.LinkCheck{check}
	return nil
}
