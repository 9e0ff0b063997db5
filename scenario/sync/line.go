package sync

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// manners of peers as record.DetailPeerManner encodes them.
var manners = map[string]float64{system.Honest: 0, system.Silent: 1, system.Stranger: 2}

// loadLines are the least times in which a fresh node can come to serve, of trials without
// faults. That of the links is the time of so many bytes of a chain over its peers' links and
// its own:
//
//	bytes / min(Σ up of the peers that have the chain, down of the node) + one round trip
func loadLines(in *scenario.Measured, bytes float64, m map[string]float64, put func(string, float64)) {
	if len(in.Cell.Sync.Faults) > 0 {
		return
	}
	if wire, rtt := towardsNode(in); bytes > 0 && !math.IsInf(wire, 1) && in.LoadDetail(scenario.LoadEmulated) > 0 {
		put("link_line", bytes*8/link.TCPPayloadRate(wire, in.Cell.Link.IPv6)+rtt)
		put("wire_line", wire/8*link.MTU/link.FullFrame)
	}
	scenario.PutLine(m, "line", max(m["link_line"], m["replay"]), "sync_time")
}

// towardsNode is the rate on the wire, in bit/s, at which a chain can come to a
// fresh node, and the round trip in seconds; +Inf: nothing is limited. Rates are corrected by
// what was measured before the trial, beside what was asked for: the cell's through a link
// as the cell says, those of speeds and trouble from one of these peers.
func towardsNode(in *scenario.Measured) (wire, rtt float64) {
	cell := in.Cell.Link
	rtt = 2 * cell.Delay.Seconds()
	ours, theirs := 1.0, 1.0
	if peer := in.Load.Links; len(peer) > 0 {
		theirs, rtt = nodes.Correction(peer[0], rtt)
	}
	if in.Link != nil {
		ours, rtt = nodes.Correction(*in.Link, 2*cell.Delay.Seconds())
	}
	peers, unlimited := 0.0, false
	manner := in.EachDetail(record.DetailPeerManner)
	for i, rate := range in.EachDetail(record.DetailPeerRate) {
		switch {
		case i < len(manner) && manner[i] != manners[system.Honest]:
		case rate <= 0:
			unlimited = true
		case rate == float64(cell.UpRate()):
			peers += rate * ours
		default:
			peers += rate * theirs
		}
	}
	wire = math.Inf(1)
	if !unlimited && peers > 0 {
		wire = peers
	}
	if down := float64(cell.DownRate()); down > 0 {
		wire = math.Min(wire, ours*down)
	}
	if cell.Regions != nil {
		rtt = 0 // each peer has its own, and the nearest may send everything
	}
	return wire, rtt
}
