package report

import (
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// usualPeriod is the allowance's period, in blocks of ten minutes, that a cost per
// month assumes where the system does not say it: 84 days, as in the study.
const usualPeriod = 84 * blocksPerDay

const (
	blocksPerDay = 144
	daysPerMonth = 365.0 / 12
)

// unexplained is the purpose of money that the system's total has used, and that it
// names no purpose of.
const unexplained = "unexplained"

// storing are the purposes that make up the study's cost of storing. All others,
// bandwidth, siad's accounts with hosts and maintenance, are in the cost with
// bandwidth only.
var storing = []string{"fees", "storage"}

// months is the length of the allowance's period: fees are paid once, and storage
// for so long, in each. 0: the system has no contracts.
func (l *LoadTest) months() float64 {
	if l.currency != "SC" {
		return 0
	}
	v := l.watch.values[system.ReadPeriod]
	blocks, at := latestAt(v, len(v)-1)
	if at < 0 || blocks <= 0 {
		blocks = usualPeriod
	}
	return blocks / blocksPerDay / daysPerMonth
}

// baseline is what the system told before the experiment gave it a budget: what
// forming contracts then cost, ahead of the first poll, belongs to the test.
func (w *watch) baseline(readings []record.Reading) {
	readings, _ = collect.WithEnded(readings)
	for _, r := range readings {
		if v, ok := new(big.Int).SetString(r.Exact, 10); ok && w.first[r.Name] != nil && r.Bad == "" {
			w.first[r.Name] = v
		}
	}
}

// economy computes what a load test cost from the exact amounts of its first and
// its last poll that told them. files and bytes are what was stored meanwhile;
// whole says that nothing was stored before, so that all of the system's own
// totals belong to it.
func (w *watch) economy(currency string, p experiment.Price, text string, whole bool, files int64, bytes, months float64) *Money {
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
	all := since(system.ReadSpent)
	for _, gone := range w.gone {
		m.AtLeast = true
		if all != nil {
			all = new(big.Int).Add(all, gone)
		}
	}
	store, named, purposes, told := new(big.Int), new(big.Int), 0, false
	var kinds []*big.Int
	enter := func(kind string, v *big.Int) {
		kinds = append(kinds, v)
		m.Kinds = append(m.Kinds, Spending{Kind: kind, Amount: w.amount(ratOf(v), p), Share: unknown})
	}
	for _, name := range w.kinds() {
		v, kind := since(name), strings.TrimPrefix(name, system.ReadSpentPrefix)
		enter(kind, v)
		if name == system.ReadUnspent {
			continue
		}
		purposes++
		named.Add(named, v)
		if slices.Contains(storing, kind) {
			store.Add(store, v)
		}
		told = told || kind == "storage"
	}
	used, rest := all, since(system.ReadUnspent)
	switch {
	case all != nil && rest != nil:
		used = new(big.Int).Sub(all, rest)
		if gap := new(big.Int).Sub(used, named); purposes > 0 && gap.Sign() != 0 {
			enter(unexplained, gap)
		}
	case purposes > 0:
		used = named
	}
	if all == nil && purposes > 0 {
		all = new(big.Int).Set(used)
		if rest != nil {
			all.Add(all, rest)
		}
	}
	if !told {
		store = nil // it is charged within another purpose, as renterd does with uploads
	}
	if all != nil && all.Sign() > 0 {
		total, _ := new(big.Float).SetInt(all).Float64()
		for i, v := range kinds {
			f, _ := new(big.Float).SetInt(v).Float64()
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
	if months > 0 && bytes > 0 {
		m.Months = Num(months)
		tbMonths := new(big.Rat).SetFloat64(bytes / 1e12 * months)
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
