package report

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// watch is what the polls of a trial told, a number of each reading for each
// poll: what its memory grows with. Times are seconds since the trial's epoch. A
// reading is the state at some moment between its poll's start and end; NaN is a
// gap.
type watch struct {
	start, end []float64
	values     map[string][]float64
	latency    []float64 // all calls of a poll together; NaN: one failed, or was not made
	least      []bool    // polls of which a call timed out: it took that long at least
	calls      []string  // in the order of a poll
	took       map[string][]float64
	missed     int64             // polls of the schedule that were left out
	failed     map[string]int64  // calls that were not answered
	why        map[string]string // in the words of the latest
	bad        map[string]int64  // readings that are not to be used
	absurd     map[string]string // why, of the latest
	resting    []bool            // polls that were answered, and left out a call: what it tells is not known then, and that is no gap

	decimals int // −1: not known
	parts    []string
	sum      account             // spent − its parts: 0
	wealth   account             // wallet + contracts: constant in a closed system
	first    map[string]*big.Int // amounts, exactly
	last     map[string]*big.Int

	made    map[string][2]int // first and last poll with a call
	apart   map[string]int    // most polls from one with it to the next
	answers []int             // calls of each poll; −1: one was not answered, or told something absurd
	asked   []int             // calls of each poll, answered or not
	counted []int             // parts behind each entry of sum
	summed  []int             // and of wealth
	before  map[string]*big.Int

	ended bool                        // the system tells what contracts that are over had used
	drops map[string]map[int]*big.Int // by how much an amount by purpose fell at a poll
	gone  map[string]*big.Int         // of such an amount, what left the account for good, at least
}

// partsOfWealth are the amounts that a closed system neither makes nor loses,
// and the sign with which they count.
var partsOfWealth = []struct {
	name string
	sign int64
}{{system.ReadBalance, 1}, {system.ReadIncoming, 1}, {system.ReadOutgoing, -1}, {system.ReadSpent, 1}}

// watched reads the polls of a trial.
func (in *input) watched(trial int64) (*watch, error) {
	w := newWatch()
	if in.polls == nil {
		return w, nil
	}
	for p, err := range in.polls(trial) {
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		w.add(&p)
	}
	w.close()
	return w, nil
}

func newWatch() *watch {
	return &watch{values: map[string][]float64{}, took: map[string][]float64{}, failed: map[string]int64{}, why: map[string]string{}, bad: map[string]int64{}, absurd: map[string]string{},
		decimals: -1, first: map[string]*big.Int{}, last: map[string]*big.Int{}, before: map[string]*big.Int{}, made: map[string][2]int{}, apart: map[string]int{}, drops: map[string]map[int]*big.Int{}, gone: map[string]*big.Int{}}
}

func (w *watch) add(p *record.Poll) {
	n := len(w.start)
	w.start, w.end = append(w.start, p.Start.Seconds()), append(w.end, p.End.Seconds())
	w.missed += int64(p.Missed)
	latency, answers, least := 0.0, len(p.Calls), false
	for _, c := range p.Calls {
		if made, ok := w.made[c.Name]; ok {
			w.apart[c.Name] = max(w.apart[c.Name], n-made[1])
			w.made[c.Name] = [2]int{made[0], n}
		} else {
			w.calls = append(w.calls, c.Name)
			w.made[c.Name] = [2]int{n, n}
		}
		if c.Error != "" {
			w.failed[c.Name]++
			w.why[c.Name] = c.Error
			if answers = -1; collect.Class(c.Error) != "timeout" {
				latency = math.NaN()
				continue
			}
			least = true // it would have taken longer still
		}
		took := (c.End - c.Start).Seconds()
		latency += took
		w.took[c.Name] = put(w.took[c.Name], n, took)
	}
	if len(p.Calls) == 0 {
		latency = math.NaN()
	}
	w.latency = append(w.latency, latency)
	amounts := map[string]*big.Int{}
	for _, v := range w.fold(p.Readings) {
		if v.Bad != "" {
			w.bad[v.Name]++
			w.absurd[v.Name] = v.Bad
			answers = -1
			continue
		}
		w.values[v.Name] = put(w.values[v.Name], n, v.Value)
		if v.Exact == "" {
			continue
		}
		exact, ok := new(big.Int).SetString(v.Exact, 10)
		if !ok {
			continue
		}
		amounts[v.Name] = exact
		if w.decimals < 0 {
			w.decimals = decimalsOf(exact, v.Value)
		}
		if w.first[v.Name] == nil {
			w.first[v.Name] = exact
		} else if was := w.last[v.Name]; exact.Cmp(was) < 0 && booked(v.Name) {
			if w.drops[v.Name] == nil {
				w.drops[v.Name] = map[int]*big.Int{}
			}
			w.drops[v.Name][n] = new(big.Int).Sub(was, exact)
		}
		w.last[v.Name] = exact
	}
	w.answers = append(w.answers, answers)
	w.asked, w.least = append(w.asked, len(p.Calls)), append(w.least, least)
	w.balance(n, amounts)
}

// put sets the n-th value, with gaps before it.
func put(values []float64, n int, v float64) []float64 {
	for len(values) < n {
		values = append(values, math.NaN())
	}
	return append(values[:n], v)
}

// balance enters a poll's amounts into the accounts.
func (w *watch) balance(n int, amounts map[string]*big.Int) {
	part := func(name string) bool {
		return name == system.ReadUnspent || strings.HasPrefix(name, system.ReadSpentPrefix)
	}
	moved := func(name string, now *big.Int) float64 {
		was := w.before[name]
		w.before[name] = now
		if was == nil {
			return 0
		}
		f, _ := new(big.Float).SetInt(new(big.Int).Sub(now, was)).Float64()
		return math.Abs(f)
	}
	change := map[string]float64{}
	for name, v := range amounts {
		change[name] = moved(name, v)
	}
	if spent := amounts[system.ReadSpent]; spent != nil {
		rest, many, by, sent := new(big.Int).Set(spent), 0, change[system.ReadSpent], 0.0
		for name, v := range amounts {
			if part(name) {
				rest.Sub(rest, v)
				by += change[name]
				many++
				if slices.Contains(ofData, strings.TrimPrefix(name, system.ReadSpentPrefix)) {
					f, _ := new(big.Float).SetInt(v).Float64()
					sent += f
				}
				if !slices.Contains(w.parts, name) {
					w.parts = append(w.parts, name)
				}
			}
		}
		if many > 1 { // a single part is the sum by another name
			w.sum.add(n, rest, by)
			w.sum.sent = append(w.sum.sent, sent)
			w.counted = append(w.counted, many)
		}
		if amounts[system.ReadBalance] != nil {
			level, by := new(big.Int), 0.0
			many := 0
			for _, p := range partsOfWealth {
				if v := amounts[p.name]; v != nil {
					level.Add(level, new(big.Int).Mul(v, big.NewInt(p.sign)))
					by += change[p.name]
					many++
				}
			}
			w.wealth.add(n, level, by)
			w.summed = append(w.summed, many)
		}
	}
}

func (a *account) add(poll int, level *big.Int, moved float64) {
	a.at, a.level, a.moved = append(a.at, poll), append(a.level, level), append(a.moved, moved)
}

// close gives all series one length, and leaves out of the sum the polls that
// lacked one of its parts.
func (w *watch) close() {
	n := len(w.start)
	for name, v := range w.values {
		w.values[name] = pad(v, n)
	}
	for _, name := range w.calls {
		w.took[name] = pad(w.took[name], n)
	}
	w.rest()
	w.leave()
	slices.Sort(w.parts)
	w.sum, w.wealth = w.sum.whole(w.counted), w.wealth.whole(w.summed)
}

// rest finds the polls that left out a call which others before and after them
// made: a call that is expensive for its system is not made each time. The time
// of such a poll is not to be compared with that of a whole one.
func (w *watch) rest() {
	change := make([]int, len(w.start)+1)
	for name, made := range w.made {
		change[made[0]]++
		// At the end of a test it rests, too; rests grow with the time that it takes.
		change[min(made[1]+1+2*w.apart[name], len(w.start))]--
	}
	w.resting = make([]bool, len(w.start))
	usual := 0
	for i, n := range w.answers {
		usual += change[i]
		w.resting[i] = n >= 0 && n < usual
		if w.resting[i] || w.asked[i] < usual {
			w.latency[i] = math.NaN()
		}
	}
}

// whole are the entries with all of the parts.
func (a *account) whole(parts []int) account {
	var kept account
	most := 0
	for _, n := range parts {
		most = max(most, n)
	}
	for i, n := range parts {
		if n == most {
			kept.add(a.at[i], a.level[i], a.moved[i])
			if a.sent != nil {
				kept.sent = append(kept.sent, a.sent[i])
			}
		}
	}
	return kept
}

func pad(v []float64, n int) []float64 {
	for len(v) < n {
		v = append(v, math.NaN())
	}
	return v
}

// decimalsOf are the decimals of a currency, of which an amount is told in its
// smallest unit and in the currency; −1: they do not tell.
func decimalsOf(exact *big.Int, value float64) int {
	f, _ := new(big.Float).SetInt(exact).Float64()
	if f == 0 || value == 0 {
		return -1
	}
	d := math.Log10(f / value)
	if math.Abs(d-math.Round(d)) > 1e-6 || d < -0.5 {
		return -1
	}
	return int(math.Round(d))
}

// latestAt is the last value of a series before or at a poll, and which poll told it;
// −1: none did.
func latestAt(v []float64, poll int) (float64, int) {
	for i := min(poll, len(v)-1); i >= 0; i-- {
		if !math.IsNaN(v[i]) {
			return v[i], i
		}
	}
	return math.NaN(), -1
}

// edge is the first and the last poll that told a reading; −1: none did.
func edge(v []float64) (first, last int) {
	first = slices.IndexFunc(v, func(x float64) bool { return !math.IsNaN(x) })
	_, last = latestAt(v, len(v)-1)
	return first, last
}

// rate is the change of a value per second between two polls, with what is not
// known of the moments at which they saw it.
func (w *watch) rate(v []float64, i, j int) (rate, lo, hi float64) {
	change := v[j] - v[i]
	longest, shortest := w.end[j]-w.start[i], w.start[j]-w.end[i]
	mid := (w.start[j]+w.end[j])/2 - (w.start[i]+w.end[i])/2
	lo, hi = change/longest, math.Inf(1)
	if shortest > 0 {
		hi = change / shortest
	}
	if change < 0 {
		lo, hi = hi, lo
	}
	if change == 0 {
		hi = 0
	}
	return change / mid, lo, hi
}

// every is the usual time from one poll to the next.
func (w *watch) every() float64 {
	var d []float64
	for i := 1; i < len(w.start); i++ {
		d = append(d, w.start[i]-w.start[i-1])
	}
	return middle(d)
}
