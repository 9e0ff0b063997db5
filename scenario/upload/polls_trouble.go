package upload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
)

// What an event about polls is found again by.
const (
	whatGap    = "call of a poll failed"
	whatAbsurd = "reading not used"
)

// mostTrouble is how many kinds of trouble are distinguished; all further trouble
// shares one kind for each event.
const mostTrouble = 50

// trouble is what polls met that stays a gap, by kind: so that months of it are
// a few events, of which each has its moment.
type trouble struct{ kinds []*troubleKind }

type troubleKind struct {
	event, subject, class string // "call of a poll failed", "/renter/files", "timeout"
	count, told           int64  // times; as an event last said
	first, last           time.Duration
	detail                string // of the first time
}

// add takes a poll.
func (y *trouble) add(p record.Poll) {
	for _, c := range p.Calls {
		if c.Error != "" {
			y.count(whatGap, c.Name, collect.Class(c.Error), c.Error, c.Start)
		}
	}
	for _, r := range p.Readings {
		if r.Bad != "" {
			y.count(whatAbsurd, r.Name, absurdity(r.Bad), r.Bad, p.Start)
		}
	}
}

// absurdity is what is wrong with a reading, without the number that is.
func absurdity(bad string) string {
	class, _, _ := strings.Cut(bad, ":")
	if i := strings.IndexAny(class, "-0123456789"); i >= 0 {
		class = class[:i]
	}
	return strings.TrimSpace(class)
}

func (y *trouble) count(event, subject, class, detail string, at time.Duration) {
	i := slices.IndexFunc(y.kinds, func(k *troubleKind) bool { return k.event == event && k.subject == subject && k.class == class })
	if i < 0 && len(y.kinds) >= mostTrouble {
		subject, class = "others", ""
		i = slices.IndexFunc(y.kinds, func(k *troubleKind) bool { return k.event == event && k.subject == subject })
	}
	if i < 0 {
		i = len(y.kinds)
		y.kinds = append(y.kinds, &troubleKind{event: event, subject: subject, class: class, first: at, detail: detail})
	}
	k := y.kinds[i]
	k.count++
	k.last = at
}

// known marks all trouble so far as reported by events of earlier sessions.
func (y *trouble) known() {
	for _, k := range y.kinds {
		k.told = k.count
	}
}

// begun are events about kinds of which no event has reported any yet.
func (y *trouble) begun() (events []record.Event) {
	for _, k := range y.kinds {
		if k.told == 0 {
			k.told = k.count
			events = append(events, k.eventOf(fmt.Sprintf("%s, %s after the trial began: %s", k.subject, record.Span(k.first), k.detail)))
		}
	}
	return events
}

// ended are events about kinds that have come again since the last event about them.
func (y *trouble) ended() (events []record.Event) {
	for _, k := range y.kinds {
		if k.count == k.told {
			continue
		}
		k.told = k.count
		what := k.subject
		if k.class != "" {
			what += ", " + k.class
		}
		events = append(events, k.eventOf(fmt.Sprintf("%s: %d times so far, from %s to %s after the trial began", what, k.count, record.Span(k.first), record.Span(k.last))))
	}
	return events
}

func (k *troubleKind) eventOf(detail string) record.Event {
	return record.Event{At: time.Now(), Kind: "note", What: k.event, Detail: detail}
}
