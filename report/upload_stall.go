package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/system"
)

// Stall is a time in which nothing was stored, though objects were under way and
// the session ran: none was accepted, none became durable, and the bytes of the
// storage servers did not grow. Times are seconds since the test began.
type Stall struct {
	From    Num   `json:"from"`     // the last sight of something stored
	To      Num   `json:"to"`       // nothing was until then
	Within  Num   `json:"within"`   // it began after this, at the earliest
	Until   Num   `json:"until"`    // and was over by then, at the latest; null: it was not, when the watching ended
	Limit   Num   `json:"limit"`    // seconds that count as a stall, here
	Objects int64 `json:"objects"`  // under way all the while, or again and again
	Bytes   int64 `json:"bytes"`    // of them
	GivenUp int64 `json:"given_up"` // tried in it, and given up
	Polls   int   `json:"polls"`    // in it
	Failed  int   `json:"failed"`   // of those, with a call that was not answered
	NoRoom  bool  `json:"no_room"`  // by the system's word, no server took more
}

func (s *Stall) seconds() Num { return s.To - s.From }

// sight is of something stored: it was between the two moments.
type sight struct{ from, to float64 }

// stalled fills in when nothing was stored. What counts is told by the run itself: by
// its pauses ([findings.StoringPauses]), and by what its puts take.
func (l *LoadTest) stalled() {
	l.Stalls = []Stall{}
	if l.info.plan.Upload == nil || l.Polls.N < 2 {
		return
	}
	spans := l.wanted()
	sights := l.sights()
	var pauses []pause
	whole := 0.0
	for _, s := range spans {
		whole += s.to - s.from
		pauses = append(pauses, pausesIn(s, sights)...)
	}
	seen := make([]float64, len(pauses))
	for i, p := range pauses {
		seen[i] = p.seen
	}
	limits := findings.StoringPauses(seen, l.watch.every(), whole)
	for i, p := range pauses {
		if p.to-p.from < limits[i] {
			continue
		}
		s := Stall{From: Num(p.from), To: Num(p.to), Within: Num(p.within), Until: Num(p.until)}
		largest := l.underWay(&s)
		s.Limit = Num(max(limits[i], findings.StallPut*l.usualPut(largest)))
		if s.seconds() < s.Limit || s.Objects+s.GivenUp == 0 {
			continue
		}
		if p.open {
			s.Until = unknown
		}
		l.watch.during(&s)
		l.Stalls = append(l.Stalls, s)
	}
}

// stint is a time in which objects were to be stored and we were there to see it.
type stint struct {
	from, to float64
	last     bool // to is the end of what was watched
}

// wanted is the time in which objects were to be stored: from the first put to the
// last acceptance, or, where some were never accepted, to the last poll. What is
// between sessions, pauses of the design, and times without polls are no part of
// it; after each it goes on with the next put.
func (l *LoadTest) wanted() []stint {
	w, s := l.watch, l.shelf
	begun := slices.Clone(s.unstored)
	for _, x := range s.accepted {
		if !math.IsNaN(x.took) {
			begun = append(begun, attempt{began: x.at - x.took, size: x.size})
		}
	}
	if len(begun) == 0 || len(w.start) < 2 {
		return nil
	}
	slices.SortFunc(begun, func(a, b attempt) int { return cmp.Compare(a.began, b.began) })
	end := begun[len(begun)-1].began
	if len(s.accepted) > 0 {
		end = max(end, s.lastAccepted())
	}
	watched := w.end[len(w.end)-1]
	last := s.count.Putting+s.count.Waiting > 0
	if last {
		end = watched
	}
	end = min(end, watched)
	not := slices.Clone(l.away)
	for _, p := range l.phases {
		if p.what == "idle" {
			not = append(not, [2]float64{p.from, p.to})
		}
	}
	gap := gapPolls * max(w.every(), middle(w.spans()))
	not = append(not, [2]float64{0, w.start[0]})
	for i := 1; i < len(w.start); i++ {
		if w.start[i]-w.end[i-1] > gap {
			not = append(not, [2]float64{w.end[i-1], w.start[i]})
		}
	}
	slices.SortFunc(not, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	not = append(not, [2]float64{end, math.Inf(1)})
	var all []stint
	from := 0.0
	for _, x := range not {
		i, _ := slices.BinarySearchFunc(begun, from, func(a attempt, at float64) int { return cmp.Compare(a.began, at) })
		if i < len(begun) {
			if a, b := begun[i].began, min(x[0], end); b > a {
				all = append(all, stint{a, b, last && b == end})
			}
		}
		from = max(from, x[1])
	}
	return all
}

// sights are all that was seen of progress, by when it was over at the latest.
func (l *LoadTest) sights() []sight {
	var all []sight
	for _, list := range [][]stored{l.shelf.accepted, l.shelf.durable, l.shelf.slow[0], l.shelf.slow[1]} {
		for _, s := range list {
			all = append(all, sight{s.at, s.at})
		}
	}
	v := l.watch.values[system.ReadAbsolute]
	before := -1
	for i, x := range v {
		if math.IsNaN(x) {
			continue
		}
		if before >= 0 && x > v[before] {
			all = append(all, sight{l.watch.start[before], l.watch.end[i]})
		}
		before = i
	}
	slices.SortFunc(all, func(a, b sight) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) })
	return all
}

// pause is a time between two sights of progress: nothing was stored from from to
// to; it began after within, and ended before until.
type pause struct {
	from, to, within, until float64
	seen                    float64 // from sight to sight
	open                    bool    // not over when the watching ended
}

func pausesIn(s stint, sights []sight) []pause {
	var all []pause
	first, _ := slices.BinarySearchFunc(sights, s.from, func(x sight, at float64) int { return cmp.Compare(x.to, at) })
	last := sight{s.from, s.from}
	for _, x := range sights[first:] {
		if x.from >= s.to {
			break
		}
		x.to = min(x.to, s.to)
		all = append(all, pause{from: last.to, to: max(last.to, x.from), within: max(s.from, last.from), until: x.to, seen: x.to - last.to})
		last = x
	}
	if s.to > last.to {
		all = append(all, pause{from: last.to, to: s.to, within: max(s.from, last.from), until: s.to, seen: s.to - last.to, open: s.last})
	}
	return all
}

// underWay counts what was under way in a stall, for nine tenths of it at least,
// and gives the size of the largest of it. Of an object that was tried several
// times only the last attempt is known: it counts where that ended later.
func (l *LoadTest) underWay(s *Stall) (largest int64) {
	from, to := float64(s.From), float64(s.To)
	add := func(began, done float64, size int64, retried bool) {
		part := min(done, to) - max(began, from)
		if part >= 0.9*(to-from) || retried && began < to && done >= to {
			s.Objects++
			s.Bytes += size
			largest = max(largest, size)
		}
	}
	for _, o := range l.shelf.unstored {
		switch {
		case !o.over:
			add(o.began, math.Inf(1), o.size, o.retried)
		case o.began >= from && o.began < to:
			s.GivenUp++
		}
	}
	list, slow := l.shelf.accepted, l.shelf.slow[0]
	if l.info.plan.Upload.Slot != "accepted" && l.shelf.settled {
		list, slow = l.shelf.durable, l.shelf.slow[1] // a slot is held until then
	}
	if l.shelf.sparse {
		list = slow // of what is kept of the others, none was under way for so long
	}
	for _, x := range list {
		if !math.IsNaN(x.took) {
			add(x.at-x.took, x.at, x.size, x.retried)
		}
	}
	return largest
}

// usualPut is what puts of objects as large as that take: the median of those that
// are half as large and larger, or, of fewer than five, of the largest ones, each
// taken for as much longer as it is smaller.
func (l *LoadTest) usualPut(size int64) float64 {
	if size == 0 {
		return 0
	}
	all := slices.DeleteFunc(slices.Clone(l.shelf.accepted), func(x stored) bool { return math.IsNaN(x.took) })
	slices.SortStableFunc(all, func(a, b stored) int { return cmp.Compare(b.size, a.size) })
	var took []float64
	for _, x := range all {
		if 2*x.size < size && len(took) >= 5 {
			break
		}
		took = append(took, x.took*max(1, float64(size)/float64(max(1, x.size))))
	}
	if len(took) == 0 {
		return 0
	}
	return middle(took)
}

// during looks at the polls within a stall.
func (w *watch) during(s *Stall) {
	good := w.values[system.ReadGoodContracts]
	for i := range w.start {
		if w.start[i] < float64(s.From) || w.end[i] > float64(s.To) {
			continue
		}
		s.Polls++
		if w.answers[i] < 0 {
			s.Failed++
		}
		if i < len(good) && good[i] == 0 {
			s.NoRoom = true
		}
	}
}

// nothingStored: what was under way did not move.
func nothingStored(r *Report) []Finding {
	var all []findings.Unstored
	for i := range r.Loads {
		u := findings.Unstored{Name: r.Loads[i].name()}
		for j := range r.Loads[i].Stalls {
			u.Times = append(u.Times, r.Loads[i].Stalls[j].still())
		}
		all = append(all, u)
	}
	return findings.NothingStored(all)
}

// still is a stall as rules look at it.
func (s *Stall) still() findings.Standstill {
	return findings.Standstill{From: float64(s.From), To: float64(s.To), Limit: float64(s.Limit), Open: !s.Until.Known(), Objects: s.Objects, Bytes: s.Bytes, GivenUp: s.GivenUp,
		Polls: s.Polls, Failed: s.Failed, NoRoom: s.NoRoom}
}

// storageFull: it took objects, and then no more.
func storageFull(r *Report) []Finding {
	var all []findings.Filled
	for i := range r.Loads {
		l := &r.Loads[i]
		x := findings.Filled{Name: l.name(), Stored: l.Objects.Accepted, Bytes: float64(l.Bytes), NoRoom: l.shelf.noRoom, WhyNoRoom: l.shelf.whyNoRoom}
		if len(l.shelf.accepted) > 0 {
			x.Latest = l.shelf.lastAccepted()
		}
		if n := len(l.Stalls); n > 0 {
			last := l.Stalls[n-1].still()
			x.Last = &last
		}
		if l.Ended == "storage_full" {
			x.Ended = l.Why
		}
		all = append(all, x)
	}
	return findings.StorageFull(all)
}
