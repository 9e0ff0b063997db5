// Package codex stores objects in Codex or its successor Logos Storage: two dialects of one REST
// interface. A put is an import into the client's own node; only reads of data that another node
// holds cross the link.
package codex

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

const name = "codex"

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
		_, _, _, err := program(ctx, opt)
		return err
	})
}

// Start implements system.Starter: it starts a node on the first server host and one on the
// client's, which know only each other, or the nodes of a swarm.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	bin, speaks, flags, err := program(ctx, d.Options)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	if d.Client.Addr().IsLoopback() {
		return nil, errors.New("codex: its discovery listens on every address of the machine, which only a network " +
			"namespace keeps in, and there are none here; see plimsoll doctor")
	}
	k, about := kind(d.Options, bin, speaks, flags), map[string]string{
		"binary": bin, "dialect": speaks.String(), "quota": d.Options["quota"],
		"block_retries": d.Options["block_retries"],
	}
	if d.Swarm {
		about["discovery"] = "connect"
		about["publish"], about["fetch"], about["progress"] = "import into the node", "POST /data/CID/network",
			"blocks in /space"
		return k.Swarm(ctx, d, about)
	}
	about["put"], about["seed"], about["get"] = "import into the client's node: nothing crosses the link",
		"import into the server's node", "network/stream"
	about["connections"], about["requests"] = "kept between the nodes",
		"one connection to the client's own node for each"
	return k.Pair(ctx, d, about, func(p *daemon.Pair[*api]) group.Node { return seeding{newNode(p)} })
}

// Attach implements system.Attacher.
func (System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	about := map[string]string{
		"put": "import into the node at the endpoint", "get": "network/stream",
		"requests": "one connection to the node at the endpoint for each; the nodes keep theirs among each other",
	}
	return kind(d.Options, "", "", "").Attach(ctx, d, about, func(p *daemon.Pair[*api]) group.Node {
		about["dialect"] = p.Near().dialect.String()
		if !p.Two() {
			return newNode(p)
		}
		about["seed"] = "import into the node at " + p.Far().At.Host
		return seeding{newNode(p)}
	})
}
