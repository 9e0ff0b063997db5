package siachain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// cluster implements system.Chains.
type cluster struct {
	system.Cluster
	d system.Deployment
}

var _ system.Chains = (*cluster)(nil)

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
	if err := os.MkdirAll(c.d.Cache, 0o755); err != nil {
		return system.Chain{}, fmt.Errorf("sia-chain: the directory of chains: %w", err)
	}
	wanted, err := json.Marshal(spec)
	if err != nil {
		return system.Chain{}, err
	}
	var made system.Chain
	if err := c.work(ctx, "make", func(p progress) {
		switch {
		case p.Chain != nil:
			made = *p.Chain
		case p.Say != "":
			say(p.Say)
		}
	}, "--cache="+c.d.Cache, "--spec="+string(wanted)); err != nil {
		return system.Chain{}, fmt.Errorf("sia-chain: make a chain of %d blocks: %w", want.Blocks, err)
	}
	return made, nil
}

// Replay implements system.Chains.
func (c *cluster) Replay(ctx context.Context, task system.FollowTask) (system.Replayed, error) {
	if _, err := parse(task.Settings); err != nil {
		return system.Replayed{}, err
	}
	own, err := of(task.Settings, false)
	if err != nil {
		return system.Replayed{}, err
	}
	peers, err := json.Marshal(task.Peers)
	if err != nil {
		return system.Replayed{}, err
	}
	var done system.Replayed
	if err := c.work(ctx, "replay", func(p progress) {
		if p.Replayed != nil {
			done = *p.Replayed
		}
	}, "--chain="+task.Chain.ID, "--dir="+task.Dir, "--peers="+string(peers), "--settings="+own); err != nil {
		return system.Replayed{}, fmt.Errorf("sia-chain: replay: %w", err)
	}
	return done, nil
}
