// Package siachain embeds Sia's current consensus code: go.sia.tech/core and coreutils (chain
// manager and syncer on bbolt), with walletd's wallet manager as an optional subscriber of the
// node. Nodes serve and follow a private chain that Plimsoll makes; each node is a separate
// process.
package siachain

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "sia-chain"

//go:embed info.yaml
var description string

// System implements system.Embedded.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System. Nothing can be missing, but settings can be wrong.
func (System) Check(_ context.Context, opt system.Options) []system.Problem {
	if opt["subscriber"] != "none" && !withWalletd {
		return []system.Problem{{What: "subscriber: " + opt["subscriber"] +
			" needs walletd, which a program of `go install` does not have",
			Hint: "use a release or `make build` in a clone, or set subscriber: none"}}
	}
	return nil
}

// Start implements system.System. It allocates a node on each host; no processes run yet.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	identity := map[string]string{
		"version": strings.Join([]string{chain.Version("go.sia.tech/core"), chain.Version("go.sia.tech/coreutils"),
			chain.Version("go.etcd.io/bbolt")}, ", "),
		"subscriber": chain.Version("go.sia.tech/walletd/v2") + " on " + chain.Version("modernc.org/sqlite") +
			" (SQLite in Go, without C)",
		"protocol":  "Sia gateway 2.0.0 over TCP",
		"discovery": "none: the fresh node is given its peers, peers know no others",
	}
	nodes, err := group.Start(ctx, len(d.Hosts), 1, identity, func(ctx context.Context, i int) (group.Node, error) {
		return newNode(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1))
	})
	return &cluster{nodes, d}, err
}

// cluster implements system.Chains.
type cluster struct {
	system.Cluster
	d system.Deployment
}

// Chain implements system.Chains. A separate process makes the chain, which takes longer the longer
// the chain is; the process ends with ctx.
func (c *cluster) Chain(ctx context.Context, want system.ChainSpec, say func(string)) (system.Chain, error) {
	cache := cmp.Or(c.d.Cache, filepath.Join(c.d.DirOf(c.d.Client), "chains"))
	var made report
	for _, h := range testbed.OnePerMachine(c.d.Hosts) { // the same spec gives the same blocks on each machine
		var err error
		if made, err = c.work(ctx, h, task{Do: "make", Cache: cache, Spec: chain.Spec(want)}, say); err != nil {
			return system.Chain{}, fmt.Errorf("sia-chain: make a chain of %d blocks: %w", want.Blocks, err)
		}
	}
	return *made.Chain, nil
}

// Replay implements system.Replayer.
func (c *cluster) Replay(ctx context.Context, what system.FollowTask) (system.Replayed, error) {
	t := task{Do: "replay", Chain: what.Chain.ID, Dir: what.Dir, Settings: what.Settings}
	s, err := c.work(ctx, c.d.Hosts[0], t, func(string) {})
	if err != nil {
		return system.Replayed{}, fmt.Errorf("sia-chain: replay: %w", err)
	}
	return *s.Replayed, nil
}

// work runs a process for a finite task on a host. The process writes its progress and its result.
func (c *cluster) work(ctx context.Context, h testbed.Host, t task, say func(string)) (r report, err error) {
	command, err := c.d.Node(name, member.Argument(t))
	if err != nil {
		return r, err
	}
	out, in := io.Pipe()
	defer out.Close()
	p, err := h.Start(ctx, testbed.Command{Name: name + "/" + t.Do, Role: "system", Args: command, Dir: c.d.DirOf(h),
		Stdout: in})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Stop(context.WithoutCancel(ctx))) }()
	defer context.AfterFunc(ctx, func() { out.CloseWithError(context.Cause(ctx)) })()
	for d := json.NewDecoder(out); ; say(r.Say) {
		r = report{}
		switch err := d.Decode(&r); {
		case err == io.EOF:
			<-p.Done()
			return r, cmp.Or(p.Err(), err)
		case err != nil || r.Say == "":
			return r, err
		}
	}
}

// node implements system.ChainNode with at most one process at a time, which serves or follows a
// chain. Its methods must not be called concurrently, except Following and Processes.
type node struct {
	*member.Controlled
	serving system.ServeTask // of the last Serve; zero if it is not serving
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
	err := n.run(ctx, task{Do: "serve", Chain: what.Chain.ID, Listen: n.Listen, Manner: what.Manner})
	if err == nil {
		n.serving = what
	}
	return err
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
