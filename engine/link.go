package engine

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// linkState remembers how the links are shaped now and what was measured of
// them in the current block.
type linkState struct {
	shaped  bool
	current shape
	spec    testbed.ShapeSpec
	block   int
	checks  map[string]record.LinkCheck // by system name, of the current shape in the current block
}

// shape is what decides how links are shaped.
type shape struct {
	link experiment.Link
	// the system whose nodes have links of their own; empty: one link to the client for each system
	nodes string
	up    experiment.BitRate // of a swarm's nodes, where it differs
}

func shapeOf(cell experiment.Cell) shape {
	s := shape{link: cell.Link}
	if nodesOf(cell) > 0 {
		s.nodes = cell.System
	}
	if d := cell.Disseminate; d != nil {
		s.up = d.Up
	}
	return s
}

// prepareLink shapes the link of a cell, if it is not so already, and measures
// it between the client and the cell's system or, where there are nodes, between
// two of them. A link is measured again in every block and after every change of
// shape. Attached systems have no link of ours.
func (r *run) prepareLink(ctx context.Context, s *site, cell experiment.Cell, block int) (*record.LinkCheck, error) {
	if s.attached() || !r.bed.Mode().Namespaces {
		return nil, nil
	}
	if r.notEmulated(cell) {
		// Measuring a bare link against what was asked for would call every trial
		// invalid; the run says once, and first, that links were not emulated.
		return nil, nil
	}
	if !r.link.shaped || r.link.current != shapeOf(cell) {
		spec := r.shapeSpec(s, cell)
		if err := r.bed.Shape(ctx, spec); err != nil {
			return nil, err
		}
		first := !r.link.shaped
		r.link = linkState{shaped: true, current: shapeOf(cell), spec: spec, checks: map[string]record.LinkCheck{}}
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
	from, to := r.measuredPath(s, cell, block)
	measure := func() (record.LinkCheck, error) {
		return r.bed.Check(ctx, from, to, r.bed.Want(from, to), float64(cell.Link.Tolerance))
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
		return nil, fmt.Errorf("measure the link between %s and %s: %w", from.Name(), to.Name(), err)
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
	return r.bed.Shape(ctx, was.spec)
}

// measuredPath is the path that is measured for all: from the system to the client, or
// from one node that takes part to another, another pair in each block and the same
// for all systems of a group; of chains, from a peer to the fresh node.
func (r *run) measuredPath(s *site, cell experiment.Cell, block int) (from, to testbed.Host) {
	n := nodesOf(cell)
	if n == 0 {
		return s.hosts[0], r.client
	}
	rng := rand.New(rand.NewPCG(trialSeed(r.plan.Experiment.Seed, cell.Group(), block), 0))
	if cell.Sync != nil {
		return s.hosts[1+rng.IntN(cell.Sync.Peers)], s.hosts[0]
	}
	pair := rng.Perm(n)
	return s.hosts[pair[0]], s.hosts[pair[1]]
}

// notEmulated reports whether a cell wants a link that this machine cannot give.
func (r *run) notEmulated(cell experiment.Cell) bool {
	return cell.Link.Shaped() && r.bed.Mode().Emulator == "none" && !r.sites[cell.System].attached()
}

// shapeSpec puts the whole link at the server's access: each direction has the
// rate and its queue once, the delay once and the loss once. The client's side
// is not shaped, so that there is one bottleneck.
func (r *run) shapeSpec(s *site, cell experiment.Cell) testbed.ShapeSpec {
	l := cell.Link
	p := link.Params{
		Rate: float64(l.Rate), Delay: l.Delay.Std(), Jitter: l.Jitter.Std(),
		Loss: float64(l.Loss), Queue: int64(l.Queue),
	}
	spec := testbed.ShapeSpec{Seed: r.plan.Experiment.Seed, Up: map[string]link.Params{}, Down: map[string]link.Params{},
		Congestion: l.Congestion}
	switch {
	case cell.Disseminate != nil:
		spec.Changes = true
		nodesSpec(&spec, s.hosts, p, float64(cell.Disseminate.Up))
		return spec
	case cell.Sync != nil:
		// Where no cell changes a link, one that is not shaped is the bare machine's.
		spec.Changes, _ = plansChanges(r.plan)
		nodesSpec(&spec, s.hosts, p, 0)
		return spec
	}
	for name, s := range r.sites {
		if !s.attached() {
			spec.Up[name], spec.Down[name] = p, p
		}
	}
	return spec
}

// nodesSpec gives every node an access link of its own. What happens
// on the way, delay, jitter and loss, is the sender's: each direction has it once,
// whoever the two are. The rates are two: that at which one sends and that at
// which the other receives. Of other systems' nodes nothing is shaped: they idle.
func nodesSpec(spec *testbed.ShapeSpec, hosts []testbed.Host, p link.Params, up float64) {
	out := p
	if up > 0 {
		out.Rate = up
	}
	for _, h := range hosts {
		spec.Up[h.Name()] = out
		spec.Down[h.Name()] = link.Params{Rate: p.Rate, Queue: p.Queue}
	}
}
