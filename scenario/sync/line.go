package sync

import (
	"math"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Manners of peers as record.DetailPeerManner encodes them.
const (
	mannerHonest = iota
	mannerSilent
	mannerStranger
)

// mannerNumber is the manner of a peer as a detail.
func mannerNumber(manner string) float64 {
	switch manner {
	case system.Silent:
		return mannerSilent
	case system.Stranger:
		return mannerStranger
	}
	return mannerHonest
}

// linkLine is the least time, in seconds, in which so many bytes of a chain can
// reach a fresh node over its peers' links and its own:
//
//	bytes / min(Σ up of the peers that have the chain, down of the node) + one round trip
//
// Rates are payload, and corrected by what was measured before the trial, beside
// what was asked for: those that are the cell's by check, through a link as the cell
// says (nil: not measured), those of speeds and trouble by what was measured from
// one of these peers. 0: nothing is limited, or the links are not emulated.
func linkLine(cell experiment.Cell, details []record.Detail, bytes float64, check *record.LinkCheck, peer []record.LinkCheck) float64 {
	wire, rtt := towardsNode(cell, details, check, peer)
	if math.IsInf(wire, 1) || bytes <= 0 {
		return 0
	}
	return bytes*8/link.TCPPayloadRate(wire, cell.Link.IPv6) + rtt
}

// packetRate is the most, in bytes of IP packets per second, that can come to a
// fresh node; 0: nothing is limited.
func packetRate(cell experiment.Cell, details []record.Detail, check *record.LinkCheck, peer []record.LinkCheck) float64 {
	wire, _ := towardsNode(cell, details, check, peer)
	if math.IsInf(wire, 1) {
		return 0
	}
	return wire / 8 * link.MTU / link.FullFrame
}

// towardsNode is the rate on the wire, in bit/s, at which a chain can come to a
// fresh node, and the round trip in seconds; +Inf: nothing is limited.
func towardsNode(cell experiment.Cell, details []record.Detail, check *record.LinkCheck, peer []record.LinkCheck) (wire, rtt float64) {
	rtt = 2 * cell.Link.Delay.Seconds()
	ours, theirs := 1.0, 1.0
	if check != nil {
		ours, rtt = nodes.Correction(*check, rtt)
	}
	if len(peer) > 0 {
		of := rtt
		if theirs, of = nodes.Correction(peer[0], rtt); check == nil {
			rtt = of
		}
	}
	var rates, manners []float64
	for _, d := range details {
		switch d.Kind {
		case record.DetailPeerRate:
			rates = append(rates, d.Value)
		case record.DetailPeerManner:
			manners = append(manners, d.Value)
		}
	}
	peers, unlimited := 0.0, false
	for i, rate := range rates {
		switch {
		case i < len(manners) && manners[i] != mannerHonest:
		case rate <= 0:
			unlimited = true
		case rate == float64(cell.Link.UpRate()):
			peers += rate * ours
		default:
			peers += rate * theirs
		}
	}
	wire = math.Inf(1)
	if !unlimited && peers > 0 {
		wire = peers
	}
	if down := float64(cell.Link.DownRate()); down > 0 {
		wire = math.Min(wire, ours*down)
	}
	if cell.Link.Regions != nil {
		rtt = 0 // each peer has its own, and the nearest may send everything
	}
	return wire, rtt
}
