package siachain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

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

// Chain implements system.Chains. A process of ours makes it: that takes a core as
// long as the chain is long, and is ended with ctx.
func (c *cluster) Chain(ctx context.Context, want system.ChainSpec, say func(string)) (system.Chain, error) {
	spec := chain.Spec{Blocks: want.Blocks, Transactions: want.Transactions, Form: want.Form, Seed: want.Seed}
	if err := spec.Validate(); err != nil {
		return system.Chain{}, err
	}
	if c.d.Cache == "" {
		return system.Chain{}, errors.New("sia-chain: the deployment has no cache directory, in which a chain is kept")
	}
	var made state
	for _, h := range testbed.OneOnEach(c.d.Hosts) { // the same spec has the same blocks on each machine
		if err := h.Files().MkdirAll(c.d.Cache, 0o755); err != nil {
			return system.Chain{}, fmt.Errorf("sia-chain: the directory of chains: %w", err)
		}
		var err error
		if made, err = c.work(ctx, h, task{Do: "make", Cache: c.d.Cache, Spec: spec}, say); err != nil {
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

// workPoll is how often a process is asked how far its work is.
const workPoll = 100 * time.Millisecond

// work has a process of ours on a host do a task that has an end, and ends the
// process. s is its last state, with what came of the task.
func (c *cluster) work(ctx context.Context, h testbed.Host, t task, say func(string)) (s state, err error) {
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	n, err := member.NewEmbedded(ctx, c.d, name, h, t.Do, 0)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, n.Stop(context.WithoutCancel(ctx))) }()
	if err := n.Run(ctx, t.flag()); err != nil {
		return s, err
	}
	for said := ""; ; {
		s = state{}
		if err := n.Call(ctx, http.MethodGet, statePath, nil, &s); err != nil {
			return s, err
		}
		switch {
		case s.Failed != "":
			return s, errors.New(s.Failed)
		case s.Chain != nil || s.Replayed != nil:
			return s, nil
		case s.Say != said:
			said = s.Say
			say(said)
		}
		if !member.Sleep(ctx, workPoll) {
			return s, context.Cause(ctx)
		}
	}
}
