package scenario

import (
	"context"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// polls asks a system how it is beside a trial, and adds up what it says over
// all sessions of the trial.
type polls struct {
	site    Site
	node    system.Node
	journal Journal
	now     func() time.Duration
	every   time.Duration
	told    func() // called after each poll; nil: nobody listens

	mu        sync.Mutex
	tally     pollTally
	collector *collect.Collector
	money     int // decimals of the system's currency
}

// pollTally adds up polls.
type pollTally struct {
	count, missed, gaps int64 // polls; those of the schedule left out; calls without an answer
	next                int64 // number of the next
	latest              time.Duration
	took                []float64 // seconds that each poll's calls took together
	absolute            change
	spent               spending
	trouble             trouble
}

// change is the first and the last that was told of a number.
type change struct {
	known       bool
	first, last float64
	from, to    time.Duration // ends of their polls
}

func (c *change) add(at time.Duration, v float64) {
	if !c.known {
		c.known, c.first, c.from = true, v, at
	}
	c.last, c.to = v, at
}

// spending is likewise of money, exactly.
type spending struct{ first, last *big.Int }

func (s *spending) add(v *big.Int) {
	if s.first == nil {
		s.first = v
	}
	s.last = v
}

func (r *uploadRunner) newPolls(sink Sink, every time.Duration) *polls {
	return &polls{site: r.site, node: r.node, journal: sink.Journal, now: sink.Now, every: every}
}

// add takes one poll.
func (y *pollTally) add(p record.Poll) {
	y.count++
	y.missed += int64(p.Missed)
	y.next = max(y.next, p.Seq+1)
	y.latest = max(y.latest, p.Start)
	y.trouble.add(p)
	var took time.Duration
	answered := false
	for _, c := range p.Calls {
		if c.Error != "" {
			y.gaps++
			continue
		}
		answered = true
		took += c.End - c.Start
	}
	if answered {
		y.took = append(y.took, took.Seconds())
	}
	total, parts := (*big.Int)(nil), (*big.Int)(nil)
	for _, r := range p.Readings {
		if r.Bad != "" {
			continue
		}
		amount, isAmount := new(big.Int).SetString(r.Exact, 10)
		switch {
		case r.Name == system.ReadAbsolute:
			y.absolute.add(p.End, r.Value)
		case r.Name == system.ReadSpent && isAmount:
			total = amount
		case strings.HasPrefix(r.Name, system.ReadSpentPrefix) && isAmount:
			if parts == nil {
				parts = new(big.Int)
			}
			parts.Add(parts, amount)
		}
	}
	if total == nil {
		total = parts
	}
	if total != nil {
		y.spent.add(total)
	}
}

// restore adds the polls of earlier sessions.
func (p *polls) restore() error {
	for earlier, err := range p.journal.EarlierPolls() {
		if err != nil {
			return err
		}
		p.tally.add(earlier)
	}
	p.tally.trouble.known()
	return nil
}

// begin polls once, and goes on with that until the function that it returns is
// called, which polls for the last time, unless it is to end at once. What goes wrong with recording polls
// ends the trial through fail; what the system does not answer is a gap.
func (p *polls) begin(ctx context.Context, fail context.CancelCauseFunc) (end func(atOnce bool) error, err error) {
	if c, ok := p.node.(system.Coster); ok {
		one, cancel := context.WithTimeout(ctx, p.timeout())
		if costs, err := c.Costs(one); err == nil {
			p.money = costs.Decimals
		}
		cancel()
	}
	// Polls go on to the very end, that of an interrupted trial, too.
	going, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &collect.Collector{
		Node: p.node, Every: p.every, Timeout: p.timeout(), Now: p.now, First: p.tally.next, Earlier: p.tally.latest, Keep: p.keep,
	}
	if _, err := c.Once(ctx); err != nil && ctx.Err() == nil {
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
	if _, err := p.collector.Once(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// timeout is that of one call of a poll.
func (p *polls) timeout() time.Duration { return p.site.Limits.Deadline.Std() }

func (p *polls) keep(poll record.Poll) error {
	p.mu.Lock()
	p.tally.add(poll)
	events := p.tally.trouble.begun()
	p.mu.Unlock()
	// The event first: a poll that is recorded is one that was told.
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

// sofar is what servers hold more, and what was spent, since the trial's first poll.
func (p *polls) sofar() (absolute int64, spent *big.Int, decimals int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	absolute = -1
	if a := p.tally.absolute; a.known {
		absolute = max(0, int64(a.last-a.first))
	}
	if s := p.tally.spent; s.first != nil {
		spent = new(big.Int).Sub(s.last, s.first)
	}
	return absolute, spent, p.money
}

// pollMetrics are those that polls yield.
func pollMetrics() []record.Metric {
	return []record.Metric{
		{Key: "absolute_bytes", Name: "absolute bytes gained", Unit: "B", Better: record.Lower,
			Help: "bytes that the storage servers hold, or were sent, more at the last poll than at the first of the trial, padding, metadata and redundancy included"},
		{Key: "absolute_bandwidth", Name: "absolute bandwidth", Unit: "B/s", Better: record.Higher,
			Help: "that divided by the time between the ends of the two polls"},
		{Key: "spent", Name: "money spent", Unit: "1", Better: record.Lower,
			Help: "what the system says was spent, at the last poll less at the first, in its currency; as a number it is rounded, the exact amounts are in the readings"},
		{Key: "polls", Name: "polls", Unit: "1", Better: record.Neither,
			Help: "times that the system was asked how it is"},
		{Key: "polls_missed", Name: "polls missed", Unit: "1", Better: record.Lower,
			Help: "polls of the schedule that were left out, because an earlier one took too long or no session was running"},
		{Key: "poll_gaps", Name: "calls without an answer", Unit: "1", Better: record.Lower,
			Help: "requests of polls that failed or took too long; each is a recorded gap"},
		{Key: "poll_p50", Name: "API latency, median", Unit: "s", Better: record.Lower,
			Help: "median over the polls of the time that their answered requests took together; polls without any are left out"},
		{Key: "poll_first_quarter", Name: "API latency, first quarter", Unit: "s", Better: record.Lower,
			Help: "likewise over the first quarter of the polls; where there are four or more"},
		{Key: "poll_last_quarter", Name: "API latency, last quarter", Unit: "s", Better: record.Lower,
			Help: "likewise over the last quarter"},
	}
}

// metrics are the numbers of pollMetrics.
func (p *polls) metrics() map[string]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	y := &p.tally
	m := map[string]float64{"polls": float64(y.count), "polls_missed": float64(y.missed), "poll_gaps": float64(y.gaps)}
	if a := y.absolute; a.known && a.to > a.from {
		m["absolute_bytes"] = a.last - a.first
		m["absolute_bandwidth"] = (a.last - a.first) / (a.to - a.from).Seconds()
	}
	if s := y.spent; s.first != nil {
		amount, _ := new(big.Float).SetInt(new(big.Int).Sub(s.last, s.first)).Float64()
		m["spent"] = amount / math.Pow10(p.money)
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
