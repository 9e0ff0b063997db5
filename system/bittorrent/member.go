package bittorrent

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// daemon is one process of a swarm, and what it needs of the others.
type daemon struct {
	*member.Daemon
	peer  string    // address of its peers' side
	infos *sync.Map // by ref, what a publisher hands over to leechers, out of band
	hands bool      // leechers are handed the metainfo; else they ask their peers
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

func startDaemon(ctx context.Context, d system.Deployment, h testbed.Host, label string, infos *sync.Map) (*daemon, error) {
	var port int
	var err error
	if h == d.Client { // option port is that of the hosts
		port, err = h.Port(ctx, 0)
	} else {
		port, err = d.Port(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	n := &daemon{peer: system.JoinPort(h, port), infos: infos, hands: d.Options["metainfo"] == "file"}
	args := []string{"--listen=" + n.peer}
	for _, k := range []string{"transport", "piece", "max_connections", "encryption", "upload_limit", "download_limit"} {
		args = append(args, "--"+k+"="+d.Options[k])
	}
	n.Daemon, err = kindOf(d.Options).Start(ctx, d, h, label, n.peer, n.peer, args...)
	return n, err
}

// Publish implements system.Member.
func (n *daemon) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, error) {
	var info []byte
	if err := n.Daemon.Publish(ctx, title, size, r, &info); err != nil {
		return "", err
	}
	ref := system.Ref(hashOf(info).HexString())
	n.infos.Store(ref, info)
	return ref, nil
}

// Fetch implements system.Member.
func (n *daemon) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	t := task{From: from}
	if info, ok := n.infos.Load(ref); ok && n.hands { // else the swarm may know
		t.Info = info.([]byte)
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
