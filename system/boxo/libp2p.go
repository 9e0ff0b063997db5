package boxo

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	bsmsg "github.com/ipfs/boxo/bitswap/message"
	bsnet "github.com/ipfs/boxo/bitswap/network"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/time/rate"
)

// swarmFlags say how a node takes part in the swarm.
type swarmFlags struct {
	key      string // file of the pre-shared key
	identity string // file of the private key
	listen   string // ip:port
}

// join makes the node's host: TCP with the pre-shared key, and nothing that
// looks for others or lets them in: no relay, DHT, mDNS, NAT mapping or probes.
func (f swarmFlags) join() (host.Host, error) {
	file, err := os.Open(f.key)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	psk, err := pnet.DecodeV1PSK(file)
	if err != nil {
		return nil, fmt.Errorf("swarm key %s: %w", f.key, err)
	}
	b, err := os.ReadFile(f.identity)
	if err != nil {
		return nil, err
	}
	key, err := crypto.UnmarshalPrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("identity %s: %w", f.identity, err)
	}
	address, err := netip.ParseAddrPort(f.listen)
	if err != nil {
		return nil, err
	}
	at, err := manet.FromNetAddr(net.TCPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	return libp2p.New(
		libp2p.PrivateNetwork(psk), libp2p.Identity(key), libp2p.ListenAddrs(at), libp2p.Transport(tcp.NewTCPTransport),
		libp2p.DisableRelay(), libp2p.ForceReachabilityPrivate(),
		libp2p.ResourceManager(&network.NullResourceManager{}), // limits would be part of what is measured
		libp2p.DisableMetrics(), libp2p.DisableIdentifyAddressDiscovery())
}

// burst is the largest message that passes a limit, and what passes at once:
// more than a block.
const burst = 2 << 20

// paced is a network that sends blocks at a limited rate.
type paced struct {
	bsnet.BitSwapNetwork
	limit *rate.Limiter
}

// SendMessage implements network.BitSwapNetwork; blocks are sent through it.
func (p paced) SendMessage(ctx context.Context, to peer.ID, m bsmsg.BitSwapMessage) error {
	if err := p.limit.WaitN(ctx, min(m.Size(), burst)); err != nil {
		return err
	}
	return p.BitSwapNetwork.SendMessage(ctx, to, m)
}
