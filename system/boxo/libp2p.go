package boxo

import (
	"net/netip"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// join creates the host of the node that listens at an address, in the swarm with key. It uses TCP
// with the pre-shared key, and nothing that finds or admits other nodes: no relay, DHT, mDNS, NAT
// mapping or probes.
func join(key []byte, listen string) (host.Host, error) {
	private, err := identity(key, listen)
	if err != nil {
		return nil, err
	}
	return libp2p.New(
		libp2p.PrivateNetwork(key), libp2p.Identity(private),
		libp2p.ListenAddrStrings(member.Multiaddr(netip.MustParseAddrPort(listen))),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.DisableRelay(), libp2p.ForceReachabilityPrivate(),
		libp2p.ResourceManager(&network.NullResourceManager{}), // limits would affect the measurement
		libp2p.DisableMetrics(), libp2p.DisableIdentifyAddressDiscovery())
}
