package fanout

import (
	"context"
	"fmt"
	"runtime"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// System implements system.Embedded.
type System struct{}

var _ system.Embedded = System{}

// Check implements system.System: nothing can be missing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.System: one node on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	d.Options = opt
	if n, err := opt.Int("upload_limit"); err != nil || n < 0 || n > 0 && n < slice {
		return nil, fmt.Errorf("fanout: option \"upload_limit\" is 0 or at least 64 KiB, not %q", opt["upload_limit"])
	}
	identity := map[string]string{
		"version": runtime.Version(), "server": "net/http", "transport": "TCP, HTTP/1.1",
		"discovery": "none: seeders are named", "upload_limit": opt["upload_limit"],
	}
	known := &registry{of: map[system.Ref]*published{}}
	kind := member.Kind{Name: name, Ref: checkRef, Peer: member.IPPort}
	return group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		h := d.Hosts[i]
		port, err := d.Port(ctx, h)
		if err != nil {
			return nil, fmt.Errorf("fanout: %w", err)
		}
		n := &node{serves: system.JoinPort(h, port), index: i, known: known}
		n.Daemon, err = kind.Start(ctx, d, h, fmt.Sprintf("node-%d", i+1), n.serves, n.serves,
			"--listen="+n.serves, "--upload_limit="+opt["upload_limit"])
		if err != nil {
			return nil, fmt.Errorf("fanout: %w", err)
		}
		return n, nil
	})
}
