package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Between trials a server is given healthPatience to answer its probe: some
// answer nothing for a long while after a crowd of clients went away. Then it
// is restarted, or, when it is not ours, the trial fails.
const (
	healthPatience = 60 * time.Second
	healthTimeout  = 5 * time.Second
	healthPause    = 250 * time.Millisecond
)

// healthy makes sure that a system serves before a trial. It reports whether
// the system had to be brought up anew, and an error when it does not serve.
func (r *run) healthy(ctx context.Context, s *site) (restarted bool, err error) {
	if moved, err := r.replaceLost(ctx, s); moved || err != nil {
		if err == nil {
			err = r.restart(ctx, s, "a machine of it was lost")
		}
		return true, err
	}
	if s.cluster == nil { // an earlier attempt to bring it up failed
		return true, r.restart(ctx, s, "it is not up")
	}
	if r.plan.Experiment.Sync != nil { // the scenario starts and watches its nodes itself
		return false, nil
	}
	if p := s.died(); p != nil && !r.reviveNodes(ctx, s) {
		return true, r.restart(ctx, s, fmt.Sprintf("process %s ended: %v (see %s)", p.Name(), p.Err(), p.LogPath()))
	}
	begun := time.Now()
	err = r.probe(ctx, s)
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

// probe asks every node until it answers or patience ends.
func (r *run) probe(ctx context.Context, s *site) error {
	deadline := time.Now().Add(healthPatience)
	for {
		err := probeOnce(ctx, s.cluster)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(healthPause):
		}
	}
}

// probeOnce asks all nodes at the same time.
func probeOnce(ctx context.Context, c system.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	nodes := c.Nodes()
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		if h, ok := n.(system.Healther); ok {
			wg.Go(func() { errs[i] = h.Health(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// restart brings a system up anew; one that a trial goes on with, on its data.
func (r *run) restart(ctx context.Context, s *site, why string) error {
	r.say.Note(fmt.Sprintf("%s: restarting it: %s", s.use.Name, why))
	r.event("health", "restart", s.use.Name+": "+why, 0)
	return r.redeploy(ctx, s, s.used)
}

// redeploy stops a system and brings it up again: on its data, or as if it had never been.
func (r *run) redeploy(ctx context.Context, s *site, goesOn bool) error {
	if err := r.stopSite(ctx, s); err != nil {
		r.event("error", "stop before it is started again", err.Error(), 0)
	}
	return r.deploy(ctx, s, goesOn)
}

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
