package fanout

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// System implements system.Embedded.
type System struct{}

var (
	_ system.Embedded  = System{}
	_ system.Member    = (*node)(nil)
	_ system.Restarter = (*node)(nil)
	_ system.Healther  = (*node)(nil)
)

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
	manifests := &sync.Map{}
	kind := member.Kind{Name: name, Ref: checkRef, Peer: member.IPPort}
	return group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		port, err := d.Port(ctx, d.Hosts[i])
		if err != nil {
			return nil, fmt.Errorf("fanout: %w", err)
		}
		listen := system.JoinPort(d.Hosts[i], port)
		n, err := kind.Start(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1), listen, listen,
			"--listen="+listen, "--upload_limit="+opt["upload_limit"])
		if err != nil {
			return nil, fmt.Errorf("fanout: %w", err)
		}
		return &node{n, manifests}, nil
	})
}

// node is a server and a downloader on a host.
type node struct {
	*member.Daemon
	manifests *sync.Map // by ref: what publishers hand over to leechers, as .torrent files are
}

// Publish implements system.Member.
func (n *node) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	var m manifest
	if err := n.Daemon.Publish(ctx, name, size, r, &m); err != nil {
		return "", err
	}
	ref := system.Ref(m.ref())
	n.manifests.Store(ref, m)
	return ref, nil
}

// Fetch implements system.Member.
func (n *node) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	if err := checkRef(string(ref)); err != nil {
		return fmt.Errorf("fanout: %q is no ref (%w): %w", ref, err, system.ErrBadRef)
	}
	m, ok := n.manifests.Load(ref)
	if !ok {
		return fmt.Errorf("fanout: %s was published by no node here: %w", ref, system.ErrNotFound)
	}
	return n.Daemon.Fetch(ctx, ref, from, task{Manifest: m.(manifest), From: from})
}
