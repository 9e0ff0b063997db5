package upload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Months of trouble are a bounded number of events: the first of each kind, then
// how often it came; a later session repeats nothing.
func TestTroubleIsBounded(t *testing.T) {
	poll := func(hour int) record.Poll {
		return record.Poll{
			Start:    time.Duration(hour) * time.Hour,
			Calls:    []record.PollCall{{Name: "/wallet", Start: time.Duration(hour) * time.Hour, Error: fmt.Sprintf("timeout: no answer within %dms", hour)}},
			Readings: []record.Reading{{Name: "height", Bad: fmt.Sprintf("fell from %d to 3", hour)}, {Name: "files", Value: 3}},
		}
	}
	var y trouble
	events := 0
	for hour := range 5000 {
		y.add(poll(hour))
		for _, e := range y.begun() {
			if events++; hour > 0 || e.At.IsZero() {
				t.Errorf("hour %d: %+v", hour, e)
			}
		}
	}
	last := y.ended()
	if events != 2 || len(last) != 2 || !strings.Contains(last[0].Detail, "/wallet, timeout: 5000 times so far, from 0 s to 208 d 7 h") || !strings.Contains(last[1].Detail, "height, fell from: 5000 times") {
		t.Errorf("%d events, then %v", events, last)
	}
	if again := append(y.begun(), y.ended()...); len(again) > 0 {
		t.Errorf("told twice: %v", again)
	}

	var next trouble // of a session that reads what an earlier one recorded
	next.add(poll(1))
	next.known()
	next.add(record.Poll{})
	if told := append(next.begun(), next.ended()...); len(told) > 0 {
		t.Errorf("a later session tells %v", told)
	}
	next.add(poll(2))
	if told := append(next.begun(), next.ended()...); len(told) != 2 || !strings.Contains(told[0].Detail, "2 times so far, from 1 h to 2 h") {
		t.Errorf("a later session tells %v", told)
	}

	var many trouble
	for i := range 10_000 {
		many.add(record.Poll{Calls: []record.PollCall{{Name: fmt.Sprint("/", i), Error: "failed: x"}}, Readings: []record.Reading{{Name: fmt.Sprint(i), Bad: "negative: -1"}}})
	}
	if n := len(many.begun()) + len(many.ended()); n > 2*mostTrouble+4 {
		t.Errorf("%d events", n)
	}
}
