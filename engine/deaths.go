package engine

import (
	"context"
	"fmt"
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
// as any. A node that the scenario killed is no death at all. What is dead when
// the next trial comes is started again, alone.

// deaths are the processes of before that have ended by themselves since: by
// then another may have taken their place.
func deaths(before []*testbed.Process) []*testbed.Process {
	var all []*testbed.Process
	for _, p := range before {
		if p.Err() != nil {
			all = append(all, p)
		}
	}
	return all
}

// deathNotes say so of a trial; the scenario knows the moment, and what the node
// lost by it.
func deathNotes(cell experiment.Cell, dead []*testbed.Process) []string {
	if len(dead) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of the processes of %s died by themselves, the first: %s", len(dead), cell.System, dead[0].Name())}
}

// reviveNodes starts those nodes of a swarm again, on empty stores, that have
// ended: killed and not started again, or dead by themselves. It reports whether
// all are there then.
func (r *run) reviveNodes(ctx context.Context, s *site) bool {
	if s.network == nil {
		return false
	}
	for i, n := range s.cluster.Nodes() {
		if !ended(n.Processes()) {
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

// ended reports whether one of these processes has ended.
func ended(procs []*testbed.Process) bool {
	for _, p := range procs {
		select {
		case <-p.Done():
			return true
		default:
		}
	}
	return false
}
