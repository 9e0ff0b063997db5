package report

import (
	"math/big"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// Unnamed is what a system spends in step with its data and enters under no
// purpose: siad's requests have a price of their own, and hosts are paid a little
// more than they ask (Sia's modules/renter/proto: BaseRPCPrice, hostPriceLeeway).
type Unnamed struct {
	Share  Num    `json:"share"` // of what storing and moving data cost
	Off    Num    `json:"off"`   // by this much of itself it is allowed to be off
	Amount Amount `json:"amount"`
}

// ofData are the purposes that such spending goes with.
var ofData = []string{"storage", "upload", "download"}

const (
	// By this much of itself it may be off, since hosts differ: the least, and what is
	// allowed while fewer than so many polls tell.
	leastDrift, mostDrift = 0.05, 0.5
	driftPolls            = 8
)

// unnamed takes out of the sum what is spent in step with data under no purpose:
// the median of its share in what was added from poll to poll, which a hole at
// one moment does not move. nil: there is none.
func (w *watch) unnamed(p experiment.Price) *Unnamed {
	a := &w.sum
	var shares []float64
	for i := range a.at {
		rest, sent := a.level[i], a.sent[i]
		if i > 0 {
			rest, sent = new(big.Int).Sub(rest, a.level[i-1]), sent-a.sent[i-1]
		}
		if sent > 0 {
			f, _ := new(big.Float).SetInt(rest).Float64()
			shares = append(shares, f/sent)
		}
	}
	share, off := middle(shares), mostDrift
	if !(share > 0) || share > findings.MostUnnamed {
		return nil
	}
	if len(shares) >= driftPolls {
		q := quartiles(shares)
		off = min(max(2*float64(q.Hi-q.Lo)/share, leastDrift), mostDrift)
	}
	at := len(a.at) - 1
	u := &Unnamed{Share: Num(share), Off: Num(off), Amount: w.amount(ratOf(a.level[at]), p)}
	for i, sent := range a.sent {
		part, _ := big.NewFloat(share * sent).Int(nil)
		a.level[i] = new(big.Int).Sub(a.level[i], part)
		a.drift = append(a.drift, off*share*sent)
	}
	return u
}
