package boxo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/ipfs/boxo/bitswap"
	bsmsg "github.com/ipfs/boxo/bitswap/message"
	"github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/exchange"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/core/routing"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// reconnect is how long a lost connection may take to come back before those
// who wait for blocks over it are told.
const reconnect = 5 * time.Second

// swarmFlags say how a node takes part in the swarm; empty key: it does not.
type swarmFlags struct {
	key      string // file of the pre-shared key
	identity string // file of the private key; empty: a new one
	listen   string // ip:port; empty: it only dials
	peer     string // multiaddress of the node with the blocks; empty: there is none
	near     string // directory for blocks fetched from it
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
	options := []libp2p.Option{
		libp2p.PrivateNetwork(psk), libp2p.Transport(tcp.NewTCPTransport), libp2p.DisableRelay(), libp2p.ForceReachabilityPrivate(),
		libp2p.ResourceManager(&network.NullResourceManager{}), // limits would be part of what is measured
		libp2p.DisableMetrics(), libp2p.DisableIdentifyAddressDiscovery(),
	}
	if f.identity != "" {
		b, err := os.ReadFile(f.identity)
		if err != nil {
			return nil, err
		}
		key, err := crypto.UnmarshalPrivateKey(b)
		if err != nil {
			return nil, fmt.Errorf("identity %s: %w", f.identity, err)
		}
		options = append(options, libp2p.Identity(key))
	}
	if f.listen == "" {
		return libp2p.New(append(options, libp2p.NoListenAddrs)...)
	}
	address, err := netip.ParseAddrPort(f.listen)
	if err != nil {
		return nil, err
	}
	at, err := manet.FromNetAddr(net.TCPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	return libp2p.New(append(options, libp2p.ListenAddrs(at))...)
}

// enter takes part in the swarm until the returned function is called.
func (f swarmFlags) enter(ctx context.Context, store blockstore.Blockstore) (*swarm, func(), error) {
	if f.near != "" {
		if err := os.MkdirAll(f.near, 0o755); err != nil {
			return nil, nil, err
		}
	}
	h, err := f.join()
	if err != nil {
		return nil, nil, err
	}
	s, err := f.exchange(ctx, h, store)
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	return s, func() { s.Bitswap.Close(); h.Close() }, nil
}

// swarm is the exchange with the one other node. Bitswap asks on for ever for a
// block that nobody has; swarm ends when that node says that it has not got it.
type swarm struct {
	*bitswap.Bitswap
	host host.Host
	from *peer.AddrInfo // nil: nobody to ask

	mu      sync.Mutex
	waiting map[*waiter]bool
}

var _ exchange.SessionExchange = (*swarm)(nil)

// waiter is somebody who waits for blocks.
type waiter struct {
	keys map[cid.Cid]bool
	end  context.CancelCauseFunc
}

var errLost = errors.New("the connection to the storage node is lost")

// exchange starts bitswap over store and connects to the node with the blocks.
func (f swarmFlags) exchange(ctx context.Context, h host.Host, store blockstore.Blockstore) (*swarm, error) {
	s := &swarm{host: h, waiting: map[*waiter]bool{}}
	var finder routing.ContentDiscovery
	if f.peer != "" {
		at, err := multiaddr.NewMultiaddr(f.peer)
		if err != nil {
			return nil, err
		}
		if s.from, err = peer.AddrInfoFromP2pAddr(at); err != nil {
			return nil, err
		}
		finder = only(*s.from)
	}
	s.Bitswap = bitswap.New(ctx, bsnet.NewFromIpfsHost(h), finder, store, bitswap.WithTracer(s),
		// To take silence for a No serves to ask another node; where there is none,
		// a transfer on a busy machine has been seen to stand still for a minute.
		bitswap.SetSimulateDontHavesOnTimeout(false))
	h.Network().Notify(&network.NotifyBundle{DisconnectedF: s.lost})
	// Bitswap speaks to peers that come after it alone.
	if s.from != nil {
		if err := h.Connect(ctx, *s.from); err != nil {
			return nil, errors.Join(fmt.Errorf("connect to %s: %w", f.peer, err), s.Bitswap.Close())
		}
	}
	return s, nil
}

// only is the routing of a swarm with one place for everything. Bitswap uses it
// when nobody answered its first question, and then asks in a way that wants a No.
type only peer.AddrInfo

// FindProvidersAsync implements routing.ContentDiscovery.
func (o only) FindProvidersAsync(context.Context, cid.Cid, int) <-chan peer.AddrInfo {
	c := make(chan peer.AddrInfo, 1)
	c <- peer.AddrInfo(o)
	close(c)
	return c
}

// MessageSent implements tracer.Tracer.
func (s *swarm) MessageSent(peer.ID, bsmsg.BitSwapMessage) {}

// MessageReceived implements tracer.Tracer: a No of the only node is an answer.
func (s *swarm) MessageReceived(from peer.ID, m bsmsg.BitSwapMessage) {
	if s.from == nil || from != s.from.ID {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range m.DontHaves() {
		for w := range s.waiting {
			if w.keys[c] {
				w.end(ipld.ErrNotFound{Cid: c})
			}
		}
	}
}

// lost ends the waiting when a connection does not come back.
func (s *swarm) lost(n network.Network, c network.Conn) {
	if s.from == nil || c.RemotePeer() != s.from.ID {
		return
	}
	time.AfterFunc(reconnect, func() {
		if n.Connectedness(s.from.ID) == network.Connected {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for w := range s.waiting {
			w.end(errLost)
		}
	})
}

// wait returns a context that ends, with the reason as its cause, when keys
// will not come.
func (s *swarm) wait(ctx context.Context, keys ...cid.Cid) (context.Context, func(), error) {
	if s.from == nil {
		return nil, nil, ipld.ErrNotFound{Cid: keys[0]}
	}
	if s.host.Network().Connectedness(s.from.ID) != network.Connected {
		dial, cancel := context.WithTimeout(ctx, reconnect)
		defer cancel()
		if err := s.host.Connect(dial, *s.from); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errLost, err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &waiter{keys: map[cid.Cid]bool{}, end: cancel}
	for _, c := range keys {
		w.keys[c] = true
	}
	s.mu.Lock()
	s.waiting[w] = true
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		delete(s.waiting, w)
		s.mu.Unlock()
		cancel(nil)
	}, nil
}

// GetBlock implements exchange.Fetcher.
func (s *swarm) GetBlock(ctx context.Context, c cid.Cid) (blocks.Block, error) {
	return session{s, s.Bitswap}.GetBlock(ctx, c)
}

// GetBlocks implements exchange.Fetcher.
func (s *swarm) GetBlocks(ctx context.Context, keys []cid.Cid) (<-chan blocks.Block, error) {
	return session{s, s.Bitswap}.GetBlocks(ctx, keys)
}

// NewSession implements exchange.SessionExchange.
func (s *swarm) NewSession(ctx context.Context) exchange.Fetcher {
	return session{s, s.Bitswap.NewSession(ctx)}
}

// session is a bitswap session that can end with a No.
type session struct {
	swarm *swarm
	under exchange.Fetcher
}

// GetBlock implements exchange.Fetcher.
func (s session) GetBlock(ctx context.Context, c cid.Cid) (blocks.Block, error) {
	ctx, done, err := s.swarm.wait(ctx, c)
	if err != nil {
		return nil, err
	}
	defer done()
	b, err := s.under.GetBlock(ctx, c)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b, err
}

// GetBlocks implements exchange.Fetcher. When a block will not come, the
// channel closes without it.
func (s session) GetBlocks(ctx context.Context, keys []cid.Cid) (<-chan blocks.Block, error) {
	out := make(chan blocks.Block)
	if len(keys) == 0 {
		close(out)
		return out, nil
	}
	ctx, done, err := s.swarm.wait(ctx, keys...)
	if err != nil {
		return nil, err
	}
	in, err := s.under.GetBlocks(ctx, keys)
	if err != nil {
		done()
		return nil, err
	}
	go func() {
		defer close(out)
		defer done()
		for b := range in {
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}
