package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// nodesOf is how many nodes a cell has, each on a host of its own behind an access
// link of its own: those of a swarm, or the fresh node, which is the first, and its
// peers. 0: the cell has one server, or whatever the system makes of one.
func nodesOf(cell experiment.Cell) int {
	switch {
	case cell.Disseminate != nil:
		return cell.Disseminate.Nodes
	case cell.Sync != nil:
		return 1 + cell.Sync.Peers
	}
	return 0
}

// nodes is how many nodes the largest of these cells, of one system, has.
func nodes(cells []experiment.Cell) (most int) {
	for _, c := range cells {
		most = max(most, nodesOf(c))
	}
	return most
}

// spreads reports whether these cells are of a swarm, follows whether they are of
// chains.
func spreads(cells []experiment.Cell) bool { return len(cells) > 0 && cells[0].Disseminate != nil }
func follows(cells []experiment.Cell) bool { return len(cells) > 0 && cells[0].Sync != nil }

// hostNames are the hosts of a system with these cells: one for each node.
func hostNames(system string, cells []experiment.Cell) []string {
	n := nodes(cells)
	if n == 0 {
		return []string{system}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", system, i+1)
	}
	return names
}

// changesLinks reports whether a cell needs links that can be emulated, and cuts
// whether it parts nodes from each other.
func changesLinks(cell experiment.Cell) (changes, cuts bool) {
	var faults experiment.Faults
	switch d, s := cell.Disseminate, cell.Sync; {
	case d != nil:
		changes = d.Up > 0 || d.Slow > 0 && (d.SlowUp > 0 || d.SlowDown > 0)
		faults = d.Faults
	case s != nil:
		changes = s.Speeds.Given() || slices.ContainsFunc(s.Trouble, func(t experiment.Trouble) bool { return t.Rate > 0 })
		faults = s.Faults
	}
	for _, f := range faults {
		switch f.Kind() {
		case experiment.FaultCut:
			changes, cuts = true, true
		case experiment.FaultRate:
			changes = true
		}
	}
	return changes, cuts
}

// plansChanges is the same of all cells of a plan.
func plansChanges(plan *experiment.Plan) (changes, cuts bool) {
	for _, cell := range plan.Cells {
		c, p := changesLinks(cell)
		changes, cuts = changes || c, cuts || p
	}
	return changes, cuts
}

// nodesTime is what a trial with nodes may take beyond one deadline.
func nodesTime(cell experiment.Cell, limits experiment.Limits) time.Duration {
	switch {
	case cell.Disseminate != nil:
		return swarmTime(cell, limits)
	case cell.Sync != nil:
		return syncTime(cell, limits)
	}
	return 0
}

// chainsTime is how long making the chains of these cells may take: several times
// what the plan expects of a sync, for each cell, as if no two had the same.
func chainsTime(cells []experiment.Cell, limits experiment.Limits) (all time.Duration) {
	for _, c := range cells {
		all += chainTime(c, limits)
	}
	return all
}

// chainTime is how long making the chain of a cell, or validating it locally, may take.
func chainTime(c experiment.Cell, limits experiment.Limits) time.Duration {
	return time.Duration(4*c.Estimate.Operation*float64(time.Second)) + limits.Start.Std()
}

// syncTime: all peers and the fresh node may have to be started, and the node may be
// killed and started again. What the sync itself takes has the deadline for a limit,
// faults included. Chains are made before the first trial, and validated locally
// before the first that needs it.
func syncTime(cell experiment.Cell, limits experiment.Limits) time.Duration {
	starts := nodesOf(cell)
	for _, f := range cell.Sync.Faults {
		if f.Kind() == experiment.FaultCrash {
			starts += cell.Sync.Peers
		}
	}
	// A store is removed at the pace of a slow disk.
	remove := time.Duration(storeBytes(cell) / 10e6 * float64(time.Second))
	all := time.Duration(starts)*limits.Start.Std() + remove
	if cell.Sync.Replay {
		all += chainTime(cell, limits)
	}
	return all
}

// swarmTime: leechers that come later have a deadline of their own, a fault may
// begin as late as the last of them ends and then lasts, and whoever it has killed
// is started again.
func swarmTime(cell experiment.Cell, limits experiment.Limits) time.Duration {
	d := cell.Disseminate
	// Publishing, verifying and removing, at the pace of a slow disk.
	all := time.Duration(float64(d.Nodes) * float64(cell.Data.Size) / 10e6 * float64(time.Second))
	if d.Fresh {
		all += limits.Start.Std()
	}
	switch join := d.Join; {
	case join.Wave > 0:
		all += time.Duration(d.Leechers()/join.Wave) * join.Every.Std()
	case join.Poisson > 0: // three times the mean of the last arrival: it is later once in a thousand trials of many leechers
		all += time.Duration(3 * float64(d.Leechers()) / float64(join.Poisson) * float64(time.Second))
	}
	for _, f := range d.Faults {
		all += f.At.After.Std() + f.For.Std()
		if f.Kind() == experiment.FaultCrash {
			all += limits.Start.Std() + limits.Deadline.Std()
		}
	}
	all += d.Stay.For
	return all
}

// hostNamesOf are the names of hosts, in their order.
func hostNamesOf(hosts []testbed.Host) []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Name()
	}
	return names
}
