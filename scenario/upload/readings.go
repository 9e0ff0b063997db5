package upload

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// readings is what the polls of a trial read: one number for each reading and poll, NaN
// where it is missing. A reading is the state at some moment between the start and the
// end of its poll, in seconds since the trial's epoch.
type readings struct {
	start, end    []float64
	values        map[string][]float64
	latency       []float64 // of all calls of a poll together; NaN: one failed, or was left out
	calls         map[string]bool
	missed        int64 // polls of the schedule that were left out
	failed        int64 // calls without an answer
	timedOut      int64 // polls with a call that timed out: they took that long at least
	trouble       []*trouble
	decimals      int                 // of the currency; −1: not known
	first, last   map[string]*big.Int // amounts of money
	used          collect.Used
	wealth        []entry
	endedReported bool // the system says what contracts that are over had used
}

// entry is wallet and contracts at a poll: their sum is constant in a closed system.
type entry struct {
	poll  int
	level *big.Int // smallest unit
	moved float64  // by how much its parts changed since the poll before, without their signs
}

// trouble is one kind of what polls met that stays a gap, so that months of it are one span.
type trouble struct {
	what, subject, class string // "call failed", "/renter/files", "timeout"
	count                int64
	from, to             float64
	detail               string // of the first time
}

// mostTrouble is how many kinds of trouble are distinguished; all others are one kind of
// failed calls, and one of readings that are not used.
const mostTrouble = 50

func (w *readings) met(what, subject, class, detail string, at float64) {
	find := func() int {
		return slices.IndexFunc(w.trouble, func(k *trouble) bool {
			return k.what == what && k.subject == subject && k.class == class
		})
	}
	i := find()
	if i < 0 && len(w.trouble) >= mostTrouble {
		subject, class = "others", ""
		i = find()
	}
	if i < 0 {
		i = len(w.trouble)
		w.trouble = append(w.trouble, &trouble{what: what, subject: subject, class: class, from: at, detail: detail})
	}
	w.trouble[i].count++
	w.trouble[i].to = at
}

func readPolls(in *scenario.Measured) *readings {
	w := &readings{values: map[string][]float64{}, calls: map[string]bool{}, decimals: -1, first: map[string]*big.Int{},
		last: map[string]*big.Int{}}
	for p := range scenario.Stream(in.Polls) {
		w.add(&p)
	}
	for name := range w.values {
		w.values[name] = gaps(w.values[name], len(w.start))
	}
	return w
}

// gaps makes values as long as n, with NaN.
func gaps(values []float64, n int) []float64 {
	for len(values) < n {
		values = append(values, nan)
	}
	return values
}

func (w *readings) add(p *record.Poll) {
	n := len(w.start)
	w.start, w.end = append(w.start, p.Start.Seconds()), append(w.end, p.End.Seconds())
	w.missed += int64(p.Missed)
	w.latency = append(w.latency, w.took(p))
	w.used.Add(p.Readings)
	wealth, moved, parts, paid := new(big.Int), 0.0, 0, false
	readings, reported := collect.WithEnded(p.Readings)
	w.endedReported = w.endedReported || reported
	for _, r := range readings {
		if r.Bad != "" {
			w.met("reading not used", r.Name, "", r.Bad, p.Start.Seconds())
			continue
		}
		w.values[r.Name] = append(gaps(w.values[r.Name], n)[:n], r.Value)
		exact, ok := new(big.Int).SetString(r.Exact, 10)
		if !ok {
			continue
		}
		paid = paid || isPurpose(r.Name) || r.Name == system.ReadSpent
		if d, known := system.Decimals(exact, r.Value); known && w.decimals < 0 {
			w.decimals = d
		}
		if w.first[r.Name] == nil {
			w.first[r.Name] = exact
		}
		if sign := partsOfWealth[r.Name]; sign != 0 {
			wealth.Add(wealth, new(big.Int).Mul(exact, big.NewInt(sign)))
			if was := w.last[r.Name]; was != nil {
				moved += math.Abs(float(minus(exact, was)))
			}
			if r.Name == system.ReadBalance || r.Name == system.ReadSpent {
				parts++
			}
		}
		w.last[r.Name] = exact
	}
	if amount, decimals, known := w.used.Sum(); known && paid {
		w.values[moneyUsed] = append(gaps(w.values[moneyUsed], n)[:n], collect.Float(amount, decimals))
	}
	if parts == 2 {
		w.wealth = append(w.wealth, entry{n, wealth, moved})
	}
}

// took is how long the calls of a poll took together; NaN: not all of them were made.
func (w *readings) took(p *record.Poll) float64 {
	took, timed, open := 0.0, 0, false
	for _, c := range p.Calls {
		w.calls[c.Name] = true
		class := collect.Class(c.Error)
		if c.Error != "" {
			w.failed++
			w.met("call failed", c.Name, class, c.Error, c.Start.Seconds())
		}
		if c.Error == "" || class == "timeout" {
			timed, took, open = timed+1, took+(c.End-c.Start).Seconds(), open || c.Error != ""
		}
	}
	if open {
		w.timedOut++
	}
	// A poll that left out an expensive call, or was refused one, is no faster.
	if timed == 0 || timed < len(w.calls) {
		return nan
	}
	return took
}

// known are the values that are no gaps.
func known(v []float64) []float64 { return slices.DeleteFunc(slices.Clone(v), math.IsNaN) }

// partsOfWealth are the amounts that a closed system neither makes nor loses, and the
// sign with which they count.
var partsOfWealth = map[string]int64{system.ReadBalance: 1, system.ReadIncoming: 1, system.ReadOutgoing: -1,
	system.ReadSpent: 1}

// moneyUsed is the money used up since the beginning, as a reading of each poll.
const moneyUsed = "money_used"

func isPurpose(name string) bool { return strings.HasPrefix(name, system.ReadSpentPrefix) }

// latest is the last value of a reading up to a poll, and which poll read it; −1: none.
func latest(v []float64, poll int) (float64, int) {
	for i := min(poll, len(v)-1); i >= 0; i-- {
		if !math.IsNaN(v[i]) {
			return v[i], i
		}
	}
	return nan, -1
}

// now is the last value of a reading; NaN: none.
func (w *readings) now(name string) float64 {
	v, _ := latest(w.values[name], len(w.start))
	return v
}

// edge is the first and the last poll with a reading; −1: none.
func edge(v []float64) (first, last int) {
	first = slices.IndexFunc(v, func(x float64) bool { return !math.IsNaN(x) })
	_, last = latest(v, len(v))
	return first, last
}

func (w *readings) mid(i int) float64 { return (w.start[i] + w.end[i]) / 2 }

// moments are when polls began and ended, and the middles, in order.
func (w *readings) moments() []float64 {
	all := slices.Concat(w.start, w.end)
	for i := range w.start {
		all = append(all, w.mid(i))
	}
	slices.Sort(all)
	return all
}

// rate is the change of a value per second between two polls, with the bounds that the
// unknown moments of reading leave.
func (w *readings) rate(v []float64, i, j int) (p analysis.Point) {
	p = analysis.Point{At: nan, Value: nan, Lo: nan, Hi: nan}
	if i < 0 || j <= i { // no poll knows the value, or one alone
		return p
	}
	p.At = w.mid(j)
	change := v[j] - v[i]
	p.Value, p.Lo = change/(w.mid(j)-w.mid(i)), change/(w.end[j]-w.start[i])
	if shortest := w.start[j] - w.end[i]; shortest > 0 {
		p.Hi = change / shortest
	}
	if change < 0 {
		p.Lo, p.Hi = p.Hi, p.Lo
	}
	return p
}

// reported are a reading's values in the form of package collect.
func (w *readings) reported(v []float64) (all []collect.Reported) {
	for i, x := range v {
		if !math.IsNaN(x) {
			all = append(all, collect.Reported{Start: w.start[i], End: w.end[i], Value: x})
		}
	}
	return all
}

// gapPolls is how many times the usual distance of two values breaks a line.
const gapPolls = 3

// points are a series of the polls that know a value: a point for each stretch of them,
// and one without a value in each gap.
func (w *readings) points(v []float64, of func(i, j int) analysis.Point) (all []analysis.Point) {
	var known []int
	var apart []float64
	for i, x := range v {
		if n := len(known); n > 0 && !math.IsNaN(x) {
			apart = append(apart, w.start[i]-w.start[known[n-1]])
		}
		if !math.IsNaN(x) {
			known = append(known, i)
		}
	}
	gap, i := gapPolls*stats.Median(apart), 0
	each := (len(known) + mostPoints - 1) / mostPoints // polls of a stretch
	for n := 1; n < len(known); n++ {
		switch {
		case apart[n-1] > gap:
			all = append(all, analysis.Point{At: w.mid(known[n]), Value: nan, Lo: nan, Hi: nan})
			i = n
		case n-i >= each || n == len(known)-1:
			all = append(all, of(known[i], known[n]))
			i = n
		}
	}
	return all
}

const (
	// A change counts when it lasts for so many polls and so long: a transaction waits
	// for its block, and the calls of a poll are not made at once.
	heldPolls   = 5
	heldSeconds = 30 * 60
	// slack is how much of what moved between neighbouring polls one poll may see twice,
	// or not at all; rounding is the share of the amounts that is never a change.
	slack    = 2
	rounding = 1e-9
	// noisy is how many times the usual movement a poll may have and still show a level.
	noisy = 3
	// fallShare is the share by which a counter may fall: systems round.
	fallShare = 1e-3
)

// change is by how much wallet and contracts together differ at the end from the
// beginning, and between which polls they left that level; nil: not at all. held: for
// long enough to be no money under way.
func (w *readings) change() (amount *big.Int, from, to int, held bool) {
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
	var calm []entry // while more moves than usual, there is no level
	var within []float64
	for i, e := range w.wealth {
		if off[i] <= noisy*usual {
			calm, within = append(calm, e), append(within, off[i])
		}
	}
	n := len(calm)
	if n < 2*heldPolls {
		return nil, 0, 0, false
	}
	level := typical(calm[:heldPolls])
	same := func(i int) bool { return math.Abs(float(minus(calm[i].level, level))) <= within[i] }
	i := n
	for i > 0 && !same(i-1) {
		i--
	}
	if i == n || i == 0 {
		return nil, 0, 0, false
	}
	held = n-i >= heldPolls && w.end[calm[n-1].poll]-w.start[calm[i].poll] >= heldSeconds
	return minus(typical(calm[max(i, n-heldPolls):]), level), calm[i-1].poll, calm[i].poll, held
}

// typical is the median level.
func typical(all []entry) *big.Int {
	all = slices.SortedFunc(slices.Values(all), func(a, b entry) int { return a.level.Cmp(b.level) })
	return all[len(all)/2].level
}

// falls reports between which polls a counter fell, and stayed below for long enough.
func falls(values []float64) (from, to int, fell bool) {
	top, at, below := math.Inf(-1), 0, 0
	for i, v := range values {
		switch {
		case math.IsNaN(v):
		case v >= top-fallShare*math.Abs(top):
			top, at, below = max(top, v), i, 0
		default:
			if below++; below == 1 {
				to = i
			}
			if below == heldPolls {
				return at, to, true
			}
		}
	}
	return 0, 0, false
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
