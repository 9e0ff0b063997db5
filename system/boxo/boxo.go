package boxo

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// System implements system.Embedded.
type System struct{}

var _ system.Embedded = System{}

// Check implements system.System: nothing can be missing.
func (s System) Check(_ context.Context, opt system.Options) []system.Problem {
	_, err := s.options(opt)
	return system.WrongOptions(name, err)
}

// options are opt with its defaults, checked.
func (s System) options(opt system.Options) (system.Options, error) {
	opt, err := s.Info().Fill(opt)
	if err != nil {
		return nil, err
	}
	if n, err := opt.Int("chunk"); err != nil || n < 1 || n > maxChunk {
		return nil, fmt.Errorf("boxo: option \"chunk\" is from 1 B to 1 MiB, not %q", opt["chunk"])
	}
	if n, err := opt.Int("upload_limit"); err != nil || n < 0 {
		return nil, fmt.Errorf("boxo: option \"upload_limit\" is 0 or more, not %q", opt["upload_limit"])
	}
	return opt, nil
}

// Start implements system.System: one gateway on each host, without links to
// each other or to anyone; or, via the swarm, a node on the first host and one
// at the client, which know each other alone; or a node of a swarm on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.options(d.Options)
	if err != nil {
		return nil, err
	}
	d.Options = opt
	identity := map[string]string{"version": "boxo " + group.Library("github.com/ipfs/boxo"), "store": "CARv2 file, blocks read into memory one by one"}
	for _, k := range []string{"via", "format", "chunk", "raw_leaves", "cid_version", "retrieval_timeout", "max_requests"} {
		identity[k] = opt[k]
	}
	start, nodes := startGateway, len(d.Hosts)
	if d.Swarm {
		identity["via"] = "peers"
	}
	if identity["via"] == "gateway" {
		identity["exchange"] = "offline"
	} else {
		identity["exchange"] = "bitswap"
		identity["libp2p"] = "go-libp2p " + group.Library("github.com/libp2p/go-libp2p")
		identity["transport"] = "TCP, pre-shared key, noise, yamux"
	}
	if identity["via"] != "gateway" {
		identity["store"] = "one file for each block"
	}
	psk := swarmKey()
	switch identity["via"] {
	case "swarm":
		nodes = 1
		start = func(ctx context.Context, d system.Deployment, h testbed.Host) (group.Node, error) {
			return startPair(ctx, d, h, psk)
		}
	case "peers":
		start = func(ctx context.Context, d system.Deployment, h testbed.Host) (group.Node, error) {
			return startPeer(ctx, d, h, psk)
		}
		identity["discovery"] = "none: peers are named"
		identity["upload_limit"] = opt["upload_limit"]
	}
	return group.Start(ctx, nodes, identity, func(ctx context.Context, i int) (group.Node, error) {
		n, err := start(ctx, d, d.Hosts[i])
		if err != nil {
			return nil, fmt.Errorf("boxo: %w", err)
		}
		return n, nil
	})
}
