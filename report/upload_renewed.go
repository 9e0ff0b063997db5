package report

import (
	"math/big"
	"strings"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// Contracts that are renewed, or end, leave a system's account of those in use,
// and take with them what they had used: fees, storage, upload. What they had not
// used goes back to the wallet. Neither is a loss.
//
// A system that tells of contracts that are over tells both. Of one that does
// not, it is known only that an amount by purpose fell, which no use of money
// does: at least so much left. It may have been more, since new contracts are
// booked at the same time, but never more than what was booked.

// booked reports whether a reading is money that was used for a purpose: it only
// grows, unless contracts leave the account.
func booked(name string) bool { return strings.HasPrefix(name, system.ReadSpentPrefix) }

// fold adds what contracts that are over had used to the account of those in use.
func (w *watch) fold(readings []record.Reading) []record.Reading {
	all, ended := collect.WithEnded(readings)
	w.ended = w.ended || ended
	return all
}

// leave finds what left the account by purpose, and did not come back.
func (w *watch) leave() {
	for name, drops := range w.drops {
		for _, f := range falls(w.values[name]) {
			if by := drops[f.to]; by != nil {
				if w.gone[name] == nil {
					w.gone[name] = new(big.Int)
				}
				w.gone[name].Add(w.gone[name], by)
			}
		}
	}
}

// left is how much of the money that was used left the account between two
// polls, in the unit of readings: at least and at most; 0: nothing was seen to
// leave.
func (w *watch) left(from, to int) (least, most float64) {
	for name := range w.drops {
		v := w.values[name]
		was, _ := latestAt(v, from)
		is, _ := latestAt(v, min(to+1, len(v)-1))
		if !(was > 0) {
			continue
		}
		most += was
		if is < was*(1-fallShare) {
			least += was - is
		}
	}
	if least == 0 {
		return 0, 0
	}
	for name, v := range w.values { // what did not fall may have left and been booked anew
		if booked(name) && w.drops[name] == nil {
			if was, at := latestAt(v, from); at >= 0 {
				most += was
			}
		}
	}
	return least, most
}

// waits is how much more of what ended contracts had not used there is after two
// polls than before, in the unit of readings.
func (w *watch) waits(from, to int) float64 {
	v := w.values[system.ReadEndedUnspent]
	was, i := latestAt(v, from)
	is, j := latestAt(v, min(to+1, len(v)-1))
	if i < 0 || j <= i {
		return 0
	}
	return is - was
}
