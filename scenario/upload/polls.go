package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// polls polls a system during a trial, and keeps the values that exit conditions need, over all
// sessions of the trial.
type polls struct {
	*collect.Collector
	sink     scenario.Sink
	restored time.Duration // end of earlier sessions' last poll with absolute bytes; negative: none

	mu      sync.Mutex
	first   float64       // absolute bytes of the first poll that reported them
	last    float64       // likewise of the last one
	lastEnd time.Duration // end of the last one; negative: none
	used    collect.Used
}

func newPolls(node system.Node, sink scenario.Sink, every time.Duration) *polls {
	p := &polls{sink: sink, restored: -1, lastEnd: -1}
	p.Collector = &collect.Collector{Node: node, Every: every, Now: sink.Now, Keep: p.keep}
	return p
}

// add adds a poll.
func (p *polls) add(poll record.Poll) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range poll.Readings {
		if r.Name != system.ReadAbsolute || r.Bad != "" {
			continue
		}
		if p.lastEnd < 0 {
			p.first = r.Value
		}
		p.last, p.lastEnd = r.Value, poll.End
	}
	p.used.Add(poll.Readings)
}

// restore adds the polls of earlier sessions.
func (p *polls) restore() error {
	in := p.sink.Recorded()
	for earlier := range in.Polls {
		p.First, p.Earlier = max(p.First, earlier.Seq+1), max(p.Earlier, earlier.Start)
		p.add(earlier)
	}
	p.restored = p.lastEnd
	return in.Err()
}

// stopOf returns the exit condition that ended a context, or nil.
func stopOf(ctx context.Context) (stop *scenario.Stop) {
	errors.As(context.Cause(ctx), &stop)
	return stop
}

// during polls before, during and after work. The final poll is omitted after an error. stop is
// the exit condition that ended the work, if any. An error in recording polls ends the work; a
// call that the system does not answer is only a gap.
func (p *polls) during(outer context.Context, work func(context.Context) error) (stop *scenario.Stop, err error) {
	ctx, fail := context.WithCancelCause(outer)
	defer fail(nil)
	// Polls continue to the very end, even if the trial is interrupted.
	going, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	if err := p.once(ctx); err != nil && ctx.Err() == nil { // nothing is stored before this poll ends
		return nil, err
	}
	over := make(chan error, 1)
	go func() {
		err := p.Run(going)
		if err != nil {
			fail(err)
		}
		over <- err
	}()
	err = work(ctx)
	if stop = stopOf(outer); stop == nil {
		err = cmp.Or(context.Cause(outer), err, context.Cause(ctx))
	}
	if err != nil {
		end(collect.ErrAtOnce)
	}
	end(nil)
	return stop, cmp.Or(err, <-over)
}

// once polls in addition to the schedule.
func (p *polls) once(ctx context.Context) error {
	if err := p.Once(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

func (p *polls) keep(poll record.Poll) error {
	p.add(poll)
	return p.sink.Poll(poll)
}

// state returns the part of the trial's state that the polls know: the absolute bytes gained since
// the first one, and the money used up.
func (p *polls) state() scenario.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := scenario.State{At: p.sink.Now(), Absolute: -1, AbsoluteAt: -1, Spent: p.used.Sum}
	if p.lastEnd >= 0 {
		s.Absolute = max(0, int64(p.last-p.first))
		if p.lastEnd > p.restored {
			s.AbsoluteAt = p.lastEnd
		}
	}
	return s
}

// measure puts the metrics of polls, except for the bandwidth.
func (w *readings) measure(put func(string, float64)) {
	put("polls", float64(w.polls))
	put("polls_missed", float64(w.missed))
	put("poll_gaps", float64(w.failed))
	if v := w.values[system.ReadAbsolute]; len(v) > 1 {
		put("absolute_bytes", v[len(v)-1].Value-v[0].Value)
	}
	if amount := w.used.Sum; amount != nil {
		put("spent", system.Money("", amount).Value)
	}
	put("poll_p50", stats.Median(w.latency.values()))
}

// Collect polls a system repeatedly and changes nothing in it, for use alongside a load test by
// another program.
type Collect struct{ Scenario }

func (Collect) Name() string { return "collect" }

// Metrics implements Scenario.
func (Collect) Metrics() []record.Metric {
	return append(scenario.Definitions(definitions, "polls", "system"), scenario.Machine()...)
}

// Problems implements Scenario. There are none: collect takes whatever a system reports.
func (Collect) Problems(experiment.SystemUse, system.Info, []experiment.Cell) []system.Problem {
	return nil
}

// Prepares implements Scenario. Collect stores nothing.
func (Collect) Prepares([]experiment.Cell) (objects, bytes int64) { return 0, 0 }

// Prepare implements Scenario.
func (Collect) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	return watcher{site}, nil
}

type watcher struct{ site scenario.Site }

// Trial implements Runner. It polls for collect.for, counted from the trial's epoch, or without
// limit if that is 0, and stops when ctx ends.
func (w watcher) Trial(outer context.Context, cell experiment.Cell, _ uint64, sink scenario.Sink,
) (scenario.Load, error) {
	p := newPolls(w.site.Cluster.Nodes()[0], sink, cell.Collect.Every.Std())
	if err := p.restore(); err != nil {
		return scenario.Load{}, fmt.Errorf("%s: read the polls of earlier sessions: %w", w.site.Use.Name, err)
	}
	p.Keep = func(poll record.Poll) error {
		defer func() { sink.State(p.state()) }()
		return p.keep(poll)
	}
	var load scenario.Load
	stop, err := p.during(outer, func(ctx context.Context) error {
		begun := sink.Now()
		if lasts := cell.Collect.For.Std(); lasts > 0 {
			timing.Pause(ctx, lasts-begun)
		} else {
			<-ctx.Done()
		}
		load.Seconds = (sink.Now() - begun).Seconds()
		return nil
	})
	if stop != nil {
		load.Notes = append(load.Notes, stop.Error())
	}
	return load, err
}
