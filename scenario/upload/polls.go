package upload

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// polls asks a system how it is beside a trial, and knows of all sessions of the trial
// what exit conditions judge by.
type polls struct {
	node    system.Node
	journal scenario.Journal
	now     func() time.Duration
	every   time.Duration
	polled  func() // called after each poll

	collector *collect.Collector
	restored  time.Duration // end of the last poll of earlier sessions that reported absolute bytes; negative: none did

	mu       sync.Mutex
	next     int64         // number of the next poll
	latest   time.Duration // start of the last
	reported int           // polls that reported absolute bytes
	first    float64       // of these: what the first reported, and the last
	last     float64
	lastEnd  time.Duration // negative: there is none
	used     collect.Used
}

func newPolls(node system.Node, sink scenario.Sink, every time.Duration) *polls {
	return &polls{node: node, journal: sink.Journal, now: sink.Now, every: every, restored: -1, lastEnd: -1}
}

// add takes one poll.
func (p *polls) add(poll record.Poll) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.latest = max(p.next, poll.Seq+1), max(p.latest, poll.Start)
	for _, r := range poll.Readings {
		if r.Name != system.ReadAbsolute || r.Bad != "" {
			continue
		}
		if p.reported++; p.reported == 1 {
			p.first = r.Value
		}
		p.last, p.lastEnd = r.Value, poll.End
	}
	p.used.Add(poll.Readings)
}

// restore adds the polls of earlier sessions.
func (p *polls) restore() error {
	in := p.journal.Recorded()
	for earlier := range scenario.Stream(in.Polls) {
		p.add(earlier)
	}
	p.restored = p.lastEnd
	return in.Err()
}

// stopOf is the exit condition that ended a context; nil: none did.
func stopOf(ctx context.Context) (stop *scenario.Stop) {
	errors.As(context.Cause(ctx), &stop)
	return stop
}

// during polls before work, beside it and after it, unless it is to end at once; stop is the
// exit condition that ended it. What goes wrong with recording polls ends the work; what the
// system does not answer is a gap.
func (p *polls) during(outer context.Context, work func(ctx context.Context,
	fail context.CancelCauseFunc) error) (stop *scenario.Stop, err error) {
	ctx, fail := context.WithCancelCause(outer)
	defer fail(nil)
	// Polls go on to the very end, that of an interrupted trial, too.
	going, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	p.collector = &collect.Collector{Node: p.node, Every: p.every, Now: p.now, First: p.next, Earlier: p.latest,
		Keep: p.keep}
	first, cancel := p.collector.Bounded(ctx) // nothing is stored before it is over
	defer cancel()
	if _, err := p.collector.Once(first); err != nil && ctx.Err() == nil {
		return nil, err
	}
	over := make(chan error, 1)
	go func() {
		err := p.collector.Run(going)
		if err != nil {
			fail(err)
		}
		over <- err
	}()
	err = work(ctx, fail)
	if stop = stopOf(outer); stop == nil {
		err = cmp.Or(context.Cause(outer), err, context.Cause(ctx))
	}
	if err != nil {
		end(collect.ErrAtOnce)
	}
	end(nil)
	return stop, cmp.Or(err, <-over)
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
	p.add(poll)
	err := p.journal.Poll(poll)
	p.polled()
	return err
}

// sofar fills in what servers hold more since the trial's first poll, and the money that was used up; nil: it is not
// known.
func (p *polls) sofar(s *scenario.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Absolute, s.AbsoluteAt = -1, -1
	if p.reported > 0 {
		s.Absolute = max(0, int64(p.last-p.first))
		if p.lastEnd > p.restored {
			s.AbsoluteAt = p.lastEnd
		}
	}
	if sum, d, known := p.used.Sum(); known {
		s.Spent, s.Decimals = sum, d
	}
}

// gained is by how much the bytes of storage servers grew; −1: fewer than two polls reported them.
func (p *polls) gained() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reported < 2 {
		return -1
	}
	return int64(p.last - p.first)
}

// pollMetrics are those that polls yield.
func pollMetrics() []record.Metric {
	return []record.Metric{
		{Key: "absolute_bytes", Name: "absolute bytes gained", Unit: "B", Better: record.Lower,
			Help: "bytes added on storage servers from the first to the last poll, with padding, metadata and " +
				"redundancy"},
		{Key: "absolute_bandwidth", Name: "absolute bandwidth", Unit: "B/s", Better: record.Higher,
			Help: "bytes added on storage servers per second, from first to last poll, or in upload from first put " +
				"to last acceptance; absent if the polls leave over a fifth of it open"},
		{Key: "spent", Name: "money spent", Unit: "1", Better: record.Lower,
			Help: "cost of contracts less unspent funds, or spending by purpose; summed from poll to poll; in the " +
				"system's currency, rounded"},
		{Key: "polls", Name: "polls", Unit: "1", Better: record.Neither,
			Help: "polls of the system"},
		{Key: "polls_missed", Name: "polls missed", Unit: "1", Better: record.Lower,
			Help: "polls left out, because an earlier one took too long or no session ran"},
		{Key: "poll_gaps", Name: "calls without an answer", Unit: "1", Better: record.Lower,
			Help: "requests of polls that failed or timed out"},
		{Key: "poll_p50", Name: "API latency, median", Unit: "s", Better: record.Lower,
			Help: "time of all requests of a complete poll together; a timed-out request counts with its timeout"},
		{Key: "poll_first_quarter", Name: "API latency, first quarter", Unit: "s", Better: record.Lower,
			Help: "likewise over the first quarter of at least four polls"},
		{Key: "poll_last_quarter", Name: "API latency, last quarter", Unit: "s", Better: record.Lower,
			Help: "likewise over the last quarter"},
	}
}

// metrics are the numbers of pollMetrics, by their keys.
func (w *readings) metrics() map[string]float64 {
	m := map[string]float64{"polls": float64(len(w.start)), "polls_missed": float64(w.missed),
		"poll_gaps": float64(w.failed)}
	put := scenario.Numbers(m)
	if v := w.values[system.ReadAbsolute]; v != nil {
		if first, last := edge(v); last > first {
			put("absolute_bytes", v[last]-v[first])
			w.bandwidth(math.Inf(-1), math.Inf(1), put)
		}
	}
	if amount, decimals, known := w.used.Sum(); known {
		put("spent", collect.Float(amount, decimals))
	}
	if took := known(w.latency); len(took) > 0 {
		put("poll_p50", stats.Median(took))
		if q := len(took) / 4; q > 0 {
			put("poll_first_quarter", stats.Median(took[:q]))
			put("poll_last_quarter", stats.Median(took[len(took)-q:]))
		}
	}
	return m
}

// bandwidth puts that of absolute bytes between two moments, in seconds, by [collect.Rate];
// none where too few polls reported them, so that they may have come at another time.
func (w *readings) bandwidth(from, to float64, put func(string, float64)) {
	if v, _, _, ok := collect.Rate(w.reported(w.values[system.ReadAbsolute]), from, to); ok {
		put("absolute_bandwidth", v)
	}
}
