package sync

import (
	"cmp"
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// manners maps the manners of peers to the values of record.DetailPeerManner.
var manners = map[string]float64{system.Honest: 0, system.Silent: 1, system.Stranger: 2}

// loadLines puts the least times in which a fresh node can come to serve, for trials without
// faults. The line of the links is the time for a chain's bytes over the links of the peers and
// of the node:
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

// towardsNode returns the rate on the wire, in bit/s, at which a fresh node can receive a chain
// (+Inf: unlimited), and the round trip in seconds. Rates are corrected by the ratio of measured
// and configured rates before the trial: the cell's rate by the check of a link of the cell,
// rates from speeds and trouble by the check of such a peer.
func towardsNode(in *scenario.Measured) (wire, rtt float64) {
	cell := in.Cell.Link
	rtt = 2 * cell.Delay.Seconds()
	ours, theirs := 1.0, 1.0
	if peer := in.Load.Links; len(peer) > 0 {
		theirs, rtt = nodes.MeasuredAgainst(peer[0], rtt)
	}
	if in.Link != nil {
		ours, rtt = nodes.MeasuredAgainst(*in.Link, 2*cell.Delay.Seconds())
	}
	peers := 0.0
	manner := in.EachDetail(record.DetailPeerManner)
	for i, rate := range in.EachDetail(record.DetailPeerRate) {
		switch {
		case i < len(manner) && manner[i] != manners[system.Honest]:
		case rate <= 0:
			peers = math.Inf(1)
		case rate == float64(cell.UpRate()):
			peers += rate * ours
		default:
			peers += rate * theirs
		}
	}
	wire = cmp.Or(peers, math.Inf(1))
	if down := float64(cell.DownRate()); down > 0 {
		wire = min(wire, ours*down)
	}
	if cell.Regions != nil {
		rtt = 0 // peers have different round trips, and the nearest may send everything
	}
	return wire, rtt
}
