package collect

import (
	"math"
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

// Reported is a number read by one poll: it had this value at some moment between the poll's start
// and its end, in seconds.
type Reported struct{ Start, End, Value float64 }

// leastCertain is the share of a rate that must be certain for [Rate] to return it. A rate that may
// be up to a fifth lower is still useful, and its interval shows that.
const leastCertain = 0.8

// Rate returns the growth per second of a number during an activity between the times from and to,
// as read by polls in temporal order. It compares the last poll that ended before from with the
// first poll that began after to. If there is no such poll before (or after), the time is counted
// from the middle of the first poll (or to the middle of the last).
//
// Not everything that the later poll saw need have come within the time: a system that buffers data
// may pass them on afterwards, until that poll. lo is the least that came: the growth seen by the
// polls that ended within the time, or all growth divided by the time until the end of the later
// poll, whichever is more. If it is below leastCertain of the whole, the polls cannot determine a
// rate, and value is NaN. hi is the most that it can be: the growth between the two polls divided
// by the shortest time that it can have taken. All are NaN if there is no such pair of polls.
func Rate(reported []Reported, from, to float64) (value, lo, hi float64) {
	if len(reported) < 2 || !(to > from) {
		return math.NaN(), math.NaN(), math.NaN()
	}
	before, after := reported[0], reported[len(reported)-1]
	var within *Reported // the last poll that ended within the time, except after
	for i, p := range slices.Backward(reported) {
		if p.End <= from {
			before = p
			break
		}
		if p.Start >= to {
			after = p
		} else if within == nil && p.End <= to && i < len(reported)-1 {
			within = &reported[i]
		}
	}
	a, b := max(from, (before.Start+before.End)/2), min(to, (after.Start+after.End)/2)
	if !(b > a) {
		return math.NaN(), math.NaN(), math.NaN()
	}
	grown := after.Value - before.Value
	value = grown / (b - a)
	slowest, fastest := grown/(after.End-max(from, before.Start)), value
	if shortest := min(to, after.Start) - max(from, before.End); shortest > 0 {
		fastest = grown / shortest
	}
	if within != nil {
		if seen := (within.Value - before.Value) / (b - a); math.Abs(value-seen) < math.Abs(value-slowest) {
			slowest = seen
		}
	}
	lo, hi = min(value, slowest, fastest), max(value, slowest, fastest)
	if math.Abs(slowest) < leastCertain*math.Abs(value) {
		value = math.NaN()
	}
	return value, lo, hi
}
