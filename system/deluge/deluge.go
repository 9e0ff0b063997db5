package deluge

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

// System implements system.System.
type System struct{}

var _ system.Healther = (*node)(nil)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	if _, err := parseConfig(opt); err != nil {
		return system.WrongOptions("deluge", err)
	}
	_, err := locate(ctx, opt)
	return s.Info().Missing(err)
}

// Start implements system.System: a daemon on each host, all at once. They know
// no peers until these are named to them.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	c, err := parseConfig(opt)
	if err != nil {
		return nil, err
	}
	p, err := locate(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	nodes, known := make([]*node, len(d.Hosts)), &published{}
	var all errgroup.Group
	for i := range nodes {
		all.Go(func() (err error) {
			if nodes[i], err = startNode(ctx, d, c, i, p.python, known); err != nil {
				return fmt.Errorf("deluge: %w", err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		for _, n := range nodes {
			if n != nil {
				err = errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
			}
		}
		return nil, err
	}
	identity := map[string]string{
		"version": "deluge " + p.Deluge, "binary": p.bin,
		"libraries": "libtorrent " + p.Libtorrent + ", Twisted " + p.Twisted + ", Python " +
			p.Python,
		"peers":                          "named by us; no tracker, DHT, PEX or local discovery; private torrents",
		"ignore_limits_on_local_network": "false", "allow_multiple_connections_per_ip": "false",
		"max_failcount": "none",
	}
	for _, k := range []string{"transport", "piece", "upload_slots", "encryption", "reconnect"} {
		identity[k] = opt[k]
	}
	return group.Start(ctx, len(nodes), identity, func(_ context.Context, i int) (group.Node, error) {
		return nodes[i], nil
	})
}
