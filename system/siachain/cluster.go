package siachain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// cluster implements system.Chains.
type cluster struct {
	system.Cluster
	d system.Deployment
}

// Chain implements system.Chains. A separate process makes the chain, which takes longer the longer
// the chain is; the process ends with ctx.
func (c *cluster) Chain(ctx context.Context, want system.ChainSpec, say func(string)) (system.Chain, error) {
	cache := cmp.Or(c.d.Cache, filepath.Join(c.d.DirOf(c.d.Client), "chains"))
	var made state
	for _, h := range testbed.OneOnEach(c.d.Hosts) { // the same spec gives the same blocks on each machine
		var err error
		if made, err = c.work(ctx, h, task{Do: "make", Cache: cache, Spec: chain.Spec(want)}, say); err != nil {
			return system.Chain{}, fmt.Errorf("sia-chain: make a chain of %d blocks: %w", want.Blocks, err)
		}
	}
	return *made.Chain, nil
}

// Replay implements system.Replayer.
func (c *cluster) Replay(ctx context.Context, what system.FollowTask) (system.Replayed, error) {
	t := task{Do: "replay", Chain: what.Chain.ID, Dir: what.Dir, Peers: what.Peers, Settings: what.Settings}
	s, err := c.work(ctx, c.d.Hosts[0], t, func(string) {})
	if err != nil {
		return system.Replayed{}, fmt.Errorf("sia-chain: replay: %w", err)
	}
	return *s.Replayed, nil
}

// workPoll is the interval of asking a process for its progress.
const workPoll = 100 * time.Millisecond

// work starts a process on a host for a finite task, waits for its result and ends the process. s
// is the last state, with the result.
func (c *cluster) work(ctx context.Context, h testbed.Host, t task, say func(string)) (s state, err error) {
	n, err := member.NewControlled(ctx, c.d, name, h, t.Do, 0)
	if err != nil {
		return s, err
	}
	t.Control = n.Control
	defer func() { err = errors.Join(err, n.Stop(context.WithoutCancel(ctx))) }()
	if err := n.RunNode(ctx, t); err != nil {
		return s, err
	}
	for said := ""; ; {
		if s, err = stateOf(ctx, n); err != nil {
			return s, err
		}
		switch {
		case s.Chain != nil || s.Replayed != nil:
			return s, nil
		case s.Say != said:
			said = s.Say
			say(said)
		}
		if !timing.Pause(ctx, workPoll) {
			return s, context.Cause(ctx)
		}
	}
}
