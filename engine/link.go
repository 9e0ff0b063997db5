package engine

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// linkState remembers how the links are shaped now and what was measured of
// them in the current block.
type linkState struct {
	shaped  bool
	current experiment.ResolvedLink
	block   int
	checks  map[string]record.LinkCheck // by system name, of the current shape in the current block
}

// prepareLink shapes the link of a cell, if it is not so already, and measures
// it between the client and the cell's system. A link is measured again in
// every block and after every change of shape. Attached systems have no link
// of ours.
func (r *run) prepareLink(ctx context.Context, s *site, cell experiment.Cell, block int) (*record.LinkCheck, error) {
	if s.host == nil || !r.bed.Mode().Namespaces {
		return nil, nil
	}
	if r.notEmulated(cell) {
		// Measuring a bare link against what was asked for would call every trial
		// invalid; the run says once, and first, that links were not emulated.
		return nil, nil
	}
	if !r.link.shaped || r.link.current != cell.Link {
		if err := r.bed.Shape(ctx, r.shapeSpec(cell.Link)); err != nil {
			return nil, err
		}
		first := !r.link.shaped
		r.link = linkState{shaped: true, current: cell.Link, checks: map[string]record.LinkCheck{}}
		if first { // what shaping set on the hosts belongs to the environment
			if err := r.recordEnvironment(); err != nil {
				return nil, err
			}
		}
	}
	if r.link.block != block {
		r.link.block, r.link.checks = block, map[string]record.LinkCheck{}
	}
	if check, ok := r.link.checks[s.use.Name]; ok {
		return &check, nil
	}
	measure := func() (record.LinkCheck, error) {
		return r.bed.Check(ctx, s.host, r.client, r.bed.Want(s.host, r.client), float64(cell.Link.Tolerance))
	}
	check, err := measure()
	if err != nil && ctx.Err() == nil {
		// A starved moment of the machine can swallow a measurement whole; a
		// broken link breaks the second one, too. A link that measures off is
		// not measured again: that would be choosing.
		r.event("note", "link measured again", err.Error(), 0)
		check, err = measure()
	}
	if err != nil {
		return nil, fmt.Errorf("measure the link between %s and the client: %w", s.use.Name, err)
	}
	r.link.checks[s.use.Name] = check
	return &check, nil
}

// mendLink starts an emulator that has died since the last trial again, by
// shaping as before. It comes before the health probe, which crosses the link.
func (r *run) mendLink(ctx context.Context) error {
	_, _, err := r.bed.EmulatorStats(ctx)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	r.event("fault", "link emulator died", err.Error(), 0)
	was := r.link
	r.link = linkState{}
	if !was.shaped {
		return nil
	}
	return r.bed.Shape(ctx, r.shapeSpec(was.current))
}

// notEmulated reports whether a cell wants a link that this machine cannot give.
func (r *run) notEmulated(cell experiment.Cell) bool {
	return cell.Link.Shaped() && r.bed.Mode().Emulator == "none" && r.sites[cell.System].host != nil
}

// shapeSpec puts the whole link at the server's access: each direction has the
// rate and its queue once, the delay once and the loss once. The client's side
// is not shaped, so that no bottleneck stands twice.
func (r *run) shapeSpec(l experiment.ResolvedLink) testbed.ShapeSpec {
	p := link.Params{
		Rate: float64(l.Rate), Delay: l.Delay.Std(), Jitter: l.Jitter.Std(),
		Loss: float64(l.Loss), Queue: int64(l.Queue),
	}
	spec := testbed.ShapeSpec{Seed: r.plan.Experiment.Seed, Up: map[string]link.Params{}, Down: map[string]link.Params{}, Congestion: l.Congestion}
	for name, s := range r.sites {
		if s.host != nil {
			spec.Up[name], spec.Down[name] = p, p
		}
	}
	return spec
}
