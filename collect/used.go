package collect

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// Used computes, over polls, the money that a system has used: the cost of its contracts less the
// money in them that is unspent or, if the system does not report that total, its spending by
// purpose. It adds up increments, because contracts that end or are renewed leave the system's
// sums, although the money spent in them stays spent. Unless the system reports ended contracts,
// the money used between the last poll with a contract and the first without it is not seen, so the
// sum is slightly too low. The zero value is ready for use.
type Used struct {
	total    risen
	parts    map[string]*risen
	purposes bool // an earlier poll has read parts
	decimals int
	money    bool // decimals is known
}

// risen is the sum of the increases of an amount.
type risen struct{ last, sum *big.Int }

func (r *risen) add(v *big.Int) {
	if r.last == nil {
		r.sum = new(big.Int)
	} else if by := new(big.Int).Sub(v, r.last); by.Sign() > 0 {
		r.sum.Add(r.sum, by)
	}
	r.last = v
}

// Add adds the readings of one poll. The sum starts at the readings of the first poll.
func (u *Used) Add(readings []record.Reading) {
	reported := map[string]*big.Int{}
	var untold []string // purposes whose amount must not be used
	readings = WithEnded(readings)
	for _, r := range readings {
		amount, ok := new(big.Int).SetString(r.Exact, 10)
		switch {
		case r.Bad == "" && ok:
			reported[r.Name] = amount
			if d, known := system.Decimals(amount, r.Value); known {
				u.decimals, u.money = d, true
			}
		case strings.HasPrefix(r.Name, system.ReadSpentPrefix):
			untold = append(untold, r.Name)
		}
	}
	spent, unspent := reported[system.ReadSpent], reported[system.ReadUnspent]
	// Only a daemon that has not read its contracts yet reports none at all after it had some.
	hidden := spent != nil && spent.Sign() == 0 && u.total.last != nil && u.total.last.Sign() > 0
	if spent != nil && unspent != nil && !hidden {
		u.total.add(new(big.Int).Sub(spent, unspent))
	}
	purposes := u.purposes
	if u.parts == nil {
		u.parts = map[string]*risen{}
	}
	for _, name := range untold {
		if u.parts[name] == nil {
			u.parts[name] = &risen{}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		if !strings.HasPrefix(name, system.ReadSpentPrefix) {
			continue
		}
		u.purposes = true
		if u.parts[name] == nil {
			u.parts[name] = &risen{}
			if purposes { // a system reports a purpose once it has spent money on it
				u.parts[name].add(new(big.Int))
			}
		}
		u.parts[name].add(reported[name])
	}
}

// WithEnded adds the amounts used by ended contracts to those of active ones, if the system reports
// both, so that nothing leaves the sum. It does not modify readings.
func WithEnded(readings []record.Reading) (all []record.Reading) {
	ended := map[string]record.Reading{}
	for _, r := range readings {
		if r.Name == system.ReadEnded {
			ended[system.ReadSpent] = r
		} else if purpose, ok := strings.CutPrefix(r.Name, system.ReadEndedPrefix); ok {
			ended[system.ReadSpentPrefix+purpose] = r
		}
	}
	if len(ended) == 0 {
		return readings
	}
	all = slices.Clone(readings)
	for i := range all {
		over, ok := ended[all[i].Name]
		if !ok || all[i].Bad != "" {
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

// Sum returns the sum in the currency's smallest unit, 10^-decimals of the currency. known is false
// if no poll has read an amount or the currency's decimals.
func (u *Used) Sum() (amount *big.Int, decimals int, known bool) {
	if !u.money {
		return nil, 0, false
	}
	if u.total.last != nil {
		return new(big.Int).Set(u.total.sum), u.decimals, true
	}
	for _, r := range u.parts {
		if r.last == nil {
			continue
		}
		if amount == nil {
			amount = new(big.Int)
		}
		amount.Add(amount, r.sum)
	}
	return amount, u.decimals, amount != nil
}

// Float returns an amount in the currency, rounded.
func Float(amount *big.Int, decimals int) float64 {
	return system.Money("", amount, decimals).Value
}
