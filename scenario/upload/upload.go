// Package upload contains the scenario upload, which measures what it takes to store a data set
// and when that slows down, and the scenario collect, which only watches a system.
package upload

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario measures what it takes to store a whole data set, and whether that changes as the
// set grows. It follows the load test of Sia of 2018: a fixed number of concurrent puts, for
// weeks, while the system is polled.
//
// One trial is one load test. The journal records the start and the result of each put, so that
// a later session knows of every object whether it is done, not begun, or in doubt; see restore.
type Scenario struct{}

func (Scenario) Name() string { return "upload" }

//go:embed metrics.txt
var definitions string

// Metrics implements Scenario.
func (Scenario) Metrics() []record.Metric {
	own := scenario.Definitions(definitions, "upload", "servers", "polls", "generator", "system")
	return append(own, scenario.Machine()...)
}

// Problems implements Scenario.
func (Scenario) Problems(_ experiment.SystemUse, info system.Info, _ []experiment.Cell) []system.Problem {
	return scenario.Unmet(info.Can, []scenario.Need{{Ability: "put", By: "the scenario upload",
		Hint: "take it out of the experiment"}})
}

// runner is one prepared system.
type runner struct {
	site scenario.Site
	node system.Store
	// interval for reporting progress and writing operations
	reportEvery time.Duration
}

// Prepares implements Scenario. Nothing is stored before the trials, but their objects need
// room, too. The size of a directory is unknown here.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	for _, c := range cells {
		n, size := c.Data.Total()
		objects += int64(n)
		bytes += int64(size)
	}
	return objects, bytes
}

// Prepare implements Scenario.
func (Scenario) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	return &runner{site, site.Cluster.Nodes()[0].(system.Store), time.Second}, nil
}

// settler returns the node if accepted objects become durable only later; nil if they are
// durable at once, or the system does not report it.
func (r *runner) settler() system.Settler {
	s, _ := r.node.(system.Settler)
	return s
}

// trialNames returns the prefix of the names of a trial's objects. It contains the run, so that
// a later session finds them, and the trial, so that no other trial does.
func (r *runner) trialNames(cell experiment.Cell, seed uint64) string {
	return fmt.Sprintf("%s/%s-%08x/", r.site.Run, cell.ID, uint32(scenario.MixSeed(seed, "upload names", 0)))
}

// dataSeed returns the seed of the content, the same in all sessions of a trial. In an attached
// system, which outlives the run, it differs between runs, so that no run finds the content of
// another.
func (r *runner) dataSeed(seed uint64) uint64 {
	purpose := "upload content"
	if r.site.Use.Attached() {
		purpose += " " + r.site.Run
	}
	return scenario.MixSeed(seed, purpose, 0)
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
