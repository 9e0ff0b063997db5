package upload

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// polls asks a system how it is beside a trial, and adds up what it says over
// all sessions of the trial.
type polls struct {
	site    scenario.Site
	node    system.Node
	journal scenario.Journal
	now     func() time.Duration
	every   time.Duration
	paid    *record.Event // what was spent before the trial; nil: its polls, or its events, report all of it
	told    func()        // called after each poll; nil: none

	mu        sync.Mutex
	tally     pollTally
	collector *collect.Collector
	restored  time.Duration // end of the last poll of earlier sessions that reported absolute bytes; negative: none did
}

// pollTally adds up polls.
type pollTally struct {
	count, missed, gaps int64 // polls; those of the schedule left out; calls without an answer
	next                int64 // number of the next
	latest              time.Duration
	calls               map[string]bool // that the system has
	took                []float64       // seconds that the calls of each poll that made all took together
	absolute            change
	used                collect.Used
	trouble             trouble
}

// change is the series of a number over the polls that reported it.
type change struct {
	told []collect.Told
	end  time.Duration // of the last of them
}

func (c *change) add(p record.Poll, v float64) {
	c.told, c.end = append(c.told, collect.Told{Start: p.Start.Seconds(), End: p.End.Seconds(), Value: v}), p.End
}

// gained is by how much the number grew from the first to the last of them.
func (c *change) gained() float64 { return c.told[len(c.told)-1].Value - c.told[0].Value }

// until is when the last of them was over; negative: there is none.
func (c *change) until() time.Duration {
	if len(c.told) == 0 {
		return -1
	}
	return c.end
}

func newPolls(site scenario.Site, node system.Node, sink scenario.Sink, every time.Duration) *polls {
	return &polls{site: site, node: node, journal: sink.Journal, now: sink.Now, every: every, paid: sink.Paid, restored: -1}
}

// add takes one poll.
func (y *pollTally) add(p record.Poll) {
	y.count++
	y.missed += int64(p.Missed)
	y.next = max(y.next, p.Seq+1)
	y.latest = max(y.latest, p.Start)
	y.trouble.add(p)
	if y.calls == nil {
		y.calls = map[string]bool{}
	}
	var took time.Duration
	timed := 0
	for _, c := range p.Calls {
		y.calls[c.Name] = true
		if c.Error != "" {
			y.gaps++
		}
		if c.Error == "" || collect.Class(c.Error) == "timeout" {
			timed++
			took += c.End - c.Start
		}
	}
	// A poll that left a call out that rests, or was refused one, is no faster.
	if timed > 0 && timed == len(y.calls) {
		y.took = append(y.took, took.Seconds())
	}
	for _, r := range p.Readings {
		if r.Name == system.ReadAbsolute && r.Bad == "" {
			y.absolute.add(p, r.Value)
		}
	}
	y.used.Add(p.Readings)
}

// restore adds the polls of earlier sessions, and what was known before the first.
func (p *polls) restore() error {
	paid := p.paid
	for e, err := range p.journal.EarlierEvents() {
		if err != nil {
			return err
		}
		if collect.Before(e) != nil {
			paid = &e
		}
	}
	if paid != nil {
		p.tally.used.Add(collect.Before(*paid))
	}
	for earlier, err := range p.journal.EarlierPolls() {
		if err != nil {
			return err
		}
		p.tally.add(earlier)
	}
	p.tally.trouble.known()
	p.restored = p.tally.absolute.until()
	return nil
}

// begin polls once, and goes on with that until the function that it returns is
// called, which polls for the last time, unless it is to end at once. What goes wrong with recording polls
// ends the trial through fail; what the system does not answer is a gap.
func (p *polls) begin(ctx context.Context, fail context.CancelCauseFunc) (end func(atOnce bool) error, err error) {
	// Polls go on to the very end, that of an interrupted trial, too.
	going, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &collect.Collector{
		Node: p.node, Every: p.every, Now: p.now, First: p.tally.next, Earlier: p.tally.latest, Keep: p.keep,
	}
	first, cancel := c.Bounded(ctx) // nothing is stored before it is over
	defer cancel()
	if _, err := c.Once(first); err != nil && ctx.Err() == nil {
		stop(nil)
		return nil, err
	}
	p.collector = c
	over := make(chan error, 1)
	go func() {
		err := c.Run(going)
		if err != nil {
			fail(err)
		}
		over <- err
	}()
	return func(atOnce bool) error {
		if atOnce {
			stop(collect.ErrAtOnce)
		}
		stop(nil)
		err := <-over
		p.mu.Lock()
		events := p.tally.trouble.ended()
		p.mu.Unlock()
		return errors.Join(err, p.tell(events))
	}, nil
}

// once polls beyond the schedule, while polls go on.
func (p *polls) once(ctx context.Context) error {
	one, cancel := p.collector.Bounded(ctx)
	defer cancel()
	if _, err := p.collector.Once(one); err != nil && ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

func (p *polls) keep(poll record.Poll) error {
	p.mu.Lock()
	p.tally.add(poll)
	events := p.tally.trouble.begun()
	p.mu.Unlock()
	// The event first: later sessions take every recorded poll as reported.
	err := errors.Join(p.tell(events), p.journal.Poll(poll))
	if p.told != nil {
		p.told()
	}
	return err
}

func (p *polls) tell(events []record.Event) error {
	for _, e := range events {
		if err := p.journal.Event(e); err != nil {
			return err
		}
	}
	return nil
}

// sofar fills in what servers hold more since the trial's first poll, and the money that was used up; nil: it is not known.
func (p *polls) sofar(s *scenario.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Absolute, s.AbsoluteAt = -1, -1
	if a := p.tally.absolute; len(a.told) > 0 {
		s.Absolute = max(0, int64(a.gained()))
		if a.until() > p.restored {
			s.AbsoluteAt = a.until()
		}
	}
	if sum, d, known := p.tally.used.Sum(); known {
		s.Spent, s.Decimals = sum, d
	}
}

// gained is by how much the bytes of storage servers grew; −1: fewer than two polls reported them.
func (p *polls) gained() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.tally.absolute; len(a.told) > 1 {
		return int64(a.gained())
	}
	return -1
}

// pollMetrics are those that polls yield.
func pollMetrics() []record.Metric {
	return []record.Metric{
		{Key: "absolute_bytes", Name: "absolute bytes gained", Unit: "B", Better: record.Lower,
			Help: "bytes that the storage servers hold, or were sent, more at the last poll than at the first of the trial, padding, metadata and redundancy included"},
		{Key: "absolute_bandwidth", Name: "absolute bandwidth", Unit: "B/s", Better: record.Higher,
			Help: "what they hold more at the end than at the beginning, divided by the time. Of collect: from the middle of the first poll to that of the last. Of upload: from the first put to the last acceptance, as for file bandwidth; what came is the difference between the first poll that began after that time and the last that ended before it, so that bytes are in it which reached the servers between the last acceptance and that poll. Where these may be so many that more than a fifth of the number hangs on them, because that poll came late, there is no such number: a system may accept first and send later"},
		{Key: "spent", Name: "money spent", Unit: "1", Better: record.Lower,
			Help: "money used up: what contracts cost less what lies unspent in them or, where no such total is reported, the sum of spending by purpose; all increments from poll to poll, because contracts that end leave the system's sums; from before upload.need.allowance was set, else from the first poll; in the system's currency, rounded (the readings are exact)"},
		{Key: "polls", Name: "polls", Unit: "1", Better: record.Neither,
			Help: "times that the system was asked how it is"},
		{Key: "polls_missed", Name: "polls missed", Unit: "1", Better: record.Lower,
			Help: "polls of the schedule that were left out, because an earlier one took too long or no session was running"},
		{Key: "poll_gaps", Name: "calls without an answer", Unit: "1", Better: record.Lower,
			Help: "requests of polls that failed or took too long; each is a recorded gap"},
		{Key: "poll_p50", Name: "API latency, median", Unit: "s", Better: record.Lower,
			Help: "median over the polls of the time that their requests took together; one that was not answered in time counts with the time that it was waited for, so that the latency is at least that (see calls without an answer); polls that left a request out, because an expensive one rests, or had one refused are left out"},
		{Key: "poll_first_quarter", Name: "API latency, first quarter", Unit: "s", Better: record.Lower,
			Help: "likewise over the first quarter of the polls; where there are four or more"},
		{Key: "poll_last_quarter", Name: "API latency, last quarter", Unit: "s", Better: record.Lower,
			Help: "likewise over the last quarter"},
	}
}

// replayPolls adds up the polls of a trial, and what was spent before the first.
func replayPolls(in *scenario.Measured) *pollTally {
	var y pollTally
	var paid []record.Reading
	for e := range scenario.Stream(in.Events) {
		if before := collect.Before(e); before != nil {
			paid = before
		}
	}
	if paid != nil {
		y.used.Add(paid)
	}
	for p := range scenario.Stream(in.Polls) {
		y.add(p)
	}
	return &y
}

// metrics are the numbers of pollMetrics.
func (y *pollTally) metrics() map[string]float64 {
	m := map[string]float64{"polls": float64(y.count), "polls_missed": float64(y.missed), "poll_gaps": float64(y.gaps)}
	if a := y.absolute; len(a.told) > 1 {
		m["absolute_bytes"] = a.gained()
		if v, ok := y.bandwidth(math.Inf(-1), math.Inf(1)); ok {
			m["absolute_bandwidth"] = v
		}
	}
	if amount, decimals, known := y.used.Sum(); known {
		m["spent"] = collect.Float(amount, decimals)
	}
	if n := len(y.took); n > 0 {
		m["poll_p50"] = stats.Median(slices.Clone(y.took))
		if q := n / 4; q > 0 {
			m["poll_first_quarter"] = stats.Median(slices.Clone(y.took[:q]))
			m["poll_last_quarter"] = stats.Median(slices.Clone(y.took[n-q:]))
		}
	}
	return m
}

// bandwidth is that of absolute bytes between two moments, in seconds, by [collect.Rate];
// false: too few polls reported them, so that they may have come at another time.
func (y *pollTally) bandwidth(from, to float64) (float64, bool) {
	v, _, _, ok := collect.Rate(y.absolute.told, from, to)
	return v, ok && !math.IsNaN(v)
}
