package siachain

import (
	"context"
	"fmt"
	"net/http"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node implements system.ChainNode with at most one process at a time, which serves or follows a
// chain. Its methods must not be called concurrently, except Following and Processes.
type node struct {
	*member.Controlled
	serving string // the task of the last Serve; empty if it is not serving
}

var _ system.Healther = (*node)(nil)

func newNode(ctx context.Context, d system.Deployment, h testbed.Host, label string) (*node, error) {
	c, err := member.NewControlled(ctx, d, name, h, label)
	return &node{Controlled: c}, err
}

// Address implements system.ChainNode.
func (n *node) Address(context.Context) (string, error) { return n.Listen, nil }

// run starts the process.
func (n *node) run(ctx context.Context, t task) error {
	n.serving, t.Control = "", n.Control
	if err := n.RunNode(ctx, t); err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	return nil
}

// Serve implements system.ChainNode.
func (n *node) Serve(ctx context.Context, what system.ServeTask) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := task{Do: "serve", Chain: what.Chain.ID, Listen: n.Listen, Manner: what.Manner}
	if n.serving == member.Argument(t) && n.Health(ctx) == nil {
		return nil
	}
	if err := n.run(ctx, t); err != nil {
		return err
	}
	n.serving = member.Argument(t)
	return nil
}

// Follow implements system.ChainNode.
func (n *node) Follow(ctx context.Context, what system.FollowTask) error {
	return n.run(ctx, task{Do: "follow", Chain: what.Chain.ID, Listen: n.Listen, Dir: what.Dir, Peers: what.Peers,
		Settings: what.Settings})
}

// Following implements system.Follower.
func (n *node) Following(ctx context.Context) (f system.Following, err error) {
	err = n.Call(ctx, http.MethodGet, statePath, nil, &f)
	return f, err
}

// Halt implements system.ChainNode.
func (n *node) Halt(ctx context.Context) error { return n.Stop(ctx) }
