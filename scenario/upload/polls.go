package upload

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// polls is what the polls of a trial read: one number for each reading and poll, NaN
// where it is missing. A reading is the state at some moment between the start and the
// end of its poll, in seconds since the trial's epoch.
type polls struct {
	start, end []float64
	values     map[string][]float64
	latency    []float64 // of all calls of a poll together; NaN: one failed, or was left out
	timedOut   int64     // of those, polls with a call that timed out: they took that long at least
	calls      map[string]bool
	missed     int64 // polls of the schedule that were left out
	failed     int64 // calls without an answer
	absurd     int64 // readings that make no sense

	decimals      int                 // of the currency; −1: not known
	first, last   map[string]*big.Int // amounts of money
	before        map[string]*big.Int
	spending      account                     // the total less its parts
	wealth        account                     // wallet and contracts
	contractsTold bool                        // the system tells what contracts that are over had used
	drops         map[string]map[int]*big.Int // by how much spending for a purpose fell, at a poll
	gone          map[string]*big.Int         // of that, what contracts took with them, at least
}

func readPolls(facts *record.Reader, trial int64) (*polls, error) {
	w := &polls{values: map[string][]float64{}, calls: map[string]bool{}, decimals: -1, first: map[string]*big.Int{}, last: map[string]*big.Int{},
		before: map[string]*big.Int{}, drops: map[string]map[int]*big.Int{}, gone: map[string]*big.Int{}}
	for p, err := range facts.Polls(trial) {
		if err != nil {
			return nil, err
		}
		w.add(&p)
	}
	for name, v := range w.values {
		w.values[name] = put(v, len(w.start), 0)[:len(w.start)]
	}
	for name, drops := range w.drops {
		for _, f := range falls(w.values[name]) {
			if by := drops[f.to]; by != nil {
				w.gone[name] = plus(w.gone[name], by)
			}
		}
	}
	w.spending, w.wealth = w.spending.whole(), w.wealth.whole()
	return w, nil
}

func (w *polls) add(p *record.Poll) {
	n := len(w.start)
	w.start, w.end = append(w.start, p.Start.Seconds()), append(w.end, p.End.Seconds())
	w.missed += int64(p.Missed)
	took, timed, open := 0.0, 0, false
	for _, c := range p.Calls {
		w.calls[c.Name] = true
		timeout := c.Error != "" && collect.Class(c.Error) == "timeout"
		if c.Error != "" {
			w.failed++
		}
		if c.Error == "" || timeout {
			timed, took, open = timed+1, took+(c.End-c.Start).Seconds(), open || timeout
		}
	}
	// A poll that left out an expensive call, or was refused one, is no faster.
	if timed == 0 || timed < len(w.calls) {
		took = math.NaN()
	} else if open {
		w.timedOut++
	}
	w.latency = append(w.latency, took)
	readings, told := collect.WithEnded(p.Readings)
	w.contractsTold = w.contractsTold || told
	amounts := map[string]*big.Int{}
	for _, r := range readings {
		if r.Bad != "" {
			w.absurd++
			continue
		}
		w.values[r.Name] = put(w.values[r.Name], n, r.Value)
		exact, ok := new(big.Int).SetString(r.Exact, 10)
		if !ok {
			continue
		}
		amounts[r.Name] = exact
		if d, known := system.Decimals(exact, r.Value); known && w.decimals < 0 {
			w.decimals = d
		}
		if was := w.last[r.Name]; was == nil {
			w.first[r.Name] = exact
		} else if exact.Cmp(was) < 0 && isPurpose(r.Name) {
			if w.drops[r.Name] == nil {
				w.drops[r.Name] = map[int]*big.Int{}
			}
			w.drops[r.Name][n] = minus(was, exact)
		}
		w.last[r.Name] = exact
	}
	w.enter(n, amounts)
}

// put sets the n-th value, with gaps before it.
func put(values []float64, n int, v float64) []float64 {
	for len(values) < n {
		values = append(values, math.NaN())
	}
	return append(values[:n], v)
}

// ofData are the purposes of money that is spent in step with data.
var ofData = []string{"storage", "upload", "download"}

// enter adds a poll's amounts to the accounts.
func (w *polls) enter(n int, amounts map[string]*big.Int) {
	moved := map[string]float64{}
	for name, now := range amounts {
		if was := w.before[name]; was != nil {
			moved[name] = math.Abs(float(minus(now, was)))
		}
		w.before[name] = now
	}
	spent := amounts[system.ReadSpent]
	if spent == nil {
		return
	}
	e := entry{poll: n, level: new(big.Int).Set(spent), moved: moved[system.ReadSpent]}
	for name, v := range amounts {
		if name == system.ReadUnspent || isPurpose(name) {
			e.level.Sub(e.level, v)
			e.moved += moved[name]
			e.parts++
			if slices.Contains(ofData, strings.TrimPrefix(name, system.ReadSpentPrefix)) {
				e.sent += float(v)
			}
		}
	}
	if e.parts > 1 { // a single part is the total by another name
		w.spending = append(w.spending, e)
	}
	if amounts[system.ReadBalance] == nil {
		return
	}
	e = entry{poll: n, level: new(big.Int)}
	for name, sign := range map[string]int64{system.ReadBalance: 1, system.ReadIncoming: 1, system.ReadOutgoing: -1, system.ReadSpent: 1} {
		if v := amounts[name]; v != nil {
			e.level.Add(e.level, new(big.Int).Mul(v, big.NewInt(sign)))
			e.moved += moved[name]
			e.parts++
		}
	}
	w.wealth = append(w.wealth, e)
}

func isPurpose(name string) bool { return strings.HasPrefix(name, system.ReadSpentPrefix) }

// latest is the last value of a reading up to a poll, and which poll read it; −1: none.
func latest(v []float64, poll int) (float64, int) {
	for i := min(poll, len(v)-1); i >= 0; i-- {
		if !math.IsNaN(v[i]) {
			return v[i], i
		}
	}
	return math.NaN(), -1
}

// edge is the first and the last poll with a reading; −1: none.
func edge(v []float64) (first, last int) {
	first = slices.IndexFunc(v, func(x float64) bool { return !math.IsNaN(x) })
	_, last = latest(v, len(v)-1)
	return first, last
}

func (w *polls) mid(i int) float64 { return (w.start[i] + w.end[i]) / 2 }

// rate is the change of a value per second between two polls, with the bounds that the
// unknown moments of reading leave.
func (w *polls) rate(v []float64, i, j int) (rate, lo, hi float64) {
	change := v[j] - v[i]
	lo, hi = change/(w.end[j]-w.start[i]), math.NaN()
	if shortest := w.start[j] - w.end[i]; shortest > 0 {
		hi = change / shortest
	}
	if change < 0 {
		lo, hi = hi, lo
	}
	return change / (w.mid(j) - w.mid(i)), lo, hi
}

// told are a reading's values in the form of package collect.
func (w *polls) told(v []float64) (all []collect.Told) {
	for i, x := range v {
		if !math.IsNaN(x) {
			all = append(all, collect.Told{Start: w.start[i], End: w.end[i], Value: x})
		}
	}
	return all
}

// moving is the time in which any of some readings changed; all of it, if none did.
func (w *polls) moving(names ...string) (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, name := range names {
		before, v := -1, w.values[name]
		for i := range v {
			if math.IsNaN(v[i]) {
				continue
			}
			if before >= 0 && v[i] != v[before] {
				from, to = min(from, w.mid(before)), max(to, w.mid(i))
			}
			before = i
		}
	}
	if from > to {
		return 0, math.Inf(1)
	}
	return from, to
}

// every is the usual time from one poll to the next, in seconds.
func (w *polls) every() float64 {
	var d []float64
	for i := 1; i < len(w.start); i++ {
		d = append(d, w.start[i]-w.start[i-1])
	}
	return stats.Median(d)
}

// stretch is two polls that a point of a series rests on; gap: it is the time without
// values before the next.
type stretch struct {
	i, j int
	gap  bool
}

// gapPolls is how many polls in a row may be missing before a line is broken.
const gapPolls = 3

// stretches divides the polls that know a value into at most so many of about equal
// length, none of which reaches over a gap.
func (w *polls) stretches(v []float64, most int) (all []stretch) {
	var known []int
	var apart []float64
	for i, x := range v {
		if math.IsNaN(x) {
			continue
		}
		if n := len(known); n > 0 {
			apart = append(apart, w.start[i]-w.start[known[n-1]])
		}
		known = append(known, i)
	}
	if len(known) < 2 {
		return nil
	}
	width := (w.end[known[len(known)-1]] - w.start[known[0]]) / float64(most)
	gap := gapPolls * max(w.every(), stats.Median(apart))
	i := known[0]
	for n, k := range known[1:] {
		before := known[n]
		switch {
		case apart[n] > gap:
			if before > i {
				all = append(all, stretch{i: i, j: before})
			}
			all = append(all, stretch{i: before, j: k, gap: true})
			i = k
		case w.start[k]-w.start[i] >= width || n == len(known)-2:
			all = append(all, stretch{i: i, j: k})
			i = k
		}
	}
	return all
}
