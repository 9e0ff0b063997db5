package collect

import (
	"context"
	"errors"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

var errCutOff = errors.New("collect: the poll was cut off")

// prepare makes what a collector needs that is not said.
func (c *Collector) prepare() {
	if c.calls != nil {
		return
	}
	c.calls, c.rests = Calls(c.Node), map[string]time.Duration{}
	c.next, c.polled, c.latest = c.First, c.First > 0, c.Earlier
	if c.polled && c.latest == 0 {
		c.latest = time.Duration(c.First-1) * c.Every
	}
}

// poll makes one and has it kept; out, when not nil, gets it too. tick is its
// place in the schedule; nil: it is beyond that.
func (c *Collector) poll(ctx context.Context, tick *int64, out *record.Poll) error {
	defer c.take()()
	c.prepare()
	p := record.Poll{Start: c.Now()}
	p.Intended = p.Start
	if tick != nil {
		p.Intended = time.Duration(*tick) * c.Every
	}
	if c.polled && c.Every > 0 {
		p.Missed = int(max(0, int64(p.Intended/c.Every)-int64(c.latest/c.Every)-1))
	}
	p.Seq = c.next + int64(p.Missed)
	_, own := c.Node.(system.Monitored)
	var answers []Answer
	names := map[string]bool{}
	for _, call := range c.calls {
		if tick != nil && c.Now() < c.rests[call.Name] {
			continue
		}
		a, took := c.ask(ctx, call)
		if ctx.Err() != nil && (tick != nil || errors.Is(ctx.Err(), context.Canceled)) {
			return errCutOff
		}
		if !own {
			c.rests[call.Name] = took.End + (rest-1)*(took.End-took.Start)
		}
		kept := a.Readings[:0]
		for _, r := range a.Readings {
			if names[r.Name] {
				continue // two calls returned it: the first one counts
			}
			names[r.Name] = true
			r = c.sane.check(r)
			kept = append(kept, r)
			p.Readings = append(p.Readings, recorded(r))
		}
		a.Readings = kept
		answers = append(answers, a)
		p.Calls = append(p.Calls, took)
	}
	p.End = c.Now()
	if err := c.Keep(p); err != nil {
		return err
	}
	c.next, c.polled, c.latest = p.Seq+1, true, max(p.Intended, p.Start)
	if c.Seen != nil {
		c.Seen(answers)
	}
	if out != nil {
		*out = p
	}
	return nil
}

// ask makes one call. One that fails brings no readings.
func (c *Collector) ask(ctx context.Context, call system.Call) (Answer, record.PollCall) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	took := record.PollCall{Name: call.Name, Start: c.Now()}
	readings, err := call.Read(ctx)
	took.End = c.Now()
	a := Answer{Call: call.Name, Readings: readings, Err: err}
	if err != nil {
		a.Readings = nil
		took.Error = Reason(err, took.End-took.Start)
	}
	return a, took
}

// recorded is a reading as the record keeps it. An absurd one keeps its number
// in its reason only, which a database can hold whatever it is.
func recorded(r system.Reading) record.Reading {
	out := record.Reading{Name: r.Name, Value: r.Value, Bad: r.Bad}
	if r.Bad != "" {
		out.Value = 0
	} else if r.Amount != nil {
		out.Exact = r.Amount.String()
	}
	return out
}
