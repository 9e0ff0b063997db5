package report

import (
	"math"
	"math/big"
	"slices"
)

// An account is a sum of amounts of money that a law keeps at one level, as
// each poll told it.
type account struct {
	at    []int      // the poll
	level []*big.Int // smallest unit
	moved []float64  // by how much its parts changed since the poll before, summed without their signs
}

// The level of an account has changed for good when it stays changed for so many
// polls and so long. What is shorter may be money under way: a transaction waits
// for its block, and the calls of one poll are not made at one moment.
const (
	heldPolls   = 5
	heldSeconds = 30 * 60
)

// slack is how much of the money that moved between neighbouring polls the calls
// of a poll may see twice, or not at all: each part once, and once again for a
// call that waited.
const slack = 2

// rounding is the share of the amounts themselves that is never a violation.
const rounding = 1e-9

// shift is a change of an account's level.
type shift struct {
	from, to int      // it happened between these polls
	amount   *big.Int // change of the level, smallest unit
	held     bool     // for long enough; else it lasts until the end, which came too soon to tell
}

// shifts finds where an account leaves its level for good. A nil level is the
// account's own first one that holds. scale is the size of the amounts that it
// is made of; start and end are the moments of the polls.
func (a *account) shifts(level *big.Int, scale float64, start, end []float64) []shift {
	n := len(a.at)
	if n < heldPolls {
		return nil
	}
	values := make([]float64, n) // above the first, which keeps small changes of large amounts apart
	base := a.level[0]
	if level != nil {
		base = level
	}
	for i, v := range a.level {
		values[i], _ = new(big.Float).SetInt(new(big.Int).Sub(v, base)).Float64()
	}
	tolerance := make([]float64, n)
	for i := range tolerance {
		tolerance[i] = slack*a.moved[i] + rounding*scale
		if i+1 < n {
			tolerance[i] += slack * a.moved[i+1]
		}
	}
	// until is the first entry after i that does not stay at i's level.
	until := func(i int) int {
		j := i + 1
		for j < n && math.Abs(values[j]-values[i]) <= max(tolerance[i], tolerance[j]) {
			j++
		}
		return j
	}
	long := func(i, j int) bool {
		return j-i >= heldPolls && end[a.at[j-1]]-start[a.at[i]] >= heldSeconds
	}
	at, now, last := 0, 0.0, -1 // the level, and the last entry known to be on it
	if level == nil {
		for ; at < n && !long(at, until(at)); at++ {
		}
		if at == n {
			at = 0
		}
		now = a.typical(values, at, until(at))
	}
	var all []shift
	for i := at; i < n; i++ {
		off := math.Abs(values[i] - now)
		if off <= tolerance[i] {
			last = i
			continue
		}
		j := until(i)
		held := long(i, j)
		if !held && (j < n || j-i < heldPolls) {
			continue // money under way, or a jump that goes on
		}
		then := a.typical(values, i, j)
		k := a.nearest(values, i, j, then)
		amount := new(big.Int).Sub(a.level[k], base)
		nowExact, _ := big.NewFloat(now).Int(nil)
		if m := a.nearest(values, max(0, last), i, now); last >= 0 && math.Abs(values[m]-now) <= tolerance[m] {
			nowExact = new(big.Int).Sub(a.level[m], base)
		}
		amount.Sub(amount, nowExact)
		if math.Abs(then-now) <= slack*a.least(i, j)+rounding*scale {
			i = j - 1 // it only looked so while much moved
			continue
		}
		// What moved hides where it left its level: go back to where it was clearly on it.
		from := i - 1
		for from > 0 && math.Abs(values[from]-now) > math.Abs(then-now)/4 {
			from--
		}
		s := shift{from: a.at[max(from, 0)], to: a.at[i], amount: amount, held: held}
		all = append(all, s)
		now, last, i = then, j-1, j-1
	}
	return returned(all, scale)
}

// returned leaves out money that went and came back.
func returned(all []shift, scale float64) []shift {
	for i := 0; i < len(all); i++ {
		for j := i + 1; j < len(all); j++ {
			sum := new(big.Int).Add(all[i].amount, all[j].amount)
			left, _ := new(big.Float).SetInt(sum.Abs(sum)).Float64()
			whole, _ := new(big.Float).SetInt(new(big.Int).Abs(all[i].amount)).Float64()
			if left <= 0.01*whole+rounding*scale {
				all = slices.Delete(slices.Delete(all, j, j+1), i, i+1)
				i--
				break
			}
		}
	}
	return all
}

// typical is the median of a stretch.
func (a *account) typical(values []float64, i, j int) float64 { return middle(values[i:max(j, i+1)]) }

// nearest is the entry of a stretch that is nearest to a value: the exact amount
// that stands for it.
func (a *account) nearest(values []float64, i, j int, v float64) int {
	best := i
	for k := i; k < j; k++ {
		if math.Abs(values[k]-v) < math.Abs(values[best]-v) {
			best = k
		}
	}
	return best
}

// least is the least that moved at an entry of a stretch: where little moves, a
// level is known best.
func (a *account) least(i, j int) float64 { return slices.Min(a.moved[i:j]) }

// fall is a counter that went down, for good.
type fall struct {
	from, to int     // between these polls
	amount   float64 // how far, above 0
}

// fallShare is the share of a counter by which it may go down without a word:
// systems round what they tell.
const fallShare = 1e-3

// falls finds where a counter that must not fall does, and stays below what it
// was. NaN is a gap. Amounts of money are exact to the float64 that they are
// shown in.
func falls(values []float64) []fall {
	var all []fall
	top, at := math.NaN(), -1 // the highest so far, and where it was last
	for i := 0; i < len(values); i++ {
		v := values[i]
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
		below, highest := 0, v
		for j := i; j < len(values) && below < heldPolls; j++ {
			if math.IsNaN(values[j]) {
				continue
			}
			if top-values[j] <= fallShare*math.Abs(top) {
				break
			}
			below++
			highest = max(highest, values[j])
		}
		if below < heldPolls {
			continue
		}
		all = append(all, fall{from: at, to: i, amount: top - v})
		top, at = v, i
	}
	return all
}
