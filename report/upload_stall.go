package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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

// What counts as a stall is told by the run itself. It is longer than
//
//   - stallPolls polls: less cannot be seen,
//   - stallShare of the time in which something was to be stored: less does not matter,
//   - what [findings.LongPause] makes of the pauses between two signs of progress; a
//     day, where those are too few,
//   - stallUsual times the median of the stallNear pauses before and after it, since
//     a system that gets slower does not stall,
//   - stallPut times what puts of objects as large as those under way take.
const (
	stallPolls = 3
	stallShare = 1e-3
	stallUsual = 5
	stallNear  = 10
	stallPut   = 3
)

// sight is of something stored: it was between the two moments.
type sight struct{ from, to float64 }

// stalled fills in when nothing was stored.
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
	limit := l.usualPause(pauses, whole)
	for i, p := range pauses {
		near := stallUsual * nearby(pauses, i)
		if p.to-p.from < max(limit, near) {
			continue
		}
		s := Stall{From: Num(p.from), To: Num(p.to), Within: Num(p.within), Until: Num(p.until)}
		largest := l.underWay(&s)
		s.Limit = Num(max(limit, near, stallPut*l.usualPut(largest)))
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

// longStall is a time, in seconds, that is a stall where nothing tells what is usual,
// as when nothing is stored from the beginning: a day.
const longStall = 86400

// usualPause is how long a pause must be to be none of the usual ones.
func (l *LoadTest) usualPause(pauses []pause, whole float64) float64 {
	seen := make([]float64, len(pauses))
	for i, p := range pauses {
		seen[i] = p.seen
	}
	limit := findings.LongPause(seen)
	if math.IsInf(limit, 1) {
		limit = longStall
	}
	return max(stallPolls*l.watch.every(), stallShare*whole, limit)
}

// nearby is the median of the pauses beside one.
func nearby(all []pause, i int) float64 {
	var seen []float64
	for j := max(0, i-stallNear); j < min(len(all), i+stallNear+1); j++ {
		if j != i {
			seen = append(seen, all[j].seen)
		}
	}
	if seen == nil {
		return 0
	}
	return middle(seen)
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
	f := Finding{Rule: "stalled", Tone: Warn, Title: "Nothing was stored for a while",
		Text: fmt.Sprintf("Objects were under way and the session ran, and none was accepted, none became durable and the bytes of the storage servers did not grow. What counts is told by the run itself: more than %d polls, %s of the time in which something was to be stored, %d times the pauses that are usual in it and near that moment, and %d times what puts of such objects take; a day, where too little was stored to tell what is usual. Time between sessions, without polls, or idle on purpose does not count.", stallPolls, shareWords(stallShare), stallUsual, stallPut)}
	for i := range r.Loads {
		l := &r.Loads[i]
		sum := Num(0)
		for j := range l.Stalls {
			s := &l.Stalls[j]
			sum += s.seconds()
			if j < stallsShown {
				f.Evidence = append(f.Evidence, l.name()+": "+s.words())
			}
		}
		if n := len(l.Stalls); n > stallsShown {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s more, %s altogether", l.name(), count(int64(n-stallsShown)), moment(sum)))
		}
	}
	return withEvidence(f)
}

// stallsShown is how many stalls of a load test are named one by one.
const stallsShown = 5

func (s *Stall) words() string {
	text := fmt.Sprintf("nothing for %s, from %s to %s after the beginning", moment(s.seconds()), moment(s.From), moment(s.To))
	if !s.Until.Known() {
		text = fmt.Sprintf("nothing for the last %s, from %s after the beginning on", moment(s.seconds()), moment(s.From))
	}
	if s.Objects > 0 {
		text += fmt.Sprintf("; %s (%s) under way", plural(s.Objects, "object", "objects"), show(float64(s.Bytes), "B"))
	}
	if s.GivenUp > 0 {
		text += fmt.Sprintf("; %s tried in vain and given up", plural(s.GivenUp, "object", "objects"))
	}
	if s.Failed > 0 {
		text += fmt.Sprintf("; %s of %s in it not wholly answered", count(int64(s.Failed)), plural(int64(s.Polls), "poll", "polls"))
	}
	if s.NoRoom {
		text += "; no contract was good for uploads"
	}
	return text + fmt.Sprintf("; longer than %s counts", moment(s.Limit))
}

// storageFull: it took objects, and then no more.
func storageFull(r *Report) []Finding {
	f := Finding{Rule: "storage-full", Tone: Warn, Title: "The storage is full",
		Text: "The system stored objects until then, and by its own word has no room for more: nothing is wrong with the network or with this test. What it could hold is what was stored."}
	for i := range r.Loads {
		l := &r.Loads[i]
		n := len(l.shelf.accepted)
		at := 0.0
		if n > 0 {
			at = l.shelf.lastAccepted()
		}
		why := ""
		if k := len(l.Stalls); k > 0 && l.Stalls[k-1].NoRoom && !l.Stalls[k-1].Until.Known() {
			at, why = float64(l.Stalls[k-1].From), "no contract is good for uploads"
		}
		if l.shelf.noRoom > 0 {
			why = fmt.Sprintf("%s, the latest: %s", plural(l.shelf.noRoom, "object was not stored for it", "objects were not stored for it"), clip(l.shelf.whyNoRoom, 120))
		}
		if l.Ended == "storage_full" {
			why = strings.TrimPrefix(l.Why, "the system can take no more: ")
		}
		if why != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: since %s after the beginning, with %s (%s) stored; %s", l.name(), moment(Num(at)), plural(l.Objects.Accepted, "object", "objects"), show(float64(l.Bytes), "B"), why))
		}
	}
	return withEvidence(f)
}
