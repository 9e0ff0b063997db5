package report

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/plimsoll-project/plimsoll/report/findings"
)

// An account is a sum of amounts of money that a law keeps at one level, as
// each poll told it.
type account struct {
	at    []int      // the poll
	level []*big.Int // smallest unit
	moved []float64  // by how much its parts changed since the poll before, summed without their signs
	sent  []float64  // of a sum: what storing and moving data cost so far
	drift []float64  // how far the level may be off beside that; nil: not at all
}

// The level of an account has changed for good when it stays changed for so many
// polls and so long; the rules tell both.
const (
	heldPolls   = findings.HeldPolls
	heldSeconds = findings.HeldSeconds
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

// firstPolls is how many polls in a row tell the level that an account begins with.
const firstPolls = 3

// noisy is how many times the usual movement of an account a poll may have and
// still tell its level.
const noisy = 3

// shifts finds where an account leaves its level for good. A nil level is the
// account's own first one. scale is the size of the amounts that it is made of;
// start and end are the moments of the polls.
func (a *account) shifts(level *big.Int, scale float64, start, end []float64) []shift {
	var tolerance []float64 // of what the calls of one poll may see differently
	for i := range a.at {
		t := slack*a.moved[i] + rounding*scale
		if i+1 < len(a.at) {
			t += slack * a.moved[i+1]
		}
		tolerance = append(tolerance, t)
	}
	// While more moves than usual, a level is not to be told.
	var calm account
	var off []float64
	for i, usual := 0, middle(tolerance); i < len(a.at); i++ {
		if tolerance[i] <= noisy*usual {
			calm.add(a.at[i], a.level[i], a.moved[i])
			if a.drift != nil {
				tolerance[i] += a.drift[i]
			}
			off = append(off, tolerance[i])
		}
	}
	return returned(calm.steps(level, off, start, end), scale, start, end)
}

// steps are the shifts of an account whose level is known at each poll to within
// off.
func (a *account) steps(level *big.Int, off, start, end []float64) []shift {
	n := len(a.at)
	if n < heldPolls {
		return nil
	}
	base := level
	if base == nil {
		base = a.level[0]
	}
	values := make([]float64, n) // above the base, which keeps small changes of large amounts apart
	for i, v := range a.level {
		values[i], _ = new(big.Float).SetInt(new(big.Int).Sub(v, base)).Float64()
	}
	// until is the first entry after i that does not stay at i's level.
	until := func(i int) int {
		j := i + 1
		for j < n && math.Abs(values[j]-values[i]) <= max(off[i], off[j]) {
			j++
		}
		return j
	}
	long := func(i, j int) bool {
		return j-i >= heldPolls && end[a.at[j-1]]-start[a.at[i]] >= heldSeconds
	}
	i, now := 0, new(big.Int).Set(base) // the level, exactly
	if level == nil {
		for i < n && until(i)-i < firstPolls && !long(i, until(i)) {
			i++
		}
		if i == n {
			return nil
		}
		now = a.typical(values, i, until(i))
	}
	var all []shift
	for ; i < n; i++ {
		at, _ := new(big.Float).SetInt(new(big.Int).Sub(now, base)).Float64()
		if math.Abs(values[i]-at) <= off[i] {
			continue
		}
		j := until(i)
		held := long(i, j)
		if !held && (j < n || j-i < heldPolls) {
			continue // money under way, or a change that goes on
		}
		then := a.typical(values, i, j)
		amount := new(big.Int).Sub(then, now)
		change, _ := new(big.Float).SetInt(new(big.Int).Abs(amount)).Float64()
		from := max(i-1, 0) // go back to where it was clearly on its level
		for from > 0 && math.Abs(values[from]-at) > change/4 {
			from--
		}
		all = append(all, shift{from: a.at[from], to: a.at[i], amount: amount, held: held})
		now, i = then, j-1
	}
	return all
}

// returnSeconds is how long money may be under way: after that, an equal amount
// that comes in is another one.
const returnSeconds = 6 * 3600

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
	sum := new(big.Int).Add(a, b)
	left, _ := new(big.Float).SetInt(sum.Abs(sum)).Float64()
	whole, _ := new(big.Float).SetInt(new(big.Int).Abs(a)).Float64()
	return left <= 0.01*whole+rounding*scale
}

// typical is the median level of a stretch.
func (a *account) typical(values []float64, i, j int) *big.Int {
	order := make([]int, 0, j-i)
	for k := i; k < j; k++ {
		order = append(order, k)
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(values[x], values[y]) })
	return a.level[order[len(order)/2]]
}

// fall is a counter that went down, for good.
type fall struct {
	from, to int     // between these polls
	amount   float64 // how far, above 0
}

// fallShare is the share of a counter by which it may go down without a word.
const fallShare = findings.FallShare

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
