package report

import (
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
)

// contractMonths is the length of a contract that a cost per month assumes: 84
// days, the usual one of siad (12,096 blocks of ten minutes), as in the study.
const contractMonths = 2.77

// bandwidth are the purposes that the study leaves out of the cost of storing.
var bandwidth = []string{"upload", "download"}

// economy computes what a load test cost from the exact amounts of its first and
// its last poll that told them. files and bytes are what was stored meanwhile;
// whole says that nothing was stored before, so that all of the system's own
// totals belong to it.
func (w *watch) economy(currency string, p experiment.Price, text string, whole bool, files int64, bytes float64, contracts bool) *Money {
	if len(w.last) == 0 || w.decimals < 0 {
		return nil
	}
	m := &Money{Currency: currency, Price: text, In: p.Currency, Source: p.Source, Whole: whole, Kinds: []Spending{}, Months: unknown}
	since := func(name string) *big.Int {
		v := w.last[name]
		if v == nil {
			return nil
		}
		if gone := w.gone[name]; gone != nil {
			v = new(big.Int).Add(v, gone)
		}
		if whole {
			return v
		}
		return new(big.Int).Sub(v, w.first[name])
	}
	all, used := since(system.ReadSpent), new(big.Int)
	for _, gone := range w.gone {
		m.AtLeast = true
		if all != nil {
			all = new(big.Int).Add(all, gone)
		}
	}
	store, kinds := new(big.Int), 0
	var sum big.Int
	for _, name := range w.kinds() {
		v := since(name)
		kind := strings.TrimPrefix(name, system.ReadSpentPrefix)
		m.Kinds = append(m.Kinds, Spending{Kind: kind, Amount: w.amount(ratOf(v), p), Share: unknown})
		sum.Add(&sum, v)
		if name == system.ReadUnspent {
			continue
		}
		kinds++
		used.Add(used, v)
		if !slices.Contains(bandwidth, kind) {
			store.Add(store, v)
		}
	}
	if all == nil && kinds > 0 {
		all = &sum
	}
	if kinds == 0 {
		used, store = all, nil
		if rest := since(system.ReadUnspent); all != nil && rest != nil {
			used = new(big.Int).Sub(all, rest)
		}
	}
	if all != nil && all.Sign() > 0 {
		total, _ := new(big.Float).SetInt(all).Float64()
		for i, name := range w.kinds() {
			f, _ := new(big.Float).SetInt(since(name)).Float64()
			m.Kinds[i].Share = Num(f / total)
		}
	}
	m.Spent, m.Used = w.amount(ratOf(all), p), w.amount(ratOf(used), p)
	m.Wallet, m.Begun = w.amount(ratOf(w.last[system.ReadBalance]), p), w.amount(ratOf(w.first[system.ReadBalance]), p)
	per := func(v *big.Int, by *big.Rat) Amount {
		if v == nil || by == nil || by.Sign() <= 0 {
			return w.amount(nil, p)
		}
		return w.amount(new(big.Rat).Quo(ratOf(v), by), p)
	}
	m.PerFile = per(used, new(big.Rat).SetInt64(files))
	m.PerTBMonth, m.WithBandwidth = w.amount(nil, p), w.amount(nil, p)
	if contracts && bytes > 0 {
		m.Months = contractMonths
		tbMonths := new(big.Rat).SetFloat64(bytes / 1e12 * contractMonths)
		m.PerTBMonth, m.WithBandwidth = per(store, tbMonths), per(used, tbMonths)
	}
	return m
}

// kinds are the names of the amounts that spending consists of: by purpose, in
// the order of the study, the unspent last.
func (w *watch) kinds() []string {
	var names []string
	for _, k := range []string{"fees", "storage", "upload", "download"} {
		if name := system.ReadSpentPrefix + k; w.last[name] != nil {
			names = append(names, name)
		}
	}
	var others []string
	for name := range w.last {
		if strings.HasPrefix(name, system.ReadSpentPrefix) && !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	names = append(names, others...)
	if w.last[system.ReadUnspent] != nil {
		names = append(names, system.ReadUnspent)
	}
	return names
}

// coding is how a system spreads an object over its servers; zero: not known.
type coding struct {
	sector  int64 // bytes of the unit that a piece is rounded up to; 0: none is known
	needed  int64 // pieces that make the object again
	servers int64 // pieces altogether
}

// padded is what an object of a size takes once: pieces of whole sectors.
func (c coding) padded(size int64) int64 {
	unit := c.sector * c.needed
	if unit == 0 {
		return size
	}
	return max(1, (size+unit-1)/unit) * unit
}

func (c coding) known() bool { return c.needed > 0 && c.servers >= c.needed }

// Efficiency is where the absolute bytes of a load test come from: file bytes /
// absolute bytes = padding × redundancy.
type Efficiency struct {
	Value      Estimate `json:"value"`      // between the polls' moments
	Padding    Num      `json:"padding"`    // file bytes / bytes in whole sectors
	Redundancy Num      `json:"redundancy"` // bytes in whole sectors / absolute bytes
	// Line is the most that the coding allows: padding × needed / servers.
	Line        Num `json:"line"`
	Sector      Num `json:"sector"`
	Needed      Num `json:"needed"`
	Servers     Num `json:"servers"`
	PerFile     Num `json:"per_file"` // absolute bytes for each object
	Copies      Num `json:"copies"`   // absolute bytes / bytes in whole sectors
	MeanTold    Num `json:"mean"`     // mean redundancy of the files, as the system tells it, at the end
	HighestTold Num `json:"highest"`  // highest of a file, at any poll
	Absolute    Num `json:"absolute"` // bytes
}
