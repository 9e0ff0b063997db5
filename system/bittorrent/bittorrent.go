package bittorrent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
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
	if n, err := opt.Int("piece"); err != nil || n < minPiece || n > maxPiece || n&(n-1) != 0 {
		return nil, fmt.Errorf("bittorrent: option \"piece\" is a power of two from 16 KiB to 16 MiB, not %q", opt["piece"])
	}
	for _, k := range []string{"upload_limit", "download_limit"} {
		if n, err := opt.Int(k); err != nil || n < 0 || n > 0 && n < minPiece {
			return nil, fmt.Errorf("bittorrent: option %q is 0 or at least 16 KiB, the size of a request, not %q", k, opt[k])
		}
	}
	if n, err := opt.Int("max_connections"); err != nil || n < 1 {
		return nil, fmt.Errorf("bittorrent: option \"max_connections\" is at least 1, not %q", opt["max_connections"])
	}
	return opt, nil
}

const (
	minPiece = 16 << 10 // one request
	maxPiece = 16 << 20
)

// Start implements system.System: one node on each host and, unless it is a
// swarm that was asked for, one at the client that puts and gets.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.options(d.Options)
	if err != nil {
		return nil, err
	}
	d.Options = opt
	identity := map[string]string{
		"version":   "anacrolix/torrent " + group.Library("github.com/anacrolix/torrent"),
		"discovery": "none: peers are named",
		"pex":       "off",
	}
	for _, k := range []string{"transport", "piece", "metainfo", "storage", "max_connections", "encryption", "upload_limit", "download_limit"} {
		identity[k] = opt[k]
	}
	c, infos := &cluster{}, &sync.Map{}
	if !d.Swarm {
		if c.client, err = startDaemon(ctx, d, d.Client, "client-1", infos); err != nil {
			return nil, fmt.Errorf("bittorrent: %w", err)
		}
	}
	c.Cluster, err = group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		at, err := startDaemon(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1), infos)
		if err != nil {
			return nil, fmt.Errorf("bittorrent: %w", err)
		}
		if d.Swarm {
			return at, nil
		}
		return &node{daemon: at, client: c.client, first: i == 0}, nil
	})
	if err != nil {
		return nil, errors.Join(err, c.stopClient(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// cluster is the group of nodes, and the one at the client that serves them all.
type cluster struct {
	system.Cluster
	client *daemon
}

// Stop implements system.Cluster: first the node that asks.
func (c *cluster) Stop(ctx context.Context) error {
	return errors.Join(c.stopClient(ctx), c.Cluster.Stop(ctx))
}

func (c *cluster) stopClient(ctx context.Context) error {
	if c.client == nil {
		return nil
	}
	return c.client.Stop(ctx)
}
