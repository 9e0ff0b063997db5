package siachain

import (
	"context"
	"errors"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// cluster implements system.Chains.
type cluster struct {
	system.Cluster
	d system.Deployment
}

var (
	_ system.Chains   = (*cluster)(nil)
	_ system.Replayer = (*cluster)(nil)
)

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
	var made system.Chain
	for _, h := range testbed.OneOnEach(c.d.Hosts) { // the same spec has the same blocks on each machine
		if err := h.Files().MkdirAll(c.d.Cache, 0o755); err != nil {
			return system.Chain{}, fmt.Errorf("sia-chain: the directory of chains: %w", err)
		}
		if err := c.work(ctx, h, task{Do: "make", Cache: c.d.Cache, Spec: spec}, func(p progress) {
			switch {
			case p.Chain != nil:
				made = *p.Chain
			case p.Say != "":
				say(p.Say)
			}
		}); err != nil {
			return system.Chain{}, fmt.Errorf("sia-chain: make a chain of %d blocks: %w", want.Blocks, err)
		}
	}
	return made, nil
}

// Replay implements system.Replayer.
func (c *cluster) Replay(ctx context.Context, what system.FollowTask) (done system.Replayed, err error) {
	t := task{Do: "replay", Chain: what.Chain.ID, Dir: what.Dir, Peers: what.Peers}
	if t.Settings, err = own(what.Settings, false); err != nil {
		return done, err
	}
	if err := c.work(ctx, c.d.Hosts[0], t, func(p progress) {
		if p.Replayed != nil {
			done = *p.Replayed
		}
	}); err != nil {
		return done, fmt.Errorf("sia-chain: replay: %w", err)
	}
	return done, nil
}
