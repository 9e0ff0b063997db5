package upload

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// usualPeriod is the period of an allowance, in blocks of ten minutes, for systems that do not
// report it: 84 days, as in the study.
const (
	usualPeriod  = 84 * blocksPerDay
	blocksPerDay = 144
	daysPerMonth = 365.0 / 12
)

// amount adds a row of an amount (in the smallest unit) divided by each, and one at the stated
// price. A nil amount is unknown and adds nothing.
func (l *loadTest) amount(metric, entity string, amount *big.Int, each *big.Rat) {
	if amount == nil || each.Sign() <= 0 {
		return
	}
	v := system.Coins(amount)
	v.Quo(v, each)
	f, _ := v.Float64()
	l.out.Rows = append(l.out.Rows, analysis.Row{Trial: l.trial, Entity: entity, Metric: metric, Value: f,
		Exact: words.Decimal(v, system.Decimals)})
	if l.price.Each != nil {
		g, _ := new(big.Rat).Mul(v, l.price.Each).Float64()
		l.row(metric+priced, entity, g)
	}
}

var one = big.NewRat(1, 1)

// unnamed is the purpose of money for which the system reports none.
const unnamed = "unexplained"

// priced is the suffix of keys of amounts in the currency of the price.
const priced = "_priced"

// since returns the growth of an amount during the test. If nothing was stored or paid before,
// the system's totals belong to the test and are returned as they are.
func (l *loadTest) since(name string) *big.Int {
	v := l.readings.last[name]
	if v == nil || l.empty(system.ReadFiles, system.ReadFileBytes, system.ReadAbsolute, system.ReadContractBytes,
		system.ReadEnded) {
		return v
	}
	return minus(v, l.readings.first[name])
}

// money adds the cost of the test, by purpose, in total, per file, and per TB and month, from the exact
// amounts of its first and last poll.
func (l *loadTest) money() {
	var named, store, used *big.Int
	for _, name := range slices.Sorted(maps.Keys(l.readings.last)) {
		if isPurpose(name) {
			amount := l.since(name)
			l.amount("money", strings.TrimPrefix(name, system.ReadSpentPrefix), amount, one)
			named = plus(named, amount)
		}
	}
	if storage := l.since(system.ReadSpentPrefix + "storage"); storage != nil { // else part of another purpose
		store = plus(l.since(system.ReadSpentPrefix+"fees"), storage)
	}
	spent, unspent := l.since(system.ReadSpent), l.since(system.ReadUnspent)
	if spent != nil && unspent != nil {
		used = minus(spent, unspent)
		l.spending = system.Money("", used).Value
		l.amount("money", system.ReadUnspent, unspent, one)
		if named != nil && used.Cmp(named) != 0 {
			l.amount("money", unnamed, minus(used, named), one)
		}
	}
	l.amount("money_spent", "", spent, one)
	l.amount("money_used", "", used, one)
	l.amount("money_unspent", "", unspent, one)
	l.amount("wallet_first", "", l.readings.first[system.ReadBalance], one)
	l.amount("wallet_last", "", l.readings.last[system.ReadBalance], one)
	l.amount("money_per_file", "", used, big.NewRat(l.files, 1))
	if months := l.months(); months > 0 && l.fileBytes > 0 {
		tb := new(big.Rat).SetFloat64(l.fileBytes / 1e12 * months)
		l.amount("money_per_tb_month", "", store, tb)
		l.amount("money_per_tb_month_all", "", used, tb)
	}
}

// months returns the period of contracts in months, or 0 if the system has none.
func (l *loadTest) months() float64 {
	if l.values[system.ReadContracts] == nil {
		return 0
	}
	blocks := l.now(system.ReadPeriod)
	if !(blocks > 0) {
		blocks = usualPeriod
	}
	return blocks / blocksPerDay / daysPerMonth
}

// Kinds of spans for violated invariants; they extend between the polls that show it.
const (
	moneyMissing = "money missing"
	counterFell  = "counter fell"
)

// invariants checks that the sum of wallet and contracts is constant, and that totals only
// grow. Unused money of ended contracts may come back later.
func (l *loadTest) invariants() {
	if amount, from, to := l.readings.lost(); amount != nil {
		value := system.Money("", amount).Value
		ended := l.values[system.ReadEndedUnspent]
		if back := ended.upTo(to.start) - ended.upTo(from.start); !(back >= 0.99*value) {
			l.amount("money_missing", "", amount, one)
			note := words.Money(value, l.currency)
			for _, of := range [][2]string{{system.ReadContracts, "1"}, {system.ReadContractBytes, "B"}} {
				// one poll more on either side, since the calls of a poll are not simultaneous
				if v := l.values[of[0]]; len(v) > 0 {
					was, is := v[max(v.find(from.start)-1, 0)], v[min(v.find(to.start)+2, len(v)-1)]
					note += fmt.Sprintf("; %s %s → %s", of[0], words.Show(was.Value, of[1]), words.Show(is.Value, of[1]))
				}
			}
			l.span(moneyMissing, "", from.start, to.end, note)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.values)) {
		from, to, fell := l.values[name].falls()
		if fell && (isPurpose(name) || name == system.ReadAbsolute || name == system.ReadHeight) {
			l.span(counterFell, name, from.Start, to.End, name)
		}
	}
}

const (
	// A change counts once it has held for heldPolls polls and heldSeconds: a transaction waits
	// for its block, and the calls of a poll are not simultaneous.
	heldPolls   = 5
	heldSeconds = 30 * 60
	// slack is the tolerance as a multiple of the amount moved between neighbouring polls, since
	// a poll may see an amount twice or not at all. rounding is the tolerance as a share of the
	// amounts.
	slack    = 2
	rounding = 1e-9
	// noisy is the multiple of the median tolerance above which a poll shows no level.
	noisy = 3
	// fallShare is the share by which a counter may fall, since systems round.
	fallShare = 1e-3
)

// lost returns by how much the sum of wallet and contracts is lower at the end than at the
// beginning, and the polls between which it left its first level. The amount is nil if nothing
// was lost, or not for long enough to rule out money in transit.
func (w *readings) lost() (amount *big.Int, from, to entry) {
	scale, off := 0.0, make([]float64, len(w.wealth))
	for _, v := range w.last {
		scale = max(scale, math.Abs(float(v)))
	}
	for i, e := range w.wealth {
		off[i] = slack*e.moved + rounding*scale
		if i+1 < len(w.wealth) {
			off[i] += slack * w.wealth[i+1].moved
		}
	}
	usual := stats.Median(off)
	var calm []entry // polls during unusual movement show no level
	var within []float64
	for i, e := range w.wealth {
		if off[i] <= noisy*usual {
			calm, within = append(calm, e), append(within, off[i])
		}
	}
	n := len(calm)
	if n < 2*heldPolls {
		return nil, from, to
	}
	level := typical(calm[:heldPolls])
	i := n
	for i > 0 && math.Abs(float(minus(calm[i-1].level, level))) > within[i-1] {
		i--
	}
	if i == 0 || n-i < heldPolls || calm[n-1].end-calm[i].start < heldSeconds {
		return nil, from, to
	}
	if amount = minus(level, typical(calm[max(i, n-heldPolls):])); amount.Sign() < 0 {
		return nil, from, to
	}
	return amount, calm[i-1], calm[i]
}

// typical returns the median level.
func typical(all []entry) *big.Int {
	all = slices.SortedFunc(slices.Values(all), func(a, b entry) int { return a.level.Cmp(b.level) })
	return all[len(all)/2].level
}

// falls returns the polls between which a counter fell and then stayed lower for heldPolls polls.
func (s series) falls() (from, to collect.Reported, fell bool) {
	top, below := math.Inf(-1), 0
	for _, r := range s {
		if r.Value >= top-fallShare*math.Abs(top) {
			top, from, below = max(top, r.Value), r, 0
			continue
		}
		if below++; below == 1 {
			to = r
		}
		if below == heldPolls {
			return from, to, true
		}
	}
	return from, to, false
}

func plus(a, b *big.Int) *big.Int {
	if a == nil {
		return b
	}
	return new(big.Int).Add(a, b)
}

func minus(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }

func float(v *big.Int) float64 {
	f, _ := v.Float64()
	return f
}
