package siachain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node implements system.ChainNode: at most one process, which serves or follows.
type node struct {
	*member.Embedded
	gateway string // its address of the gateway protocol, the same for its life

	mu      sync.Mutex
	serving string // the task that Serve began; empty: it does not serve
}

var _ system.Healther = (*node)(nil)

func newNode(ctx context.Context, d system.Deployment, h testbed.Host, label string) (*node, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	n := &node{gateway: system.JoinPort(h, port)}
	n.Embedded, err = member.NewEmbedded(ctx, d, name, h, label, port)
	return n, err
}

// Address implements system.ChainNode.
func (n *node) Address(context.Context) (string, error) { return n.gateway, nil }

// run starts the process, and says in its own words why it cannot do its task.
func (n *node) run(ctx context.Context, t task) error {
	n.serving = ""
	if err := n.Run(ctx, t.flag()); err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	var s state
	err := n.Call(ctx, http.MethodGet, statePath, nil, &s)
	if err == nil && s.Failed == "" {
		return nil
	}
	if err == nil {
		err = errors.New(s.Failed)
	}
	return errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
}

// Serve implements system.ChainNode.
func (n *node) Serve(ctx context.Context, what system.ServeTask) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := task{Do: "serve", Chain: what.Chain.ID, Listen: n.gateway, Manner: what.Manner}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serving == t.flag() && n.Health(ctx) == nil {
		return nil
	}
	if err := n.run(ctx, t); err != nil {
		return err
	}
	n.serving = t.flag()
	return nil
}

// Follow implements system.ChainNode.
func (n *node) Follow(ctx context.Context, what system.FollowTask) error {
	for _, a := range what.Peers {
		if err := member.IPPort(a); err != nil {
			return fmt.Errorf("sia-chain: %q is no address of a peer, IP:PORT: %w", a, err)
		}
	}
	t := task{Do: "follow", Chain: what.Chain.ID, Listen: n.gateway, Dir: what.Dir, Peers: what.Peers,
		Settings: what.Settings}
	if _, err := parse(t.Settings); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run(ctx, t)
}

// Following implements system.Follower.
func (n *node) Following(ctx context.Context) (system.Following, error) {
	var s state
	if err := n.Call(ctx, http.MethodGet, statePath, nil, &s); err != nil {
		return system.Following{}, err
	}
	if s.Following == nil {
		return system.Following{}, fmt.Errorf("sia-chain: the node at %s serves, and follows nothing", n.gateway)
	}
	return *s.Following, nil
}

// Halt implements system.ChainNode.
func (n *node) Halt(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serving = ""
	return n.Stop(ctx)
}

// Kill implements system.ChainNode.
func (n *node) Kill(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serving = ""
	return n.Process.Kill(ctx)
}
