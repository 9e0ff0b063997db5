package boxo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Member    = (*peerNode)(nil)
	_ system.Restarter = (*peerNode)(nil)
	_ system.Healther  = (*peerNode)(nil)
)

// peerNode is a node of a swarm of any size. The tool speaks to it on its own
// host alone: what crosses links is bitswap.
type peerNode struct {
	*member.Daemon
}

// startPeer starts a node of the swarm whose key is psk.
func startPeer(ctx context.Context, d system.Deployment, h testbed.Host, psk string) (*peerNode, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	// Beside what the node keeps: it has the same address without it.
	key, identity := filepath.Join(d.DirOf(h), "swarm.key"), filepath.Join(d.DirOf(h), "identity.key")
	private, id, err := newIdentity()
	if err == nil {
		err = h.Files().Write(ctx, identity, 0o600, bytes.NewReader(private))
	}
	if err == nil {
		err = h.Files().Write(ctx, key, 0o600, strings.NewReader(psk))
	}
	if err != nil {
		return nil, err
	}
	listen := system.JoinPort(h, port)
	address, err := swarmAddress(listen, id)
	if err != nil {
		return nil, err
	}
	args := []string{"--swarm_listen=" + listen, "--swarm_key=" + key, "--identity=" + identity}
	for _, k := range []string{"chunk", "raw_leaves", "cid_version", "upload_limit"} {
		args = append(args, "--"+k+"="+d.Options[k])
	}
	kind := member.Kind{
		Name: name,
		Ref:  func(ref string) error { _, err := cid.Decode(ref); return err },
		Peer: func(a string) error { _, err := peer.AddrInfoFromString(a); return err },
	}
	n, err := kind.Start(ctx, d, h, "node-"+h.Name(), listen, address, args...)
	return &peerNode{n}, err
}

// swarmKey is a new pre-shared key of a swarm, as a file of its own.
func swarmKey() string {
	psk := make([]byte, 32)
	rand.Read(psk) // never fails
	return "/key/swarm/psk/1.0.0/\n/base16/\n" + hex.EncodeToString(psk) + "\n"
}

// newIdentity makes a node's private key.
func newIdentity() (key []byte, id peer.ID, err error) {
	private, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	if key, err = crypto.MarshalPrivateKey(private); err != nil {
		return nil, "", err
	}
	id, err = peer.IDFromPublicKey(public)
	return key, id, err
}

// swarmAddress is the multiaddress of an IP:PORT with the id of who listens there.
func swarmAddress(listen string, id peer.ID) (string, error) {
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		return "", err
	}
	address, err := manet.FromNetAddr(net.TCPAddrFromAddrPort(at))
	if err != nil {
		return "", err
	}
	return address.String() + "/p2p/" + id.String(), nil
}

// Publish implements system.Member: an import. The ref is a CID, which follows
// from the bytes and the options chunk, raw_leaves and cid_version.
func (n *peerNode) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	var id string
	err := n.Daemon.Publish(ctx, name, size, r, &id)
	return system.Ref(id), err
}

// Fetch implements system.Member.
func (n *peerNode) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	return n.Daemon.Fetch(ctx, ref, from, task{From: from})
}
