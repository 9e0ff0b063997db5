package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Between trials a server has healthPatience to answer its probe: some do not answer for a
// long time after many clients have disconnected. After that it is restarted or, if it is
// not ours, the trial fails.
const (
	healthPatience = 60 * time.Second
	healthTimeout  = 5 * time.Second
	healthPause    = 250 * time.Millisecond
)

// healthy ensures that a system serves before a trial. It reports whether the system had to
// be restarted, and returns an error if it does not serve.
func (r *run) healthy(ctx context.Context, s *site) (restarted bool, err error) {
	if moved, err := r.replaceLost(ctx, s); moved || err != nil {
		if err == nil {
			err = r.restart(ctx, s, "a machine of it was lost")
		}
		return true, err
	}
	if s.runner == nil { // an earlier attempt to bring it up or to prepare it failed
		return true, r.restart(ctx, s, "it is not up")
	}
	if r.plan.Experiment.Sync != nil { // the scenario itself starts and watches its nodes
		return false, nil
	}
	if p := s.died(); p != nil && !r.reviveNodes(ctx, s) {
		return true, r.restart(ctx, s, fmt.Sprintf("process %s ended: %v (see %s)", p.Name(), p.Err(), p.LogPath()))
	}
	begun := time.Now()
	err = probe(ctx, s.cluster)
	if took := time.Since(begun); took > healthTimeout {
		r.event("health", "slow to recover", s.use.Name, took)
	}
	if err == nil || ctx.Err() != nil {
		return false, ctx.Err()
	}
	why := fmt.Sprintf("it did not answer its health probe for %s (%v)", healthPatience, err)
	if s.attached() {
		r.event("health", "unhealthy", s.use.Name+": "+why, 0)
		return false, fmt.Errorf("%s: %s", s.use.Name, why)
	}
	return true, r.restart(ctx, s, why)
}

// probe probes every node, all in parallel, until all answer or healthPatience has passed.
func probe(ctx context.Context, c system.Cluster) error {
	for deadline := time.Now().Add(healthPatience); ; timing.Pause(ctx, healthPause) {
		probing, cancel := context.WithTimeout(ctx, healthTimeout)
		var all errgroup.Group
		for _, n := range c.Nodes() {
			if h, ok := n.(system.Healther); ok {
				all.Go(func() error { return h.Health(probing) })
			}
		}
		err := all.Wait()
		cancel()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// restart restarts a system: on its data if a trial continues with it.
func (r *run) restart(ctx context.Context, s *site, why string) error {
	r.say.Note(fmt.Sprintf("%s: restarting it: %s", s.use.Name, why))
	r.event("health", "restart", s.use.Name+": "+why, 0)
	return r.redeploy(ctx, s, s.used)
}

// redeploy stops a system and starts it again: on its data, or from scratch.
func (r *run) redeploy(ctx context.Context, s *site, continuing bool) error {
	if err := r.stopSite(ctx, s); err != nil {
		r.event("error", "stop before it is started again", err.Error(), 0)
	}
	return r.deploy(ctx, s, continuing)
}

// What the end of a process means depends on the scenario. In most scenarios a system is one
// server: if one of its processes ends during a trial, the trial is invalid and the system is
// restarted. In a swarm, the death of a node is an outcome: its own fetch failed, the others
// may lose by it, and the trial is valid. The same holds for a fresh node that follows a
// chain, but not for its peers: a trial in which a peer dies is not what its cell describes.
// Nodes that the scenario itself stops or kills do not count. Before the next trial, dead
// nodes of a swarm are restarted here; those of chains are restarted by the scenario, which
// checks its peers at the beginning of each trial.

// deaths returns the processes that ended by themselves. Others may have replaced them by now.
func deaths(procs []testbed.Process) []testbed.Process {
	return slices.DeleteFunc(procs, func(p testbed.Process) bool { return p.Err() == nil })
}

// deadPeer returns the first dead process that was a peer of the fresh node, in a cell of
// chains; nil: none. Hosts beyond the cell's peers may have idle processes for other cells,
// which the trial does not need.
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

// reviveNodes restarts the nodes of a swarm that have ended, on empty stores, whether they
// were killed or died by themselves. It reports whether all are running then.
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
