// Package kubo stores objects in Kubo, the common IPFS node. A put is an import into the client's
// own node; only reads of data that another node holds cross the link.
package kubo

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

const name = "kubo"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Healther   = (*node)(nil)
	_ system.Endpointer = (*node)(nil)
	_ system.Seeder     = seeding{}
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	return daemon.Check(ctx, s, opt, func() error {
		_, err := program(ctx, opt)
		return err
	})
}

// Start implements system.Starter: it starts a node on the first server host and one on the
// client's, or the nodes of a swarm, on a private network.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	bin, err := program(ctx, d.Options)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	k, about := kind(d.Options, bin), aboutOf(d.Options)
	about["binary"] = bin
	if d.Swarm {
		delete(about, "put")
		delete(about, "range")
		about["method"], about["exchange"] = "pin", "bitswap"
		about["transport"], about["discovery"] = "TCP, pre-shared key", "none: peers are named"
		return k.Swarm(ctx, d, about)
	}
	about["seed"] = "add on the server's node, pinned"
	return k.Pair(ctx, d, about, func(p *daemon.Pair[*rpc]) group.Node { return private{seeding{newNode(p)}} })
}

// Attach implements system.Attacher.
func (System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	about := aboutOf(d.Options)
	return kind(d.Options, "").Attach(ctx, d, about, func(p *daemon.Pair[*rpc]) group.Node {
		if !p.Two() {
			return newNode(p)
		}
		about["seed"] = "add on the node at " + p.Far().At.Host
		return seeding{newNode(p)}
	})
}

// aboutOf returns the settings that affect the measured speed.
func aboutOf(opt system.Options) map[string]string {
	return map[string]string{
		"method": "cat", "range": "cat with offset and length",
		"put":         "add to the client's node, pinned: nothing crosses the link",
		"cid_version": "1", "raw_leaves": "true", "chunk": opt["chunk"],
		"durability": "flatfs does not sync: an add ends in the page cache",
	}
}

func program(ctx context.Context, opt system.Options) (bin string, err error) {
	if bin, err = system.Program(name, opt, "binary", "PLIMSOLL_KUBO", "ipfs"); err == nil {
		err = system.Says(ctx, name, bin, "ipfs version", "version")
	}
	return bin, err
}
