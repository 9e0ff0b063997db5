package bittorrent

import (
	"context"
	"fmt"
	"io"
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

// settings are the options that are flags of the process and part of its identity.
var settings = []string{"transport", "piece", "max_connections", "encryption", "upload_limit", "download_limit"}

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

// Start implements system.System: one node on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.options(d.Options)
	if err != nil {
		return nil, err
	}
	d.Options = opt
	identity := map[string]string{
		"version":   "anacrolix/torrent " + group.Library("github.com/anacrolix/torrent"),
		"discovery": "none: peers are named",
		"metainfo":  "file",
		"pex":       "off",
		"storage":   "file",
	}
	var flags []string
	for _, k := range settings {
		identity[k] = opt[k]
		flags = append(flags, "--"+k+"="+opt[k])
	}
	kind := member.Kind{
		Name: name, Peer: member.IPPort,
		Ref: func(ref string) error { _, err := parse(ref); return err },
		Env: []string{"TORRENT_STORAGE_DEFAULT_FILE_IO=classic"}, // the library has no option for it, and maps files by default
	}
	infos := &sync.Map{}
	return group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		port, err := d.Port(ctx, d.Hosts[i])
		if err != nil {
			return nil, fmt.Errorf("bittorrent: %w", err)
		}
		listen := system.JoinPort(d.Hosts[i], port)
		n, err := kind.Start(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1), listen, listen, append([]string{"--listen=" + listen}, flags...)...)
		if err != nil {
			return nil, fmt.Errorf("bittorrent: %w", err)
		}
		return &node{n, infos}, nil
	})
}

// node is one process of a swarm.
type node struct {
	*member.Daemon
	infos *sync.Map // by ref: what publishers hand over to leechers, as .torrent files are
}

// Publish implements system.Member.
func (n *node) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, error) {
	var info []byte
	if err := n.Daemon.Publish(ctx, title, size, r, &info); err != nil {
		return "", err
	}
	ref := system.Ref(hashOf(info).HexString())
	n.infos.Store(ref, info)
	return ref, nil
}

// Fetch implements system.Member.
func (n *node) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	if _, err := parse(string(ref)); err != nil {
		return fmt.Errorf("bittorrent: %q is no ref (%w): %w", ref, err, system.ErrBadRef)
	}
	info, ok := n.infos.Load(ref)
	if !ok {
		return fmt.Errorf("bittorrent: %s was published by no node here: %w", ref, system.ErrNotFound)
	}
	return n.Daemon.Fetch(ctx, ref, from, task{Info: info.([]byte), From: from})
}
