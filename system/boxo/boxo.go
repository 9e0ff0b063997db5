// Package boxo is an IPFS node built from the boxo library: a block store on disk, UnixFS import,
// the trustless HTTP gateway and, among nodes that know only each other, bitswap; each node runs in
// its own process. It is not Kubo and never called so: it has neither a DHT nor Kubo's disk store.
package boxo

import (
	"context"
	_ "embed"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

const name = "boxo"

//go:embed info.yaml
var description string

// System implements system.Embedded.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System: nothing can be missing.
func (s System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.Starter: it starts one gateway on each host, without connections to each
// other or elsewhere, or one node of a swarm on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	identity := map[string]string{
		"version": "boxo " + group.Library("github.com/ipfs/boxo"), "chunk": opt["chunk"], "format": opt["format"],
		"raw_leaves": "true", "cid_version": "1",
	}
	if d.Swarm {
		identity["via"], identity["exchange"], identity["store"] = "peers", "bitswap", "one file for each block"
		identity["libp2p"] = "go-libp2p " + group.Library("github.com/libp2p/go-libp2p")
		identity["transport"], identity["discovery"] = "TCP, pre-shared key, noise, yamux", "none: peers are named"
		return newSwarm().Cluster(ctx, d, identity)
	}
	identity["via"], identity["exchange"] = "gateway", "offline"
	identity["store"] = "CARv2 file, blocks read into memory one by one"
	return group.Start(ctx, len(d.Hosts), 1, identity, func(ctx context.Context, i int) (group.Node, error) {
		return startGateway(ctx, d, d.Hosts[i])
	})
}
