package report

import (
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Calls that time out are the slowest: they are not to make an API look quick.
func TestTimeoutsAreLatency(t *testing.T) {
	w := newWatch()
	for i := range 400 {
		at := time.Duration(i) * time.Hour
		c := record.PollCall{Name: "/renter/files", Start: at, End: at + 3*time.Second}
		if i > 100 && i%20 != 0 {
			c.End, c.Error = at+10*time.Minute, "timeout: no answer within 10m"
		} else if i == 50 {
			c.Error = "connection refused: nobody is there"
		}
		w.add(&record.Poll{Seq: int64(i), Start: at, End: c.End, Calls: []record.PollCall{c}})
	}
	w.close()
	l := &LoadTest{watch: w}
	l.latencies()
	if l.LatencyFirst.Value != 3 || l.FirstOpen != 0 || l.LatencyLast.Value != 600 || l.LastOpen < 0.5 {
		t.Errorf("first %+v (%v), last %+v (%v): the last polls time out after 600 s", l.LatencyFirst, l.FirstOpen, l.LatencyLast, l.LastOpen)
	}
	if e := latencyEntry(l.LatencyLast, l.LastOpen); e.Note == "" {
		t.Errorf("%+v does not say that calls timed out", e)
	}
}

// The time of a poll is that of all its calls: polls that leave out an expensive
// one tell nothing of it, also when another call timed out.
func TestLatencyIsOfAllCalls(t *testing.T) {
	w := newWatch()
	rest := time.Duration(0)
	for i := range 4000 {
		at := time.Duration(i) * time.Minute
		p := record.Poll{Seq: int64(i), Start: at, Calls: []record.PollCall{{Name: "stats", Start: at, End: at + 5*time.Millisecond}}}
		if i%37 == 5 {
			p.Calls[0].Error = "timeout: no answer within 5ms"
		}
		took := time.Second + time.Duration(i)*10*time.Millisecond // from 1 s to 41 s
		if at >= rest {
			p.Calls = append(p.Calls, record.PollCall{Name: "list", Start: at, End: at + took})
			rest = at + 20*took
		}
		p.End = at + took
		w.add(&p)
	}
	w.close()
	l := &LoadTest{watch: w}
	l.latencies()
	if l.LatencyFirst.Value > 3 || l.LatencyLast.Value < 38 {
		t.Errorf("a list that takes 1 s, then 41 s: %+v, %+v", l.LatencyFirst, l.LatencyLast)
	}
}
