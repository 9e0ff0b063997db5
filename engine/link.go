package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// linkState is the current shape of the links and their measurements in the current block.
type linkState struct {
	current string // shape of the links; empty: not shaped
	spec    testbed.ShapeSpec
	block   int
	checks  map[checkedPath][]record.LinkCheck // of the current shape in the current block
}

// shapeOf returns what determines the shape of the links: the link and, if nodes have their own
// links, the system. Otherwise each system has one link to the client.
func shapeOf(cell experiment.Cell) string {
	if nodesOf(cell) > 0 {
		return cell.Link.Key() + " of the nodes of " + cell.System
	}
	return cell.Link.Key()
}

// checkedPath identifies what a link measurement is valid for. If the two directions differ,
// one is measured for cells that store and the other for cells that read. For nodes on their
// own machines it is valid for that number of nodes.
type checkedPath struct {
	system string
	stores bool
	nodes  int
}

// pathOf returns the path to measure for a cell. Between machines the directions may differ.
func pathOf(cell experiment.Cell, apart bool) checkedPath {
	p := checkedPath{system: cell.System}
	if n := nodesOf(cell); n == 0 {
		p.stores = cell.Stores() && (apart || cell.Link.UpRate() != cell.Link.DownRate())
	} else if apart {
		p.nodes = n
	}
	return p
}

// prepareLink shapes the link of a cell, unless it has that shape already, and measures it
// between the client and the cell's system or, if there are nodes, between two of them. A
// link is measured again in every block and after every change of shape. The links of
// attached systems are not ours.
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

// hasLink reports whether a cell has a link, emulated or real, that is measured.
func (r *run) hasLink(s *site, cell experiment.Cell) bool {
	mode := r.bed.Mode()
	// If links cannot be emulated, the run says so once, at the beginning. Measuring
	// the bare link would make every trial invalid.
	return !s.attached() && (mode.Namespaces || mode.Real) && !r.notEmulated(cell)
}

// shapeLink shapes the link of a cell, unless it has that shape already. If it fails, some
// hosts may have the new shape, so the next trial shapes again, whatever its link is.
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
	return r.recordEnvironment() // shaping has changed settings of the hosts
}

// connect joins the machines of a mesh, whose hosts reach each other only by emulated links.
func (r *run) connect(ctx context.Context) error {
	r.link = linkState{}
	if !r.bed.Mode().Mesh {
		return nil
	}
	return r.bed.Shape(ctx, testbed.ShapeSpec{Seed: r.plan.Experiment.Seed})
}

// checkLink measures a link, and tries once more if that fails.
func (r *run) checkLink(ctx context.Context, from, to testbed.Host, tol float64) (record.LinkCheck, error) {
	check, err := r.bed.Check(ctx, from, to, tol)
	if err != nil && ctx.Err() == nil {
		// A busy moment of the machine can make a measurement fail; a broken link
		// makes the second one fail, too. A link that is off is not measured
		// again: that would be selecting results.
		r.event("note", "link measured again", err.Error(), 0)
		check, err = r.bed.Check(ctx, from, to, tol)
	}
	if err != nil {
		return check, fmt.Errorf("measure the link between %s and %s: %w", from.Name(), to.Name(), err)
	}
	return check, nil
}

// repairLink restarts an emulator that has died since the last trial, by shaping as before.
// It comes before the health probe, which uses the link. In a mesh, the machines that are
// not lost join again, and shapeLink shapes the links.
func (r *run) repairLink(ctx context.Context) error {
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

// measuredPaths returns the paths (from, to) to measure: from the system to the client (if the
// directions differ, in the direction of the cell's bytes); between two nodes, a different pair
// in each block, but the same for all systems of a group; or, for chains, from a peer to the
// fresh node. Paths between machines may all differ: then it is from each node to the next, or
// from each peer.
func (r *run) measuredPaths(s *site, cell experiment.Cell, block int, apart bool) (paths [][2]testbed.Host) {
	n := nodesOf(cell)
	rng := rand.New(rand.NewPCG(trialSeed(r.plan.Experiment.Seed, cell.Group(), block), 0))
	path := func(from, to testbed.Host) { paths = append(paths, [2]testbed.Host{from, to}) }
	switch {
	case pathOf(cell, apart).stores:
		path(r.client, s.hosts[0])
	case n == 0:
		for _, client := range r.clientHosts() {
			path(s.hosts[0], client)
		}
	case apart && cell.Sync != nil:
		for _, peer := range s.hosts[1 : 1+cell.Sync.Peers] {
			path(peer, s.hosts[0])
		}
	case apart:
		for i := range n {
			path(s.hosts[i], s.hosts[(i+1)%n])
		}
	case cell.Sync != nil:
		path(s.hosts[1+rng.IntN(cell.Sync.Peers)], s.hosts[0])
	default:
		pair := rng.Perm(n)
		path(s.hosts[pair[0]], s.hosts[pair[1]])
	}
	return paths
}

// clientHosts returns the hosts that systems in the testbed are loaded from.
func (r *run) clientHosts() []testbed.Host { return append([]testbed.Host{r.client}, r.generators...) }

// notEmulated reports whether a cell has a link that this machine cannot emulate.
func (r *run) notEmulated(cell experiment.Cell) bool {
	return cell.Link.Shaped() && r.bed.Mode().Emulator == "none" && !r.sites[cell.System].attached()
}

// shapeSpec shapes only the server's access link: each direction has the rate with its queue,
// the delay and the loss once. The client's side is not shaped, so there is one bottleneck.
//
// Nodes have an access link each. Delay, jitter and loss belong to the sender's uplink, so
// each direction between any two nodes has them once. The links of other systems' nodes,
// which are idle, are not shaped.
func (r *run) shapeSpec(s *site, cell experiment.Cell) testbed.ShapeSpec {
	l := cell.Link
	way := link.Params{Delay: l.Delay.Std(), Jitter: l.Jitter.Std(), Loss: float64(l.Loss)}
	spec := testbed.ShapeSpec{Seed: r.plan.Experiment.Seed, Congestion: l.Congestion}
	spec.Up, spec.Down = map[string]link.Params{}, map[string]link.Params{}
	if l.Regions != nil {
		spec.Pairs, way = map[link.Pair]link.Params{}, link.Params{}
	}
	access := func(h testbed.Host, back link.Params) {
		up, down := way, back
		up.Rate, up.Queue = float64(l.UpRate()), int64(l.Queue)
		down.Rate, down.Queue = float64(l.DownRate()), int64(l.Queue)
		spec.Up[h.Addr().String()], spec.Down[h.Addr().String()] = up, down
	}
	if nodesOf(cell) == 0 {
		for _, s := range r.sites {
			if gone, _ := lostHost(s.hosts); s.attached() || gone != nil { // replaced when its turn comes
				continue
			}
			access(s.hosts[0], way)
			for _, client := range r.clientHosts() {
				pairsSpec(&spec, l, client, s.hosts[0])
			}
		}
		return spec
	}
	// If no cell changes a link, an unshaped link needs no emulator.
	changes, _ := plansChanges(r.plan)
	spec.Changes = changes || cell.Disseminate != nil
	for _, h := range s.hosts {
		access(h, link.Params{})
	}
	pairsSpec(&spec, l, s.hosts...)
	return spec
}

// pairsSpec gives each pair of hosts the round trip between their regions. Pairs have the
// jitter and loss of the link, but jitter does not exceed the delay.
func pairsSpec(spec *testbed.ShapeSpec, l experiment.Link, hosts ...testbed.Host) {
	if l.Regions == nil {
		return
	}
	rtt := l.RoundTrips()
	for a, from := range hosts {
		for b, to := range hosts {
			if a != b {
				delay := rtt(a, b) / 2
				spec.Pairs[link.Pair{from.Addr().String(), to.Addr().String()}] = link.Params{
					Delay: delay, Jitter: min(l.Jitter.Std(), delay), Loss: float64(l.Loss)}
			}
		}
	}
}

// network gives a scenario access to the links of its nodes.
type network struct {
	r       *run
	s       *site
	changed bool    // the links differ from the cell's
	tol     float64 // of the cell's link checks
}

var _ scenario.Network = (*network)(nil)

// Emulated implements scenario.Network.
func (n *network) Emulated() (ok bool, why string) {
	m := n.r.bed.Mode()
	return m.Emulator != "none", m.Why
}

// Traffic implements scenario.Network.
//
// An interface counts a super-packet with one header, although it crosses the link as many
// packets with one header each. If the emulator counts packets, its numbers are used.
func (n *network) Traffic(ctx context.Context) []scenario.Traffic {
	all := make([]scenario.Traffic, len(n.s.hosts))
	stats, emulated, err := n.r.bed.EmulatorStats(ctx)
	for i, h := range n.s.hosts {
		all[i] = scenario.Traffic{Received: math.NaN(), Sent: math.NaN()}
		if err == nil && emulated {
			at := stats.Hosts[h.Addr().String()]
			all[i] = scenario.Traffic{Received: packets(at.Received), Sent: packets(at.Sent)}
		} else if !emulated { // never mix the two counters: their difference is meaningless
			all[i].Received, all[i].Sent = h.Traffic()
		}
	}
	return all
}

// packets returns the bytes of IP packets, without Ethernet framing.
func packets(c link.Count) float64 { return float64(c.Bytes - link.Framing*c.Segments) }

// Check implements scenario.Network.
func (n *network) Check(ctx context.Context, from, to int) (record.LinkCheck, error) {
	return n.r.bed.Check(ctx, n.s.hosts[from], n.s.hosts[to], n.tol)
}

// Change implements scenario.Network.
func (n *network) Change(ctx context.Context, c scenario.NetworkChange) error {
	none := len(c.Rates) == 0 && len(c.Apart) == 0
	if none && !n.changed {
		return nil
	}
	if ok, why := n.Emulated(); !ok {
		return fmt.Errorf("links cannot be changed: %s", why)
	}
	n.changed = true
	if err := n.r.bed.Reshape(ctx, changed(n.r.link.spec, n.s.hosts, c)); err != nil {
		return err
	}
	n.changed = !none
	return nil
}

// undoTime limits restoring the links.
const undoTime = 10 * time.Second

// undo restores the links of the cell. If it fails, the next trial shapes them again.
func (n *network) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	err := n.Change(ctx, scenario.NetworkChange{})
	if err != nil {
		n.r.link.current, n.changed = "", false
	}
	return err
}

// changed applies the changes c to the shape base. Nodes that are apart lose all packets to
// and from the others; everything else about these paths stays the same.
func changed(base testbed.ShapeSpec, hosts []testbed.Host, c scenario.NetworkChange) testbed.ShapeSpec {
	spec := base
	spec.Up, spec.Down = maps.Clone(base.Up), maps.Clone(base.Down)
	for node, rates := range c.Rates {
		at := hosts[node].Addr().String()
		up, down := spec.Up[at], spec.Down[at]
		up.Rate, down.Rate = cmp.Or(rates.Up, up.Rate), cmp.Or(rates.Down, down.Rate)
		spec.Up[at], spec.Down[at] = up, down
	}
	if len(c.Apart) == 0 {
		return spec
	}
	spec.Pairs = map[link.Pair]link.Params{}
	maps.Copy(spec.Pairs, base.Pairs)
	for _, node := range c.Apart {
		for other := range hosts {
			if slices.Contains(c.Apart, other) {
				continue
			}
			a, b := hosts[node].Addr().String(), hosts[other].Addr().String()
			for _, p := range []link.Pair{{a, b}, {b, a}} {
				path, ok := base.Pairs[p]
				if up, down := spec.Up[p[0]], spec.Down[p[1]]; !ok {
					path = link.Params{Delay: up.Delay + down.Delay, Jitter: up.Jitter + down.Jitter}
				}
				path.Loss = 1
				spec.Pairs[p] = path
			}
		}
	}
	return spec
}
