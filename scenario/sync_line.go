package scenario

import (
	"math"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Manners of peers as record.DetailPeerManner tells them.
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
// Rates are payload. What was measured through the link before the trial, beside
// what was asked for, corrects them all by the same factor; check is nil where
// nothing was. 0: nothing is limited, or the links are not emulated.
func linkLine(cell experiment.Cell, details []record.Detail, bytes float64, check *record.LinkCheck) float64 {
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
		default:
			peers += rate
		}
	}
	wire := math.Inf(1)
	if !unlimited && peers > 0 {
		wire = peers
	}
	if cell.Link.Rate > 0 {
		wire = math.Min(wire, float64(cell.Link.Rate))
	}
	if math.IsInf(wire, 1) || bytes <= 0 {
		return 0
	}
	rate, rtt := link.TCPPayloadRate(wire, cell.Link.IPv6), 2*cell.Link.Delay.Seconds()
	if check != nil {
		if check.WantRate > 0 && check.Rate > 0 {
			rate *= check.Rate / check.WantRate
		}
		if check.RTT > 0 {
			rtt = check.RTT
		}
	}
	return bytes*8/rate + rtt
}
