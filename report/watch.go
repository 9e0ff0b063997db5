package report

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
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

// stored is when an object was stored, and how long that took.
type stored struct {
	at, took float64
	size     int64
	retried  bool // it needed several attempts, and took is of the last
}

// shelf is what became of the objects of a trial, those stored in the order in
// which they were.
type shelf struct {
	// Of more objects than [shelfMost] these are some, drawn by their index: each stands
	// for as many as there are to one of them.
	accepted, durable []stored
	bytes             []int64     // of the accepted ones so far
	slow              [2][]stored // of accepted and durable all that took long enough to be under way in a stall; only where they are some
	sparse            bool        // accepted or durable are some
	full, fullBytes   int64       // objects durable that were put, and their bytes
	fullAt, takenAt   float64     // latest of durable, and of accepted; 0: none
	settled           bool        // some were seen to become durable
	unstored          []attempt
	noRoom            int64  // of them, those that the system had no room for
	whyNoRoom         string // of the latest
	count             Objects
	first             float64 // the first put, also one in vain, began; 0: not known
	last              float64 // latest moment
	object            int64   // highest index
}

// shelved reads the jobs of a trial. settle is how long an object may take from
// accepted to durable; until is the end of what was watched.
func (in *input) shelved(trial int64, settle, until float64) (*shelf, error) {
	s := &shelf{object: -1, last: until}
	if in.jobs == nil {
		return s, nil
	}
	var accepted, durables someOf
	var slow [2]someOf
	var open []float64 // accepted at, not durable, and lately
	for j, err := range in.jobs(trial) {
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		s.object = max(s.object, j.Object)
		c := &s.count
		c.Attempts += int64(j.Attempts)
		if j.Attempts > 1 {
			c.Retried++
		}
		if began := j.Began.Seconds(); j.Attempts > 0 && began > 0 && (s.first == 0 || began < s.first) {
			s.first = began
		}
		if j.Adopted {
			c.Adopted++
		}
		at, durable := j.Accepted.Seconds(), j.Durable.Seconds()
		s.last = max(s.last, at, durable, j.Began.Seconds())
		switch j.State {
		case record.JobPutting, record.JobWaiting, record.JobFailed, record.JobRefused:
			s.unstored = append(s.unstored, attempt{j.Began.Seconds(), j.Size, j.State == record.JobFailed || j.State == record.JobRefused, j.Attempts > 1})
			if strings.Contains(j.Error, system.ErrQuota.Error()) {
				s.noRoom++
				s.whyNoRoom = j.Error
			}
		}
		switch j.State {
		case record.JobPutting:
			c.Putting++
		case record.JobWaiting:
			c.Waiting++
		case record.JobFailed:
			c.Failed++
		case record.JobRefused:
			c.Refused++
		case record.JobUnreadable:
			c.Unreadable++
		case record.JobMissing:
			c.Missing++
		case record.JobAccepted, record.JobDurable:
			c.Accepted++
			c.Bytes += j.Size
			took := at - j.Began.Seconds()
			if j.Adopted {
				took = math.NaN() // its times are those of the finding
			}
			x := stored{at, took, j.Size, j.Attempts > 1}
			s.takenAt = max(s.takenAt, at)
			accepted.add(j.Object, x)
			if until > 0 && took >= until*findings.StallShare/2 {
				slow[0].add(j.Object, x)
			}
			if j.State == record.JobAccepted {
				if open = append(open, at); len(open) >= shelfMost && len(open)&(len(open)-1) == 0 {
					open = slices.DeleteFunc(open, func(at float64) bool {
						if s.last-at > settle {
							c.NotDurable++
							return true
						}
						return false
					})
				}
				continue
			}
			c.Durable++
			s.settled = true
			if !j.Adopted {
				x = stored{durable, durable - j.Began.Seconds(), j.Size, j.Attempts > 1}
				durables.add(j.Object, x)
				s.full, s.fullBytes, s.fullAt = s.full+1, s.fullBytes+j.Size, max(s.fullAt, durable)
				if until > 0 && x.took >= until*findings.StallShare/2 {
					slow[1].add(j.Object, x)
				}
				if durable-at > settle {
					c.Late++
				}
			}
		}
	}
	if err := in.firstPut(trial, s); err != nil {
		return nil, err
	}
	for _, o := range open {
		if s.last-o > settle {
			s.count.NotDurable++
		}
	}
	s.accepted, s.durable, s.sparse = accepted.kept, durables.kept, accepted.skip+durables.skip > 0
	byTime := func(a, b stored) int { return cmp.Compare(a.at, b.at) }
	if s.sparse {
		s.slow = [2][]stored{slow[0].kept, slow[1].kept}
	}
	slices.SortStableFunc(s.accepted, byTime)
	slices.SortStableFunc(s.durable, byTime)
	total := int64(0)
	for _, x := range s.accepted {
		total += x.size
		s.bytes = append(s.bytes, total)
	}
	return s, nil
}

// shelfMost is how many objects of a load test are kept, so that the memory of a
// report does not grow with them. The times of a quarter of a million tell a median
// to a few thousandths of the spread.
const shelfMost = 1 << 18

// someOf keeps some of many objects: those whose index, well mixed, ends in skip
// zeros, so that no pattern in the sizes of a data set agrees with the choice.
type someOf struct {
	kept  []stored
	index []int64 // of those kept
	skip  int
}

func (d *someOf) add(object int64, x stored) {
	if !d.drawn(object) {
		return
	}
	d.kept, d.index = append(d.kept, x), append(d.index, object)
	for len(d.kept) > shelfMost {
		d.skip++
		n := 0
		for i, o := range d.index {
			if d.drawn(o) {
				d.kept[n], d.index[n] = d.kept[i], o
				n++
			}
		}
		d.kept, d.index = d.kept[:n], d.index[:n]
	}
}

// drawn mixes an index by the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func (d *someOf) drawn(object int64) bool {
	z := uint64(object) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return bits.TrailingZeros64(z) >= d.skip
}

// weight is how many objects, and bytes for one byte, an accepted one that was kept stands for.
func (s *shelf) weight() (objects, bytes float64) {
	if !s.sparse || len(s.accepted) == 0 {
		return 1, 1
	}
	return float64(s.count.Accepted) / float64(len(s.accepted)), float64(s.count.Bytes) / float64(max(1, s.bytes[len(s.bytes)-1]))
}

// lastAccepted is when the last object was accepted.
func (s *shelf) lastAccepted() float64 {
	if s.sparse {
		return s.takenAt
	}
	return s.accepted[len(s.accepted)-1].at
}

// firstPut corrects when the first put of a trial began: of an object that was tried
// again a job tells the latest attempt alone. A put that began before all of those was
// over, and is recorded, a deadline after them at the latest.
func (in *input) firstPut(trial int64, s *shelf) error {
	if s.count.Retried == 0 || in.ops == nil {
		return nil
	}
	until := math.Inf(1)
	if in.plan.Deadline > 0 {
		until = s.first + in.plan.Deadline
	}
	for op, err := range in.ops(trial) {
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if began := float64(op.Start) / 1e9; op.Kind == record.OpPut && began < s.first {
			s.first = began
		}
		if float64(op.LastByte)/1e9 > until {
			break
		}
	}
	return nil
}

// attempt is the latest one of an object that is not stored.
type attempt struct {
	began   float64
	size    int64
	over    bool // the object was given up
	retried bool // it was not the first
}

// by is how many objects were accepted by a moment, and their bytes.
func (s *shelf) by(at float64) (objects int, bytes float64) {
	n, _ := slices.BinarySearchFunc(s.accepted, at, func(x stored, at float64) int {
		if x.at <= at {
			return -1
		}
		return 1
	})
	if n == 0 {
		return 0, 0
	}
	each, size := s.weight()
	return int(math.Round(each * float64(n))), size * float64(s.bytes[n-1])
}
