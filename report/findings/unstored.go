package findings

import (
	"fmt"
	"math"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// What counts as a time in which nothing was stored is told by the load test itself:
// see [StoringPauses]. Beside that it is longer than StallPut times what puts of
// objects as large as those under way take.
const (
	// stallPolls polls are what can be seen.
	stallPolls = 3
	// StallShare of the time in which something was to be stored is what matters.
	StallShare = 1e-3
	// stallUsual times the median of the stallNear pauses before and after: a system
	// that gets slower does not stall.
	stallUsual = 5
	stallNear  = 10
	// StallPut is how often a put may take what is usual.
	StallPut = 3
	// longStall is a time, in seconds, that is a stall where nothing tells what is
	// usual, as when nothing is stored from the beginning: a day.
	longStall = 86400
)

// StoringPauses is from how long on, in seconds, each of the pauses between two signs
// of something stored, in their order, is none of the usual ones. every is the time
// from poll to poll, and whole that in which something was to be stored. It is the
// longest of
//
//   - what can be seen, and what matters,
//   - what [LongPause] makes of the pauses; a day, where those are too few,
//   - and a multiple of the pauses near it.
func StoringPauses(pauses []float64, every, whole float64) []float64 {
	limit := LongPause(pauses)
	if math.IsInf(limit, 1) {
		limit = longStall
	}
	limit = max(stallPolls*every, StallShare*whole, limit)
	limits := make([]float64, len(pauses))
	for i := range pauses {
		var near []float64
		for j := max(0, i-stallNear); j < min(len(pauses), i+stallNear+1); j++ {
			if j != i {
				near = append(near, pauses[j])
			}
		}
		limits[i] = limit
		if near != nil {
			limits[i] = max(limit, stallUsual*stats.Median(near))
		}
	}
	return limits
}

// Unstored are the times in which a load test stored nothing.
type Unstored struct {
	Name  string
	Times []Standstill
}

// Standstill is one of them, in seconds since the test began.
type Standstill struct {
	From, To float64
	Limit    float64 // seconds that count, here
	Open     bool    // it was not over when the watching ended
	Objects  int64   // under way all the while
	Bytes    int64   // of them
	GivenUp  int64   // tried in it, and given up
	Polls    int     // in it
	Failed   int     // of those, with a call that was not answered
	NoRoom   bool    // by the system's word, no server took more
}

// standstillsNamed is how many of a load test are named one by one.
const standstillsNamed = 5

// NothingStored: what was under way did not move.
func NothingStored(all []Unstored) []Finding {
	f := Finding{Rule: "stalled", Tone: Warn, Title: "Nothing was stored for a while",
		Text: fmt.Sprintf("Objects were under way and the session ran, and none was accepted, none became durable and the bytes of the storage servers did not grow. What counts is told by the run itself: more than %d polls, %s of the time in which something was to be stored, %d times the pauses that are usual in it and near that moment, and %d times what puts of such objects take; a day, where too little was stored to tell what is usual. Time between sessions, without polls, or idle on purpose does not count.", stallPolls, words.Percent(StallShare), stallUsual, StallPut)}
	for _, u := range all {
		sum := 0.0
		for i, s := range u.Times {
			sum += s.To - s.From
			if i < standstillsNamed {
				f.Evidence = append(f.Evidence, u.Name+": "+s.words())
			}
		}
		if n := len(u.Times); n > standstillsNamed {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s more, %s altogether", u.Name, words.Count(int64(n-standstillsNamed)), words.Moment(sum)))
		}
	}
	return withEvidence(f)
}

func (s *Standstill) words() string {
	text := fmt.Sprintf("nothing for %s, from %s to %s after the beginning", words.Moment(s.To-s.From), words.Moment(s.From), words.Moment(s.To))
	if s.Open {
		text = fmt.Sprintf("nothing for the last %s, from %s after the beginning on", words.Moment(s.To-s.From), words.Moment(s.From))
	}
	if s.Objects > 0 {
		text += fmt.Sprintf("; %s (%s) under way", words.Plural(s.Objects, "object", "objects"), words.Show(float64(s.Bytes), "B"))
	}
	if s.GivenUp > 0 {
		text += fmt.Sprintf("; %s tried in vain and given up", words.Plural(s.GivenUp, "object", "objects"))
	}
	if s.Failed > 0 {
		text += fmt.Sprintf("; %s of %s in it not wholly answered", words.Count(int64(s.Failed)), words.Plural(int64(s.Polls), "poll", "polls"))
	}
	if s.NoRoom {
		text += "; no contract was good for uploads"
	}
	return text + fmt.Sprintf("; longer than %s counts", words.Moment(s.Limit))
}

// Filled is what tells whether the storage of a load test is full.
type Filled struct {
	Name      string
	Stored    int64
	Bytes     float64     // of them
	Latest    float64     // when the last was stored, seconds since the test began
	Last      *Standstill // nil: there was none
	NoRoom    int64       // objects that the system had no room for, by its own word
	WhyNoRoom string      // of the latest
	Ended     string      // what the exit condition of full storage said; empty: it did not end the test
}

// StorageFull: it took objects, and then no more. That is said by the system's own
// word alone, once: storing nothing may have other reasons.
func StorageFull(all []Filled) []Finding {
	f := Finding{Rule: "storage-full", Tone: Warn, Title: "The storage is full",
		Text: "The system stored objects until then, and by its own word has no room for more: nothing is wrong with the network or with this test. What it could hold is what was stored."}
	for i := range all {
		if s := all[i].words(); s != "" {
			f.Evidence = append(f.Evidence, all[i].Name+": "+s)
		}
	}
	return withEvidence(f)
}

// words say since when it is full, and by what word; empty: it is not.
func (x *Filled) words() string {
	at, why := x.Latest, ""
	if s := x.Last; s != nil && s.NoRoom && s.Open {
		at, why = s.From, "no contract is good for uploads"
	}
	if x.NoRoom > 0 {
		why = fmt.Sprintf("%s, the latest: %s", words.Plural(x.NoRoom, "object was not stored for it", "objects were not stored for it"), words.Clip(x.WhyNoRoom, mostQuoted))
	}
	if x.Ended != "" {
		why = strings.TrimPrefix(x.Ended, "the system can take no more: ")
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("since %s after the beginning, with %s (%s) stored; %s", words.Moment(at), words.Plural(x.Stored, "object", "objects"), words.Show(x.Bytes, "B"), why)
}
