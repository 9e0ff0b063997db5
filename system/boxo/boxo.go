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

// Check implements system.System: nothing can be missing.
func (s System) Check(_ context.Context, opt system.Options) []system.Problem {
	return system.WrongOptions(name, wrong(opt))
}

// wrong is what is wrong with the options.
func wrong(opt system.Options) error {
	if n, err := opt.Int("chunk"); err != nil || n < 1 || n > maxChunk {
		return fmt.Errorf("boxo: option \"chunk\" is from 1 B to 1 MiB, not %q", opt["chunk"])
	}
	if n, err := opt.Int("upload_limit"); err != nil || n < 0 {
		return fmt.Errorf("boxo: option \"upload_limit\" is 0 or more, not %q", opt["upload_limit"])
	}
	return nil
}

// Start implements system.System: one gateway on each host, without links to
// each other or to anyone; or a node of a swarm on each.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	if err := wrong(opt); err != nil {
		return nil, err
	}
	identity := map[string]string{"version": "boxo " + group.Library("github.com/ipfs/boxo")}
	for _, k := range []string{"format", "chunk", "raw_leaves", "cid_version"} {
		identity[k] = opt[k]
	}
	start := startGateway
	if d.Swarm {
		kind, psk := newKind(), swarmKey()
		start = func(ctx context.Context, d system.Deployment, h testbed.Host) (group.Node, error) {
			return startPeer(ctx, d, h, kind, psk)
		}
		identity["via"], identity["exchange"], identity["store"] = "peers", "bitswap", "one file for each block"
		identity["libp2p"] = "go-libp2p " + group.Library("github.com/libp2p/go-libp2p")
		identity["transport"], identity["discovery"] = "TCP, pre-shared key, noise, yamux", "none: peers are named"
		identity["upload_limit"] = opt["upload_limit"]
	} else {
		identity["via"], identity["exchange"] = "gateway", "offline"
		identity["store"] = "CARv2 file, blocks read into memory one by one"
	}
	return group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		n, err := start(ctx, d, d.Hosts[i])
		if err != nil {
			return nil, fmt.Errorf("boxo: %w", err)
		}
		return n, nil
	})
}
