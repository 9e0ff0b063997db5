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

// series holds the values of one reading. Each is the state at some moment between the start
// and the end of its poll, in seconds since the trial's epoch.
type series []collect.Reported

func mid(r collect.Reported) float64 { return (r.Start + r.End) / 2 }

// upTo returns the last value of the polls that began at or before start, or NaN.
func (s series) upTo(start float64) float64 {
	for _, r := range slices.Backward(s) {
		if r.Start <= start {
			return r.Value
		}
	}
	return nan
}

// find returns the index of the first poll that began at or after start.
func (s series) find(start float64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].Start >= start })
}

// at returns the value of the poll that began exactly at start, or NaN.
func (s series) at(start float64) float64 {
	if i := s.find(start); i < len(s) && s[i].Start == start {
		return s[i].Value
	}
	return nan
}

// level returns the last value of a series.
func (s series) level() analysis.Point {
	last := s[len(s)-1]
	return analysis.Point{At: mid(last), Value: last.Value, Lo: nan, Hi: nan}
}

// rate returns the change per second over a series, with the bounds that follow from the
// unknown moments of reading.
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

// around returns the median and the range of a series.
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

// gapPolls is the multiple of the median interval above which two values are a gap in a line.
const gapPolls = 3

// points reduces a series to about mostPoints: one for each stretch, and one without a value
// for each gap.
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

// readings holds what the polls of a trial read.
type readings struct {
	values      map[string]series
	latency     series // total time of a poll's calls, for polls that made all calls
	calls       map[string]bool
	polls       int
	end         float64 // of the last poll
	missed      int64   // polls of the schedule that were left out
	failed      int64   // calls without an answer
	trouble     []*trouble
	first, last map[string]*big.Int // amounts of money
	used        collect.Used
	wealth      []entry
}

// entry is the sum of wallet and contracts at a poll, which is constant in a closed system.
type entry struct {
	start, end float64
	level      *big.Int // smallest unit
	moved      float64  // sum of the absolute changes of its parts since the previous poll
}

// trouble is one kind of problem that leaves gaps in polls. All its occurrences make one span,
// even over months.
type trouble struct {
	what, subject, class string // "call failed", "/renter/files", "timeout"
	count                int64
	from, to             float64
	detail               string // of the first occurrence
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
	w := &readings{values: map[string]series{}, calls: map[string]bool{}, first: map[string]*big.Int{},
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
	if amount := w.used.Sum; amount != nil && paid {
		read(moneyUsed, system.Money("", amount).Value)
	}
	if parts == 2 {
		w.wealth = append(w.wealth, wealth)
	}
}

// answers adds the results of a poll's calls, and their total time.
func (w *readings) answers(p *record.Poll) {
	took, timed := 0.0, 0
	for _, c := range p.Calls {
		w.calls[c.Name] = true
		class := collect.Class(c.Error)
		if c.Error != "" {
			w.failed++
			w.met("call failed", c.Name, class, c.Error, c.Start.Seconds())
		}
		if c.Error == "" || class == "timeout" {
			timed, took = timed+1, took+(c.End-c.Start).Seconds()
		}
	}
	// A poll that skipped an expensive call or was refused one only looks faster: leave it out.
	if timed > 0 && timed >= len(w.calls) {
		w.latency = append(w.latency, collect.Reported{Start: p.Start.Seconds(), End: p.End.Seconds(), Value: took})
	}
}

// measure puts the metrics of polls, except for the bandwidth.
func (w *readings) measure(put func(string, float64)) {
	put("polls", float64(w.polls))
	put("polls_missed", float64(w.missed))
	put("poll_gaps", float64(w.failed))
	if v := w.values[system.ReadAbsolute]; len(v) > 1 {
		put("absolute_bytes", v[len(v)-1].Value-v[0].Value)
	}
	if amount := w.used.Sum; amount != nil {
		put("spent", system.Money("", amount).Value)
	}
	put("poll_p50", stats.Median(w.latency.values()))
}

// partsOfWealth holds the amounts whose sum is constant in a closed system, with their signs.
var partsOfWealth = map[string]int64{system.ReadBalance: 1, system.ReadIncoming: 1, system.ReadOutgoing: -1,
	system.ReadSpent: 1}

// moneyUsed is the derived reading of each poll for the money used up since the beginning.
const moneyUsed = "money_used"

func isPurpose(name string) bool { return strings.HasPrefix(name, system.ReadSpentPrefix) }
