package bittorrent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// metainfoDir holds what a publisher hands over to leechers, out of band.
const metainfoDir = "metainfo"

// daemon is one process of a swarm, and what it needs of the others.
type daemon struct {
	*member.Daemon
	peer     string // address of its peers' side
	metainfo string // directory that all share
	hands    bool   // leechers are handed the metainfo; else they ask their peers
}

// kindOf is what the processes of a deployment have in common.
func kindOf(opt system.Options) member.Kind {
	io := map[string]string{"file": "classic", "mmap": "mmap"}[opt["storage"]]
	return member.Kind{
		Name: name,
		Ref:  func(ref string) error { _, err := parse(ref); return err },
		Peer: member.IPPort,
		Env:  []string{"TORRENT_STORAGE_DEFAULT_FILE_IO=" + io}, // the library has no option for it
	}
}

func startDaemon(ctx context.Context, d system.Deployment, h testbed.Host, label string) (*daemon, error) {
	var port int
	var err error
	if h == d.Client { // option port is that of the hosts
		port, err = h.FreePort(ctx)
	} else {
		port, err = d.Port(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	n := &daemon{peer: system.JoinPort(h, port), metainfo: filepath.Join(d.Dir, metainfoDir), hands: d.Options["metainfo"] == "file"}
	args := []string{"--listen=" + n.peer}
	for _, k := range []string{"transport", "piece", "max_connections", "encryption", "upload_limit", "download_limit"} {
		args = append(args, "--"+k+"="+d.Options[k])
	}
	n.Daemon, err = kindOf(d.Options).Start(ctx, d, h, label, n.peer, n.peer, args...)
	return n, err
}

// Publish implements system.Member. The metainfo is left where the other nodes'
// Fetch finds it.
func (n *daemon) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, error) {
	var info []byte
	if err := n.Daemon.Publish(ctx, title, size, r, &info); err != nil {
		return "", err
	}
	ref := system.Ref(hashOf(info).HexString())
	if err := member.WriteWhole(filepath.Join(n.metainfo, string(ref)), info); err != nil {
		return "", fmt.Errorf("bittorrent: metainfo of %q: %w", title, err)
	}
	return ref, nil
}

// Fetch implements system.Member.
func (n *daemon) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	t := task{From: from}
	if _, err := parse(string(ref)); err == nil && n.hands {
		t.Info, err = os.ReadFile(filepath.Join(n.metainfo, string(ref)))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // published by no node here: the swarm may know
			return fmt.Errorf("bittorrent: metainfo of %s: %w", ref, err)
		}
	}
	return n.Daemon.Fetch(ctx, ref, from, t)
}

// await returns when the node has all of ref.
func (n *daemon) await(ctx context.Context, ref system.Ref) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		f, err := n.Progress(ctx, ref)
		if err != nil || f.Complete {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bittorrent: %s has %d of %d bytes of %s: %w", n.Label, f.Verified, f.Size, ref, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}
