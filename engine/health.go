package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
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
	if s.chains { // what runs there the scenario starts, and looks after
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
	if err := r.stopSite(ctx, s); err != nil {
		r.event("error", "stop before restart", err.Error(), 0)
	}
	return r.deploy(ctx, s, s.used)
}

// redeploy brings a system up as if it had never been.
func (r *run) redeploy(ctx context.Context, s *site, why string) error {
	r.event("phase", "fresh deployment", s.use.Name+": "+why, 0)
	if err := r.stopSite(ctx, s); err != nil {
		r.event("error", "stop before fresh deployment", err.Error(), 0)
	}
	return r.deploy(ctx, s, false)
}
