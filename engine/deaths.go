package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// How the end of a process is judged. In most scenarios a system is one server to
// the load: when a process of it ends during a trial, the trial is invalid, and
// the system is started anew. In a swarm a node that dies is something that
// happens to it: what it was about to fetch was not fetched, which is an outcome
// of that node, what the others lose by it is theirs, and the trial is as valid
// as any. So it is with a fresh node that follows a chain, but not with its peers:
// they are what it is measured with, and a trial in which one dies is not what its
// cell says. A node that the scenario halted or killed is no death at all. What is
// dead when the next trial comes is started again, alone: of a swarm here, of
// chains by the scenario, which begins each trial by making sure of its peers.

// trace follows the processes on the hosts of nodes; of other systems, none.
func (s *site) trace() func() []testbed.Process {
	if s.network == nil {
		return testbed.Trace()
	}
	return testbed.Trace(s.hosts...)
}

// deaths are those of the processes that have ended by themselves: by now another
// may have taken their place.
func deaths(procs []testbed.Process) []testbed.Process {
	return slices.DeleteFunc(procs, func(p testbed.Process) bool { return p.Err() == nil })
}

// deathNotes say so of a trial; the scenario knows the moment, and what the node
// lost by it.
func deathNotes(cell experiment.Cell, dead []testbed.Process) []string {
	if len(dead) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of the processes of %s died by themselves, the first: %s", len(dead), cell.System,
		dead[0].Name())}
}

// deadPeer is the first of the dead that was a peer of the fresh node, in a cell of
// chains; nil: none was. Hosts beyond the cell's peers may have processes that idle,
// kept for another cell: the trial does not need them.
func deadPeer(s *site, cell experiment.Cell, dead []testbed.Process) testbed.Process {
	if cell.Sync == nil {
		return nil
	}
	peers := s.hosts[1:min(len(s.hosts), 1+cell.Sync.Peers)]
	for _, p := range dead {
		if slices.Contains(peers, p.Host()) {
			return p
		}
	}
	return nil
}

// reviveNodes starts those nodes of a swarm again, on empty stores, that have
// ended: killed and not started again, or dead by themselves. It reports whether
// all are there then.
func (r *run) reviveNodes(ctx context.Context, s *site) bool {
	if s.network == nil {
		return false
	}
	for i, n := range s.cluster.Nodes() {
		if !slices.ContainsFunc(n.Processes(), testbed.Ended) {
			continue
		}
		again, ok := n.(system.Restarter)
		if !ok {
			return false
		}
		begun := time.Now()
		if err := again.Restart(ctx, false); err != nil {
			r.event("health", "node not restarted", fmt.Sprintf("%s: %v", s.hosts[i].Name(), err), time.Since(begun))
			return false
		}
		r.event("health", "node restarted", s.hosts[i].Name(), time.Since(begun))
	}
	return true
}
