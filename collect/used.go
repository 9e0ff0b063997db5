package collect

import (
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// Used computes, over polls, the money that a system has used: the cost of its contracts less the
// money in them that is unspent. It adds up increments, because contracts that end or are renewed
// leave the system's sums, although the money spent in them stays spent. Unless the system reports
// ended contracts, the money used between the last poll with a contract and the first without it is
// not seen, so the sum is slightly too low. The zero value is ready for use.
type Used struct {
	Sum  *big.Int // in the currency's smallest unit; nil if no poll has read it. It is replaced, never changed.
	last *big.Int
}

// Add adds the readings of one poll. The sum starts at the readings of the first poll.
func (u *Used) Add(readings []record.Reading) {
	var spent, unspent *big.Int
	for _, r := range WithEnded(readings) {
		amount, ok := new(big.Int).SetString(r.Exact, 10)
		switch {
		case r.Bad != "" || !ok:
		case r.Name == system.ReadSpent:
			spent = amount
		case r.Name == system.ReadUnspent:
			unspent = amount
		}
	}
	if spent == nil || unspent == nil {
		return
	}
	// Only a daemon that has not read its contracts yet reports none at all after it had some.
	if spent.Sign() == 0 && u.last != nil && u.last.Sign() > 0 {
		return
	}
	now := new(big.Int).Sub(spent, unspent)
	if u.last == nil {
		u.Sum = new(big.Int)
	} else if by := new(big.Int).Sub(now, u.last); by.Sign() > 0 {
		u.Sum = by.Add(u.Sum, by)
	}
	u.last = now
}

// WithEnded adds the amounts used by ended contracts to those of active ones, if the system reports
// both, so that nothing leaves the sum. It does not modify readings.
func WithEnded(readings []record.Reading) (all []record.Reading) {
	all = slices.Clone(readings)
	for _, over := range readings {
		purpose, ended := strings.CutPrefix(over.Name, system.ReadEndedPrefix)
		name := system.ReadSpentPrefix + purpose
		if over.Name == system.ReadEnded {
			name, ended = system.ReadSpent, true
		}
		i := slices.IndexFunc(all, func(r record.Reading) bool { return r.Name == name })
		if !ended || i < 0 || all[i].Bad != "" {
			continue
		}
		a, ok1 := new(big.Int).SetString(all[i].Exact, 10)
		b, ok2 := new(big.Int).SetString(over.Exact, 10)
		switch {
		case over.Bad != "":
			all[i].Bad = over.Bad
		case ok1 && ok2:
			all[i].Exact, all[i].Value = a.Add(a, b).String(), all[i].Value+over.Value
		}
	}
	return all
}
