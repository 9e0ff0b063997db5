package siachain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node implements system.Follower: at most one process, which serves or follows.
type node struct {
	*member.Embedded
	gateway string // its address of the gateway protocol, the same for its life

	mu      sync.Mutex
	serving string // what Serve started, in full; empty: it does not serve
}

var (
	_ system.Follower = (*node)(nil)
	_ system.Healther = (*node)(nil)
)

func newNode(ctx context.Context, d system.Deployment, h testbed.Host, label string) (*node, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	n := &node{gateway: system.JoinPort(h, port)}
	n.Embedded, err = member.NewEmbedded(ctx, d, name, h, label, port)
	return n, err
}

// Address implements system.Follower.
func (n *node) Address(context.Context) (string, error) { return n.gateway, nil }

// run starts the process, and says in its own words why it cannot do its task.
func (n *node) run(ctx context.Context, args ...string) error {
	if err := n.Run(ctx, args...); err != nil {
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

// Serve implements system.Follower.
func (n *node) Serve(ctx context.Context, task system.ServeTask) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	own, err := of(task.Settings, true)
	if err != nil {
		return err
	}
	if s, err := parse(task.Settings); err != nil {
		return err
	} else if s.sendBlocks < 1 {
		return fmt.Errorf("sia-chain: max_send_blocks is %d", s.sendBlocks)
	}
	args := []string{"--do=serve", "--chain=" + task.Chain.ID, "--listen=" + n.gateway, "--manner=" + task.Manner, "--settings=" + own}
	n.mu.Lock()
	defer n.mu.Unlock()
	what := fmt.Sprint(args)
	if n.serving == what && n.Health(ctx) == nil {
		return nil
	}
	n.serving = ""
	if err := n.run(ctx, args...); err != nil {
		return err
	}
	n.serving = what
	return nil
}

// Follow implements system.Follower.
func (n *node) Follow(ctx context.Context, task system.FollowTask) error {
	for _, a := range task.Peers {
		if _, err := netip.ParseAddrPort(a); err != nil {
			return fmt.Errorf("sia-chain: %q is no address of a peer, IP:PORT: %w", a, err)
		}
	}
	if _, err := parse(task.Settings); err != nil {
		return err
	}
	own, err := of(task.Settings, false)
	if err != nil {
		return err
	}
	peers, err := json.Marshal(task.Peers)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serving = ""
	return n.run(ctx, "--do=follow", "--chain="+task.Chain.ID, "--listen="+n.gateway, "--dir="+task.Dir, "--peers="+string(peers), "--settings="+own)
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

// Halt implements system.Follower.
func (n *node) Halt(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serving = ""
	return n.Stop(ctx)
}

// Kill implements system.Follower.
func (n *node) Kill(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serving = ""
	return n.Process.Kill(ctx)
}
