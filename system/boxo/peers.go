package boxo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	spreads "github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Member    = (*peerNode)(nil)
	_ system.Restarter = (*peerNode)(nil)
	_ system.Healther  = (*peerNode)(nil)
)

const swarmKeyFile = "swarm.key"

// peerNode is a node of a swarm of any size. The tool speaks to it on its own
// host alone: what crosses links is bitswap.
type peerNode struct {
	*spreads.Daemon
	address string
}

func startPeer(ctx context.Context, d system.Deployment, h testbed.Host) (group.Node, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	label := "node-" + h.Name()
	identity := filepath.Join(d.Dir, label+".key") // beside what the node keeps: it has the same address without it
	id, err := writeIdentity(identity)
	if err != nil {
		return nil, err
	}
	listen := system.JoinPort(h, port)
	n := &peerNode{}
	if n.address, err = swarmAddress(listen, id); err != nil {
		return nil, err
	}
	args := []string{"--swarm_listen=" + listen, "--swarm_key=" + filepath.Join(d.Dir, swarmKeyFile), "--identity=" + identity}
	for _, k := range []string{"chunk", "raw_leaves", "cid_version", "upload_limit"} {
		args = append(args, "--"+k+"="+d.Options[k])
	}
	kind := spreads.Kind{Name: name, Check: func(ref string) error { _, err := cid.Decode(ref); return err }}
	if n.Daemon, err = kind.Start(ctx, d, h, label, listen, args...); err != nil {
		return nil, err
	}
	return n, nil
}

// Address implements system.Connector: a multiaddress with the node's id.
func (n *peerNode) Address(context.Context) (string, error) { return n.address, nil }

// Connect implements system.Connector: a peer for every content of this node.
func (n *peerNode) Connect(ctx context.Context, address string) error {
	if _, err := addressOf(address); err != nil {
		return fmt.Errorf("boxo: %q is no address of a peer: %w", address, err)
	}
	return n.Daemon.Connect(ctx, address)
}

// Publish implements system.Member: an import. The ref is a CID, which follows
// from the bytes and the options chunk, raw_leaves and cid_version.
func (n *peerNode) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	said, err := n.Daemon.Publish(ctx, name, size, r)
	if err != nil {
		return "", err
	}
	var id string
	if err := json.Unmarshal(said, &id); err != nil {
		return "", fmt.Errorf("boxo: publish %q: %w: %w", name, system.ErrAnswer, err)
	}
	return system.Ref(id), nil
}

// Fetch implements system.Member.
func (n *peerNode) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	for _, a := range from {
		if _, err := addressOf(a); err != nil {
			return fmt.Errorf("boxo: %q is no address of a peer: %w", a, err)
		}
	}
	return n.Daemon.Fetch(ctx, ref, spread{From: from})
}
