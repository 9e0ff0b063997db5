package upload

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// series are the values of one reading, as polls read them: each is the state at some
// moment between the start and the end of its poll, in seconds since the trial's epoch.
type series []collect.Reported

func mid(r collect.Reported) float64 { return (r.Start + r.End) / 2 }

// upTo is the last value of the polls that began up to a moment; NaN: there is none.
func (s series) upTo(start float64) float64 {
	for _, r := range slices.Backward(s) {
		if r.Start <= start {
			return r.Value
		}
	}
	return nan
}

// find is the place of the first poll that began at a moment, or later.
func (s series) find(start float64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].Start >= start })
}

// at is the value of the poll that began at a moment; NaN: it has none.
func (s series) at(start float64) float64 {
	if i := s.find(start); i < len(s) && s[i].Start == start {
		return s[i].Value
	}
	return nan
}

// level is what a stretch of a series ends at.
func (s series) level() analysis.Point {
	last := s[len(s)-1]
	return analysis.Point{At: mid(last), Value: last.Value, Lo: nan, Hi: nan}
}

// rate is the change per second over a stretch, with the bounds that the unknown moments of
// reading leave.
func (s series) rate() analysis.Point {
	if len(s) < 2 {
		return analysis.Point{At: nan, Value: nan, Lo: nan, Hi: nan}
	}
	a, b := s[0], s[len(s)-1]
	change := b.Value - a.Value
	p := analysis.Point{At: mid(b), Value: change / (mid(b) - mid(a)), Lo: change / (b.End - a.Start), Hi: nan}
	if shortest := b.Start - a.End; shortest > 0 {
		p.Hi = change / shortest
	}
	if change < 0 {
		p.Lo, p.Hi = p.Hi, p.Lo
	}
	return p
}

// around is the median of a stretch, and its range.
func (s series) around() analysis.Point {
	v := s.values()
	return analysis.Point{At: mid(s[len(s)-1]), Value: stats.Median(v), Lo: slices.Min(v), Hi: slices.Max(v)}
}

func (s series) values() (all []float64) {
	for _, r := range s {
		all = append(all, r.Value)
	}
	return all
}

// gapPolls is how many times the usual distance of two values breaks a line.
const gapPolls = 3

// points are mostPoints of a series: one for each stretch of it, and one without a value in each gap.
func (s series) points(of func(series) analysis.Point) (all []analysis.Point) {
	var apart []float64
	for i := 1; i < len(s); i++ {
		apart = append(apart, s[i].Start-s[i-1].Start)
	}
	gap, from := gapPolls*stats.Median(apart), 0
	each := (len(s) + mostPoints - 1) / mostPoints // polls of a stretch
	for i := 1; i < len(s); i++ {
		switch {
		case apart[i-1] > gap:
			all = append(all, analysis.Point{At: mid(s[i]), Value: nan, Lo: nan, Hi: nan})
			from = i
		case i-from >= each || i == len(s)-1:
			all = append(all, of(s[from:i+1]))
			from = i
		}
	}
	return all
}

// readings is what the polls of a trial read.
type readings struct {
	values      map[string]series
	latency     series // of all calls of a poll together, where each was made
	calls       map[string]bool
	polls       int
	end         float64 // of the last poll
	missed      int64   // polls of the schedule that were left out
	failed      int64   // calls without an answer
	timedOut    int64   // polls with a call that timed out: they took that long at least
	trouble     []*trouble
	decimals    int                 // of the currency; −1: not known
	first, last map[string]*big.Int // amounts of money
	used        collect.Used
	wealth      []entry
}

// entry is wallet and contracts at a poll: their sum is constant in a closed system.
type entry struct {
	start, end float64
	level      *big.Int // smallest unit
	moved      float64  // by how much its parts changed since the poll before, without their signs
}

// trouble is one kind of what polls met that stays a gap, so that months of it are one span.
type trouble struct {
	what, subject, class string // "call failed", "/renter/files", "timeout"
	count                int64
	from, to             float64
	detail               string // of the first time
}

func (w *readings) met(what, subject, class, detail string, at float64) {
	i := slices.IndexFunc(w.trouble, func(k *trouble) bool {
		return k.what == what && k.subject == subject && k.class == class
	})
	if i < 0 {
		i = len(w.trouble)
		w.trouble = append(w.trouble, &trouble{what: what, subject: subject, class: class, from: at, detail: detail})
	}
	w.trouble[i].count++
	w.trouble[i].to = at
}

func readPolls(in *scenario.Measured) *readings {
	w := &readings{values: map[string]series{}, calls: map[string]bool{}, decimals: -1, first: map[string]*big.Int{},
		last: map[string]*big.Int{}}
	for p := range in.Polls {
		w.add(&p)
	}
	return w
}

func (w *readings) add(p *record.Poll) {
	poll := collect.Reported{Start: p.Start.Seconds(), End: p.End.Seconds()}
	read := func(name string, v float64) {
		poll.Value = v
		w.values[name] = append(w.values[name], poll)
	}
	w.polls++
	w.end = max(w.end, poll.End)
	w.missed += int64(p.Missed)
	w.answers(p)
	w.used.Add(p.Readings)
	wealth, parts, paid := entry{poll.Start, poll.End, new(big.Int), 0}, 0, false
	for _, r := range collect.WithEnded(p.Readings) {
		if r.Bad != "" {
			w.met("reading not used", r.Name, "", r.Bad, poll.Start)
			continue
		}
		read(r.Name, r.Value)
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
			wealth.level.Add(wealth.level, new(big.Int).Mul(exact, big.NewInt(sign)))
			if was := w.last[r.Name]; was != nil {
				wealth.moved += math.Abs(float(minus(exact, was)))
			}
			if r.Name == system.ReadBalance || r.Name == system.ReadSpent {
				parts++
			}
		}
		w.last[r.Name] = exact
	}
	if amount, decimals, known := w.used.Sum(); known && paid {
		read(moneyUsed, collect.Float(amount, decimals))
	}
	if parts == 2 {
		w.wealth = append(w.wealth, wealth)
	}
}

// answers adds how the calls of a poll went, and how long they took together.
func (w *readings) answers(p *record.Poll) {
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
	if timed > 0 && timed >= len(w.calls) {
		w.latency = append(w.latency, collect.Reported{Start: p.Start.Seconds(), End: p.End.Seconds(), Value: took})
	}
}

// partsOfWealth are the amounts that a closed system neither makes nor loses, and the
// sign with which they count.
var partsOfWealth = map[string]int64{system.ReadBalance: 1, system.ReadIncoming: 1, system.ReadOutgoing: -1,
	system.ReadSpent: 1}

// moneyUsed is the money used up since the beginning, as a reading of each poll.
const moneyUsed = "money_used"

func isPurpose(name string) bool { return strings.HasPrefix(name, system.ReadSpentPrefix) }

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

// lost is by how much wallet and contracts together are less at the end than at the
// beginning, for long enough to be no money under way, and between which polls they left
// that level; nil: they are not.
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
	var calm []entry // while more moves than usual, there is no level
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

// typical is the median level.
func typical(all []entry) *big.Int {
	all = slices.SortedFunc(slices.Values(all), func(a, b entry) int { return a.level.Cmp(b.level) })
	return all[len(all)/2].level
}

// falls reports between which polls a counter fell, and stayed below for long enough.
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
