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
	gateway string // address for the gateway protocol, which never changes

	serving system.ServeTask // of the last Serve; zero if it is not serving
}

var _ system.Healther = (*node)(nil)

func newNode(ctx context.Context, d system.Deployment, h testbed.Host, label string) (*node, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	n := &node{gateway: system.JoinPort(h, port)}
	n.Controlled, err = member.NewControlled(ctx, d, name, h, label, port)
	return n, err
}

// Address implements system.ChainNode.
func (n *node) Address(context.Context) (string, error) { return n.gateway, nil }

// run starts the process.
func (n *node) run(ctx context.Context, t task) error {
	n.serving, t.Control = system.ServeTask{}, n.Control
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
	if n.serving == what && n.Health(ctx) == nil {
		return nil
	}
	err := n.run(ctx, task{Do: "serve", Chain: what.Chain.ID, Listen: n.gateway, Manner: what.Manner})
	if err == nil {
		n.serving = what
	}
	return err
}

// Follow implements system.ChainNode.
func (n *node) Follow(ctx context.Context, what system.FollowTask) error {
	return n.run(ctx, task{Do: "follow", Chain: what.Chain.ID, Listen: n.gateway, Dir: what.Dir, Peers: what.Peers,
		Settings: what.Settings})
}

// Following implements system.Follower.
func (n *node) Following(ctx context.Context) (f system.Following, err error) {
	err = n.Call(ctx, http.MethodGet, statePath, nil, &f)
	return f, err
}

// Halt implements system.ChainNode.
func (n *node) Halt(ctx context.Context) error { return n.Stop(ctx) }
