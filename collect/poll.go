package collect

import (
	"context"
	"errors"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

var errCutOff = errors.New("collect: the poll was cut off")

// poll makes one poll and passes it to Keep. tick is its number in the schedule; nil: it is not
// scheduled.
func (c *Collector) poll(ctx context.Context, tick *int64) error {
	defer c.take()()
	p := record.Poll{Start: c.Now()}
	p.Intended = p.Start
	if tick != nil {
		p.Intended = time.Duration(*tick) * c.Every
	}
	if c.polled {
		p.Missed = int(max(0, int64(p.Intended/c.Every)-int64(c.latest/c.Every)-1))
	}
	p.Seq = c.next + int64(p.Missed)
	_, own := c.Node.(system.Monitored)
	names := map[string]bool{}
	for _, call := range c.calls {
		if tick != nil && c.Now() < c.rests[call.Name] {
			continue
		}
		readings, took := c.ask(ctx, call)
		if ctx.Err() != nil && (tick != nil || errors.Is(ctx.Err(), context.Canceled)) {
			return errCutOff
		}
		if !own {
			c.rests[call.Name] = took.End + (rest-1)*(took.End-took.Start)
		}
		for _, r := range readings {
			if !names[r.Name] { // if two calls return it, the first one counts
				names[r.Name] = true
				p.Readings = append(p.Readings, recorded(c.sane.check(r)))
			}
		}
		p.Calls = append(p.Calls, took)
	}
	p.End = c.Now()
	if err := c.Keep(p); err != nil {
		return err
	}
	c.next, c.polled, c.latest = p.Seq+1, true, max(p.Intended, p.Start)
	return nil
}

// ask makes one call. A call that fails returns no readings.
func (c *Collector) ask(ctx context.Context, call system.Call) ([]system.Reading, record.PollCall) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	took := record.PollCall{Name: call.Name, Start: c.Now()}
	readings, err := call.Read(ctx)
	took.End = c.Now()
	if err != nil {
		took.Error = Reason(err, took.End-took.Start)
		return nil, took
	}
	return readings, took
}

// recorded converts a reading for the record. The number of an impossible reading appears only in
// its reason, as text, because a database can store any text.
func recorded(r system.Reading) record.Reading {
	out := record.Reading{Name: r.Name, Value: r.Value, Bad: r.Bad}
	if r.Bad != "" {
		out.Value = 0
	} else if r.Amount != nil {
		out.Exact = r.Amount.String()
	}
	return out
}
