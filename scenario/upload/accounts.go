package upload

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// account is a sum of amounts that stays at one level in a system that loses nothing,
// as each poll saw it.
type account []entry

type entry struct {
	poll  int
	level *big.Int // smallest unit
	moved float64  // by how much its parts changed since the poll before, without their signs
	sent  float64  // what storing and moving data had cost
	drift float64  // by which the level may be off
	parts int
}

const (
	// A level has changed for good when it stays changed for so many polls and so long:
	// a transaction waits for its block, and the calls of a poll are not made at once.
	heldPolls   = 5
	heldSeconds = 30 * 60
	// slack is how much of what moved between neighbouring polls one poll may see twice,
	// or not at all.
	slack = 2
	// rounding is the share of the amounts that is never a violation.
	rounding = 1e-9
	// firstPolls in a row establish the level that an account begins with.
	firstPolls = 3
	// noisy is how many times the usual movement a poll may have and still show a level.
	noisy = 3
	// returnSeconds is how long money may be under way.
	returnSeconds = 6 * 3600
	// fallShare is the share by which a counter may fall: systems round.
	fallShare = 1e-3
	// mostUnnamed is the most, of the cost of data, that siad pays without a purpose.
	mostUnnamed = 0.25
	// Such spending may be off by this much of itself, since hosts differ: the least,
	// and what is allowed while fewer than driftPolls polls show it.
	leastDrift, mostDrift = 0.05, 0.5
	driftPolls            = 8
)

// shift is a change of an account's level between two polls.
type shift struct {
	from, to int
	amount   *big.Int
	held     bool // for long enough; false: until the end, which came too soon
}

// whole are the entries with all parts.
func (a account) whole() account {
	most := 0
	for _, e := range a {
		most = max(most, e.parts)
	}
	return slices.DeleteFunc(a, func(e entry) bool { return e.parts < most })
}

// unnamed takes out of the spending what goes in step with data and has no purpose:
// siad pays hosts for each request and a little more than they ask. It is the median of
// its share in what was added from poll to poll; nil: there is none.
func (a account) unnamed() *big.Int {
	var shares []float64
	for i, e := range a {
		rest, sent := e.level, e.sent
		if i > 0 {
			rest, sent = minus(rest, a[i-1].level), sent-a[i-1].sent
		}
		if sent > 0 {
			shares = append(shares, float(rest)/sent)
		}
	}
	share, off := stats.Median(shares), mostDrift
	if !(share > 0) || share > mostUnnamed {
		return nil
	}
	if n := len(shares); n >= driftPolls {
		slices.Sort(shares)
		off = min(max(2*(shares[n-1-n/4]-shares[n/4])/share, leastDrift), mostDrift)
	}
	amount := a[len(a)-1].level
	for i, e := range a {
		part, _ := big.NewFloat(share * e.sent).Int(nil)
		a[i].level, a[i].drift = minus(e.level, part), off*share*e.sent
	}
	return amount
}

// shifts finds where an account leaves its level for good; a nil level is its own first.
func (a account) shifts(level *big.Int, scale float64, start, end []float64) []shift {
	var off []float64 // what the calls of one poll may see differently
	for i, e := range a {
		t := slack*e.moved + rounding*scale
		if i+1 < len(a) {
			t += slack * a[i+1].moved
		}
		off = append(off, t)
	}
	var calm account // while more moves than usual, there is no level
	var within []float64
	for i, usual := 0, stats.Median(off); i < len(a); i++ {
		if off[i] <= noisy*usual {
			calm, within = append(calm, a[i]), append(within, off[i]+a[i].drift)
		}
	}
	return returned(calm.steps(level, within, start, end), scale, start, end)
}

// steps are the shifts of an account whose level is known to within off at each poll.
func (a account) steps(base *big.Int, off, start, end []float64) (all []shift) {
	n := len(a)
	if n < heldPolls {
		return nil
	}
	own := base == nil
	if own {
		base = a[0].level
	}
	values := make([]float64, n) // above the base, which keeps small changes of large amounts apart
	for i, e := range a {
		values[i] = float(minus(e.level, base))
	}
	until := func(i int) int { // the first entry after i that does not stay at its level
		j := i + 1
		for j < n && math.Abs(values[j]-values[i]) <= max(off[i], off[j]) {
			j++
		}
		return j
	}
	long := func(i, j int) bool { return j-i >= heldPolls && end[a[j-1].poll]-start[a[i].poll] >= heldSeconds }
	i, now := 0, base
	if own {
		for i < n && until(i)-i < firstPolls && !long(i, until(i)) {
			i++
		}
		if i == n {
			return nil
		}
		now = a.typical(values, i, until(i))
	}
	for ; i < n; i++ {
		at := float(minus(now, base))
		if math.Abs(values[i]-at) <= off[i] {
			continue
		}
		j := until(i)
		held := long(i, j)
		if !held && (j < n || j-i < heldPolls) {
			continue // money under way, or a change that goes on
		}
		then := a.typical(values, i, j)
		amount := minus(then, now)
		from := max(i-1, 0) // back to where it was clearly on its level
		for from > 0 && math.Abs(values[from]-at) > math.Abs(float(amount))/4 {
			from--
		}
		all = append(all, shift{a[from].poll, a[i].poll, amount, held})
		now, i = then, j-1
	}
	return all
}

// typical is the median level of a stretch.
func (a account) typical(values []float64, i, j int) *big.Int {
	order := make([]int, 0, j-i)
	for k := i; k < j; k++ {
		order = append(order, k)
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(values[x], values[y]) })
	return a[order[len(order)/2]].level
}

// returned leaves out money that went and came back soon.
func returned(all []shift, scale float64, start, end []float64) []shift {
	for i := 0; i < len(all); i++ {
		for j := i + 1; j < len(all) && start[all[j].from]-end[all[i].to] <= returnSeconds; j++ {
			if opposite(all[i].amount, all[j].amount, scale) {
				all = slices.Delete(slices.Delete(all, j, j+1), i, i+1)
				i--
				break
			}
		}
	}
	return all
}

// opposite reports whether one amount makes up for another.
func opposite(a, b *big.Int, scale float64) bool {
	return math.Abs(float(plus(a, b))) <= 0.01*math.Abs(float(a))+rounding*scale
}

// fall is a counter that went down between two polls.
type fall struct {
	from, to int
	amount   float64
}

// falls finds where a counter goes down and stays below what it was.
func falls(values []float64) (all []fall) {
	top, at := math.NaN(), -1 // the highest so far, and where it was last
	for i, v := range values {
		switch {
		case math.IsNaN(v):
			continue
		case math.IsNaN(top) || v >= top:
			top, at = v, i
			continue
		case top-v <= fallShare*math.Abs(top):
			at = i
			continue
		}
		below := 0
		for j := i; j < len(values) && below < heldPolls; j++ {
			if math.IsNaN(values[j]) {
				continue
			}
			if top-values[j] <= fallShare*math.Abs(top) {
				break
			}
			below++
		}
		if below >= heldPolls {
			all = append(all, fall{at, i, top - v})
			top, at = v, i
		}
	}
	return all
}

// left is how much of the money that was used contracts took with them between two
// polls, at least and at most, in the currency; 0: nothing was seen to leave.
func (w *polls) left(from, to int) (least, most float64) {
	for name, v := range w.values {
		was, at := latest(v, from)
		switch is, _ := latest(v, to+1); {
		case !isPurpose(name) || at < 0:
			continue
		case w.drops[name] != nil && was > 0 && is < was*(1-fallShare):
			least += was - is
		}
		most += was // what did not fall may have left and been booked anew
	}
	if least == 0 {
		return 0, 0
	}
	return least, most
}

// waiting is by how much the unspent money of ended contracts rose between two polls.
func (w *polls) waiting(from, to int) float64 {
	v := w.values[system.ReadEndedUnspent]
	was, i := latest(v, from)
	is, j := latest(v, to+1)
	if i < 0 || j <= i {
		return 0
	}
	return is - was
}

func plus(a, b *big.Int) *big.Int {
	if a == nil {
		return b
	}
	return new(big.Int).Add(a, b)
}

func minus(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }

func float(v *big.Int) float64 {
	f, _ := new(big.Float).SetInt(v).Float64()
	return f
}
