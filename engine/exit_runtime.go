package engine

import (
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// maxRuntime ends the run when it has lasted long enough.
type maxRuntime struct{ limit time.Duration }

func (maxRuntime) Name() string { return "max_runtime" }

func (c maxRuntime) Met(p progressSoFar) (string, bool) {
	if p.Seconds < c.limit.Seconds() {
		return "", false
	}
	return fmt.Sprintf("the run has lasted %s, the limit is %s", record.Span(time.Duration(p.Seconds*float64(time.Second))), record.Span(c.limit)), true
}

// The events with which a session begins.
const (
	runBegins  = "run begins"
	runResumed = "run resumed"
)

// earlierSeconds is how long the earlier sessions of a run lasted: each from its
// first event to the last that is known of it, an event or the end of a trial's
// load, because one that was killed left no event of its end. A trial that went
// on in a later session tells nothing of the end of its first one: its seconds
// span the time between them. last is that of the latest session.
func earlierSeconds(events []record.Event, trials []record.Trial) (sum float64, last time.Time) {
	var begun time.Time
	seen := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	end := func(before time.Time) {
		if begun.IsZero() {
			return
		}
		for _, t := range trials {
			ended := t.Epoch.Add(time.Duration(t.Seconds * float64(time.Second)))
			if !t.Epoch.Before(begun) && (before.IsZero() || ended.Before(before)) {
				seen(ended)
			}
		}
		sum += last.Sub(begun).Seconds()
	}
	for _, e := range events {
		if e.Kind == "phase" && (e.What == runBegins || e.What == runResumed) {
			end(e.At)
			begun, last = e.At, e.At
		}
		seen(e.At)
	}
	end(time.Time{})
	return sum, last
}
