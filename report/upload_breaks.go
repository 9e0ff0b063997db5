package report

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/system"
)

// Break is an account or a counter of a system that did what it must not.
type Break struct {
	Law    string `json:"law"`    // "sum": spending is the sum of its parts; "wealth": wallet and contracts; "counter"; and no violation: "left" the account with contracts, "waiting" in ended ones
	Name   string `json:"name"`   // the reading; of an account, the total
	From   Num    `json:"from"`   // seconds since the test began: start of the last poll before
	To     Num    `json:"to"`     // end of the first poll after
	Amount Amount `json:"amount"` // of money; negative: missing
	Fell   Num    `json:"fell"`   // of a counter
	Held   bool   `json:"held"`   // it stayed so for long enough; false: until the end, which came too soon to tell
	Maybe  string `json:"maybe"`  // what else changed then
}

// check looks for violations of what must hold at every poll.
func (l *LoadTest) check() {
	w := l.watch
	p, _ := l.info.price()
	enter := func(law, name string, s shift) *Break {
		l.Breaks = append(l.Breaks, Break{Law: law, Name: name, From: Num(w.start[s.from]), To: Num(w.end[s.to]), Amount: w.amount(ratOf(s.amount), p),
			Fell: unknown, Held: s.held, Maybe: l.meanwhile(s.from, s.to)})
		return &l.Breaks[len(l.Breaks)-1]
	}
	scale := 0.0
	for _, v := range w.last {
		f, _ := new(big.Float).SetInt(v).Float64()
		scale = max(scale, math.Abs(f))
	}
	l.Unnamed = w.unnamed(p)
	for _, s := range w.sum.shifts(new(big.Int), scale, w.start, w.end) {
		enter(findings.LawSum, system.ReadSpent, s)
	}
	var waiting []shift
	for _, s := range w.wealth.shifts(nil, scale, w.start, w.end) {
		if i := slices.IndexFunc(waiting, func(x shift) bool { return opposite(x.amount, s.amount, scale) }); i >= 0 {
			waiting = slices.Delete(waiting, i, i+1) // it came back
			continue
		}
		amount := -float64(w.amount(ratOf(s.amount), p).Value)
		least, most := w.left(s.from, s.to)
		switch {
		case amount > 0 && w.waits(s.from, s.to) >= 0.99*amount:
			waiting = append(waiting, s)
		case amount > 0 && least > 0 && amount <= 1.01*most:
			enter(findings.LawLeft, system.ReadBalance, s).Maybe = fmt.Sprintf("contracts left the account then, and with them %s to %s that they had used", l.money(least), l.money(most))
		case amount > 0 && least > 0:
			b := enter(findings.LawWealth, system.ReadBalance, s)
			b.Maybe = fmt.Sprintf("at most %s of it are what contracts that left the account had used; %s", l.money(most), b.Maybe)
		default:
			enter(findings.LawWealth, system.ReadBalance, s)
		}
	}
	for _, s := range waiting {
		enter(findings.LawWaiting, system.ReadEndedUnspent, s)
	}
	for _, name := range w.counters() {
		for _, f := range falls(w.values[name]) {
			b := Break{Law: findings.LawCounter, Name: name, From: Num(w.start[f.from]), To: Num(w.end[f.to]), Amount: w.amount(nil, p), Fell: Num(f.amount), Held: true, Maybe: l.meanwhile(f.from, f.to)}
			if by := w.drops[name][f.to]; by != nil {
				b.Amount = w.amount(new(big.Rat).Neg(ratOf(by)), p)
			}
			if booked(name) && !w.ended {
				b.Law = findings.LawLeft
			}
			l.Breaks = append(l.Breaks, b)
		}
	}
	slices.SortStableFunc(l.Breaks, func(a, b Break) int {
		switch {
		case a.From < b.From:
			return -1
		case a.From > b.From:
			return 1
		}
		return 0
	})
}

// counters are the readings that only grow while a load test stores and removes
// nothing. What contracts cost is none: what is unspent leaves it when they end.
func (w *watch) counters() []string {
	var names []string
	for name := range w.values {
		if booked(name) || name == system.ReadAbsolute || name == system.ReadHeight {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// meanwhile says what became of the contracts between two polls, and what that
// speaks for.
func (l *LoadTest) meanwhile(from, to int) string {
	w := l.watch
	// A poll or two before and after, since calls of one poll are not made at one moment.
	change := func(name string) (was, is float64, ok bool) {
		was, i := latestAt(w.values[name], max(from-1, 0))
		is, j := latestAt(w.values[name], min(to+2, len(w.start)-1))
		return was, is, i >= 0 && j > i
	}
	was, is, counted := change(system.ReadContracts)
	size, then, sized := change(system.ReadContractBytes)
	shrank := sized && then < size*(1-fallShare)
	switch {
	case counted && is > was:
		s := fmt.Sprintf("contracts were formed then (%s → %s): money may have been lost in forming them", whole(int64(was)).Text, whole(int64(is)).Text)
		if shrank {
			s = fmt.Sprintf("contracts were formed then (%s → %s) while the size of all contracts fell from %s to %s, which is what a renewal before its time looks like", whole(int64(was)).Text, whole(int64(is)).Text, show(size, "B"), show(then, "B"))
		}
		return s
	case counted && is < was && shrank:
		return fmt.Sprintf("contracts ended then (%s → %s), and the size of all contracts fell from %s to %s", whole(int64(was)).Text, whole(int64(is)).Text, show(size, "B"), show(then, "B"))
	case counted && is < was:
		return fmt.Sprintf("contracts ended then (%s → %s)", whole(int64(was)).Text, whole(int64(is)).Text)
	case shrank:
		return fmt.Sprintf("the number of contracts stayed, and their size fell from %s to %s, which is what a renewal before its time looks like", show(size, "B"), show(then, "B"))
	case counted:
		return fmt.Sprintf("the number of contracts (%s) stayed", whole(int64(is)).Text)
	}
	return ""
}
