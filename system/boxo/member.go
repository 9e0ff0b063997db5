package boxo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
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

var _ system.Healther = (*member.Daemon)(nil)

// newKind is what the nodes of a swarm have in common. What a publisher says is the
// CID, which follows from the bytes and the options chunk, raw_leaves and cid_version.
func newKind() *member.Kind {
	return &member.Kind{
		Name:  name,
		Ref:   func(ref string) error { _, err := cid.Decode(ref); return err },
		Peer:  func(a string) error { _, err := peer.AddrInfoFromString(a); return err },
		RefOf: func(said json.RawMessage) (ref string, err error) { return ref, json.Unmarshal(said, &ref) },
	}
}

// startPeer starts a node of the swarm whose key is psk. The tool speaks to it on its own
// host alone: what crosses links is bitswap.
func startPeer(ctx context.Context, d system.Deployment, h testbed.Host, kind *member.Kind, psk string) (*member.Daemon,
	error) {
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
	return kind.Start(ctx, d, h, "node-"+h.Name(), listen, address, args...)
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
