package engine

import (
	"context"
	"errors"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/system"
)

// played is a scenario whose trials are the test's: each is one operation.
type played struct {
	scenario.Scenario
	trial func(ctx context.Context, cell experiment.Cell, sink scenario.Sink) error
	site  scenario.Site
	usage map[string][]scenario.Usage // by cell
}

func (p *played) Prepares([]experiment.Cell) (int64, int64) { return 0, 0 }

func (p *played) Problems(experiment.SystemUse, system.Info, []experiment.Cell) []system.Problem {
	return nil
}

func (p *played) Prepare(_ context.Context, site scenario.Site, _ []experiment.Cell) (scenario.Runner, error) {
	p.site, p.usage = site, map[string][]scenario.Usage{}
	return p, nil
}

func (p *played) Trial(ctx context.Context, cell experiment.Cell, _ uint64, sink scenario.Sink) (scenario.Load, error) {
	err := p.trial(ctx, cell, sink)
	op := record.Op{Kind: record.OpFetch, LastByte: int64(time.Since(sink.Epoch))}
	return scenario.Load{Seconds: 1}, errors.Join(err, sink.Block(record.AppendBlock(nil, []record.Op{op})))
}

func (p *played) Measure(m scenario.Measured) map[string]float64 {
	p.usage[m.Cell.ID] = append(p.usage[m.Cell.ID], m.Usage)
	return nil
}

// altered is the scenario overhead with trials that the test executes, or does something else instead.
type altered struct {
	overhead.Scenario
	trial func(cell experiment.Cell, execute func() (scenario.Load, error)) (scenario.Load, error)
}

func (a altered) Prepare(ctx context.Context, at scenario.Site, cells []experiment.Cell) (scenario.Runner, error) {
	r, err := a.Scenario.Prepare(ctx, at, cells)
	return alteredRunner{r, a}, err
}

type alteredRunner struct {
	scenario.Runner
	altered
}

func (r alteredRunner) Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink scenario.Sink) (scenario.Load,
	error) {
	return r.trial(cell, func() (scenario.Load, error) { return r.Runner.Trial(ctx, cell, seed, sink) })
}
