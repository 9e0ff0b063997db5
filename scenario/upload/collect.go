package upload

import (
	"context"
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// Collect only asks a system how it is, again and again, and changes nothing
// there: what to run beside a load test that another program does.
type Collect struct{}

var _ scenario.Continuer = Collect{}

func (Collect) Name() string { return "collect" }

// Continues implements Continuer: all trials do.
func (Collect) Continues(experiment.Cell) bool { return true }

// Metrics of a trial.
func (Collect) Metrics() []record.Metric {
	return append(append(pollMetrics(), systemMetrics()...), scenario.OthersBusy())
}

// Problems implements Scenario: whatever a system reports can be collected.
func (Collect) Problems(experiment.SystemUse, system.Info, []experiment.Cell) []system.Problem {
	return nil
}

// Prepares implements Scenario: nothing.
func (Collect) Prepares([]experiment.Cell) (objects, bytes int64) { return 0, 0 }

// Prepare implements Scenario.
func (Collect) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	nodes := site.Cluster.Nodes()
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%s: the deployment has no node", site.Use.Name)
	}
	return &collectRunner{site, nodes[0]}, nil
}

type collectRunner struct {
	site scenario.Site
	node system.Node
}

// Close implements Runner: nothing was stored.
func (*collectRunner) Close(context.Context) error { return nil }

// Trial implements Runner: it polls for as long as was asked for, counted from
// the trial's epoch, or until ctx ends.
func (r *collectRunner) Trial(outer context.Context, cell experiment.Cell, _ uint64, sink scenario.Sink,
) (scenario.Load, error) {
	p := newPolls(r.node, sink, cell.Collect.Every.Std())
	if err := p.restore(); err != nil {
		return scenario.Load{}, fmt.Errorf("%s: read the polls of earlier sessions: %w", r.site.Use.Name, err)
	}
	report := func() {
		s := scenario.State{At: sink.Now()}
		p.sofar(&s)
		sink.State(s)
	}
	p.polled = report
	var load scenario.Load
	stop, err := p.during(outer, func(ctx context.Context, _ context.CancelCauseFunc) error {
		lasts, begun := time.Duration(-1), sink.Now()
		if d := cell.Collect.For.Std(); d > 0 {
			lasts = max(0, d-begun)
		}
		pause(ctx, lasts, nil)
		load.Seconds = (sink.Now() - begun).Seconds()
		return nil
	})
	if stop != nil {
		load.Notes = append(load.Notes, stop.Error())
	}
	report()
	return load, err
}
