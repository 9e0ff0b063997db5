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
	current string // shape of the links; empty: they have none
	spec    testbed.ShapeSpec
	block   int
	checks  map[checkedPath][]record.LinkCheck // of the current shape in the current block
}

// shapeOf is what decides how links are shaped: the link and, where nodes have links of their
// own, whose; else there is one link to the client for each system.
func shapeOf(cell experiment.Cell) string {
	if nodesOf(cell) > 0 {
		return cell.Link.Key() + " of the nodes of " + cell.System
	}
	return cell.Link.Key()
}

// checkedPath is what a measurement of a link holds for: of a link whose two directions differ,
// one is measured for cells that store, the other for those that read; of nodes on machines of
// their own, those of so many nodes.
type checkedPath struct {
	system string
	stores bool
	nodes  int
}

// pathOf is what a cell's link is measured for. Between machines the directions may differ.
func pathOf(cell experiment.Cell, apart bool) checkedPath {
	p := checkedPath{system: cell.System}
	if n := nodesOf(cell); n == 0 {
		p.stores = cell.Stores() && (apart || cell.Link.UpRate() != cell.Link.DownRate())
	} else if apart {
		p.nodes = n
	}
	return p
}

// prepareLink shapes the link of a cell, if it is not so already, and measures
// it between the client and the cell's system or, where there are nodes, between
// two of them. A link is measured again in every block and after every change of
// shape. Attached systems have no link of ours.
func (r *run) prepareLink(ctx context.Context, s *site, cell experiment.Cell, block int) ([]record.LinkCheck, error) {
	if !r.hasLink(s, cell) {
		return nil, nil
	}
	if err := r.shapeLink(ctx, s, cell); err != nil {
		return nil, err
	}
	if r.link.block != block {
		r.link.block, r.link.checks = block, map[checkedPath][]record.LinkCheck{}
	}
	mode := r.bed.Mode()
	apart := mode.Real || mode.Mesh
	path := pathOf(cell, apart)
	if checks, ok := r.link.checks[path]; ok {
		return checks, nil
	}
	var checks []record.LinkCheck
	for _, ends := range r.measuredPaths(s, cell, block, apart) {
		check, err := r.checkLink(ctx, ends[0], ends[1], float64(cell.Link.Tolerance))
		if err != nil {
			return nil, err
		}
		checks = append(checks, check)
	}
	r.link.checks[path] = checks
	return checks, nil
}

// hasLink reports whether a cell has a link that is shaped, or there, and measured.
func (r *run) hasLink(s *site, cell experiment.Cell) bool {
	mode := r.bed.Mode()
	// Measuring a bare link against what was asked for would call every trial
	// invalid; the run says once, and first, that links were not emulated.
	return !s.attached() && (mode.Namespaces || mode.Real) && !r.notEmulated(cell)
}

// shapeLink shapes the link of a cell, if it is not so already. When that fails some
// hosts may have the new shape: the next trial shapes anew, whatever its link is.
func (r *run) shapeLink(ctx context.Context, s *site, cell experiment.Cell) error {
	was := r.link
	if was.current == shapeOf(cell) {
		return r.bed.ProbeMesh(ctx)
	}
	r.link = linkState{}
	spec := r.shapeSpec(s, cell)
	if !r.bed.Mode().Real {
		if err := r.bed.Shape(ctx, spec); err != nil {
			return err
		}
	}
	r.link = linkState{current: shapeOf(cell), spec: spec, checks: map[checkedPath][]record.LinkCheck{}}
	if was.current != "" {
		return nil
	}
	return r.recordEnvironment() // what shaping set on the hosts belongs to it
}

// connect joins the machines of a mesh, whose hosts reach each other by emulated links alone.
func (r *run) connect(ctx context.Context) error {
	r.link = linkState{}
	if !r.bed.Mode().Mesh {
		return nil
	}
	return r.bed.Shape(ctx, testbed.ShapeSpec{Seed: r.plan.Experiment.Seed})
}

// checkLink measures a link, once more if it could not be.
func (r *run) checkLink(ctx context.Context, from, to testbed.Host, tol float64) (record.LinkCheck, error) {
	check, err := r.bed.Check(ctx, from, to, tol)
	if err != nil && ctx.Err() == nil {
		// A starved moment of the machine can swallow a measurement whole; a
		// broken link breaks the second one, too. A link that measures off is
		// not measured again: that would be choosing.
		r.event("note", "link measured again", err.Error(), 0)
		check, err = r.bed.Check(ctx, from, to, tol)
	}
	if err != nil {
		return check, fmt.Errorf("measure the link between %s and %s: %w", from.Name(), to.Name(), err)
	}
	return check, nil
}

// mendLink starts an emulator that has died since the last trial again, by
// shaping as before. It comes before the health probe, which crosses the link.
// A mesh is joined again by the machines that are not lost; shapeLink shapes it.
func (r *run) mendLink(ctx context.Context) error {
	mesh := r.bed.Mode().Mesh
	_, _, err := r.bed.EmulatorStats(ctx)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	r.event("fault", "link emulator died", err.Error(), 0)
	was := r.link
	if mesh || was.current == "" {
		return r.connect(ctx)
	}
	r.link = linkState{}
	return r.bed.Shape(ctx, was.spec)
}

// measuredPaths are the paths, from and to, that are measured: from the system to the client
// (where the directions differ, as the cell's bytes go), or from one node that takes part to
// another, another pair in each block and the same for all systems of a group; of chains,
// from a peer to the fresh node. Those between machines may all differ: from each node to the next, and
// from each peer.
func (r *run) measuredPaths(s *site, cell experiment.Cell, block int, apart bool) (paths [][2]testbed.Host) {
	n := nodesOf(cell)
	switch {
	case pathOf(cell, apart).stores:
		return [][2]testbed.Host{{r.client, s.hosts[0]}}
	case n == 0:
		paths = [][2]testbed.Host{{s.hosts[0], r.client}}
		for _, h := range r.generators {
			paths = append(paths, [2]testbed.Host{s.hosts[0], h})
		}
		return paths
	case apart && cell.Sync != nil:
		for peer := range cell.Sync.Peers {
			paths = append(paths, [2]testbed.Host{s.hosts[1+peer], s.hosts[0]})
		}
		return paths
	case apart:
		for i := range n {
			paths = append(paths, [2]testbed.Host{s.hosts[i], s.hosts[(i+1)%n]})
		}
		return paths
	}
	rng := rand.New(rand.NewPCG(trialSeed(r.plan.Experiment.Seed, cell.Group(), block), 0))
	if cell.Sync != nil {
		return [][2]testbed.Host{{s.hosts[1+rng.IntN(cell.Sync.Peers)], s.hosts[0]}}
	}
	pair := rng.Perm(n)
	return [][2]testbed.Host{{s.hosts[pair[0]], s.hosts[pair[1]]}}
}

// notEmulated reports whether a cell wants a link that this machine cannot give.
func (r *run) notEmulated(cell experiment.Cell) bool {
	return cell.Link.Shaped() && r.bed.Mode().Emulator == "none" && !r.sites[cell.System].attached()
}

// shapeSpec puts the whole link at the server's access: each direction has a
// rate and its queue once, the delay once and the loss once. The client's side
// is not shaped, so that there is one bottleneck.
//
// Of nodes, each has an access link of its own. What happens on the way, delay,
// jitter and loss, is the sender's: each direction has it once, whoever the two
// are. Of other systems' nodes nothing is shaped: they idle.
func (r *run) shapeSpec(s *site, cell experiment.Cell) testbed.ShapeSpec {
	l := cell.Link
	way := link.Params{Delay: l.Delay.Std(), Jitter: l.Jitter.Std(), Loss: float64(l.Loss)}
	spec := testbed.ShapeSpec{Seed: r.plan.Experiment.Seed, Up: map[string]link.Params{},
		Down:       map[string]link.Params{},
		Congestion: l.Congestion}
	if l.Regions != nil {
		spec.Pairs, way = map[link.Pair]link.Params{}, link.Params{}
	}
	access := func(h testbed.Host, back link.Params) {
		up, down := way, back
		up.Rate, up.Queue = float64(l.UpRate()), int64(l.Queue)
		down.Rate, down.Queue = float64(l.DownRate()), int64(l.Queue)
		spec.Up[h.Name()], spec.Down[h.Name()] = up, down
	}
	if nodesOf(cell) == 0 {
		for _, s := range r.sites {
			if gone, _ := lost(s.hosts); s.attached() || gone != nil { // replaced when its turn comes
				continue
			}
			access(s.hosts[0], way)
			for _, client := range append([]testbed.Host{r.client}, r.generators...) {
				pairsSpec(&spec, l, client, s.hosts[0])
			}
		}
		return spec
	}
	// Where no cell changes a link, one that is not shaped is the bare machine's.
	changes, _ := plansChanges(r.plan)
	spec.Changes = changes || cell.Disseminate != nil
	for _, h := range s.hosts {
		access(h, link.Params{})
	}
	pairsSpec(&spec, l, s.hosts...)
	return spec
}

// pairsSpec gives all pairs of hosts, by their places, the round trip between their regions.
// A pair varies and loses as the link says, but a delay by no more than it is.
func pairsSpec(spec *testbed.ShapeSpec, l experiment.Link, hosts ...testbed.Host) {
	if l.Regions == nil {
		return
	}
	rtt := l.RoundTrips()
	for a, from := range hosts {
		for b, to := range hosts {
			if a != b {
				delay := rtt(a, b) / 2
				spec.Pairs[link.Pair{from.Name(), to.Name()}] = link.Params{
					Delay: delay, Jitter: min(l.Jitter.Std(), delay), Loss: float64(l.Loss)}
			}
		}
	}
}
