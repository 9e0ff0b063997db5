// Package siachain embeds Sia's current consensus code: go.sia.tech/core and coreutils (chain
// manager and syncer on bbolt), with walletd's wallet manager as an optional subscriber of the
// node. Nodes serve and follow a private chain that Plimsoll makes; each node is a separate
// process.
package siachain

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
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
		n, err := newNode(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1))
		if err != nil {
			return nil, fmt.Errorf("sia-chain: %w", err)
		}
		return n, nil
	})
	return &cluster{nodes, d}, err
}
