package collect

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// Used adds up over polls the money that a system has used up: what its
// contracts cost less what lies unspent in them or, where it reports no such
// total, its spending by purpose. It is the sum of the increments: contracts
// that end or are renewed leave the system's sums, and what was spent in them
// stays spent. Where the system does not report such contracts, what was used
// between the last poll with them and the first without them is not seen, and the
// sum is a little too low. The zero value is ready.
type Used struct {
	total    risen
	parts    map[string]*risen
	purposes bool // an earlier poll read parts
	decimals int
	money    bool // decimals are known
}

// risen is the sum of the increments of an amount.
type risen struct{ last, sum *big.Int }

func (r *risen) add(v *big.Int) {
	if r.last == nil {
		r.sum = new(big.Int)
	} else if by := new(big.Int).Sub(v, r.last); by.Sign() > 0 {
		r.sum.Add(r.sum, by)
	}
	r.last = v
}

// Add takes the readings of one poll; the sum starts from those of the first.
func (u *Used) Add(readings []record.Reading) {
	reported := map[string]*big.Int{}
	var untold []string // purposes of which the amount is not to be used
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
	// All contracts at once are gone only to a daemon that has not read them yet.
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
			if purposes { // the system reports a purpose once it has spent on it
				u.parts[name].add(new(big.Int))
			}
		}
		u.parts[name].add(reported[name])
	}
}

// WithEnded adds what contracts that are over had used to the account of those
// in use, where the system reports both: nothing leaves the account then. It does
// not change the readings that it is given.
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

// Sum is in the currency's smallest unit, of which 10^decimals make one; false:
// no poll has read it, or the currency's decimals.
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

// Float is an amount in the currency, rounded.
func Float(amount *big.Int, decimals int) float64 {
	return system.Money("", amount, decimals).Value
}
