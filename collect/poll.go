package collect

import (
	"context"
	"errors"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// schedule is a poll's place in it.
type schedule struct {
	on     bool // else it is beyond the schedule
	at     time.Duration
	missed int64 // ticks before it that nobody polled at
}

var errCutOff = errors.New("collect: the poll was cut off")

// poll makes one and has it kept; out, when not nil, gets it too.
func (c *Collector) poll(ctx context.Context, s schedule, out *record.Poll) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls, c.taken, c.rests = Calls(c.Node), c.First, map[string]time.Duration{}
		c.sane = sanity{}
	}
	p := record.Poll{Seq: c.taken + s.missed, Start: c.Now(), Missed: int(s.missed)}
	p.Intended = p.Start
	if s.on {
		p.Intended = s.at
	}
	own := isMonitored(c.Node)
	var answers []Answer
	names := map[string]bool{}
	for _, call := range c.calls {
		if s.on && c.Now() < c.rests[call.Name] {
			continue
		}
		a, took := c.ask(ctx, call)
		if s.on && ctx.Err() != nil {
			return errCutOff
		}
		if !own {
			c.rests[call.Name] = took.End + (rest-1)*(took.End-took.Start)
		}
		kept := a.Readings[:0]
		for _, r := range a.Readings {
			if names[r.Name] {
				continue // two calls told it: the first one counts
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
	c.taken = p.Seq + 1
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
