package boxo

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ipfs/boxo/bitswap"
	bsnet "github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	unixfsio "github.com/ipfs/boxo/ipld/unixfs/io"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pswarm "github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const (
	// blocksDir is the subdirectory of a node's directory for its blocks.
	blocksDir = "blocks"
	// redial is the interval at which disconnected known peers of an incomplete content are dialled
	// again.
	redial = 2 * time.Second
)

// node is a member of a swarm. Its peers are multiaddresses with ids.
type node struct {
	member.Contents
	backend backend
}

// backend implements the operations of a node.
type backend struct {
	store    store
	imp      importer
	host     host.Host
	exchange *bitswap.Bitswap
}

func openNode(ctx context.Context, key []byte, listen string, imp importer, dir string) (*node, func(), error) {
	blocks := filepath.Join(dir, blocksDir)
	if err := os.MkdirAll(blocks, 0o755); err != nil {
		return nil, nil, err
	}
	h, err := join(key, listen)
	if err != nil {
		return nil, nil, err
	}
	b := backend{store: store{blocks}, imp: imp, host: h}
	// Content is found only through connections: all peers are asked for wanted blocks. Treating
	// silence as "don't have" only helps to ask another node; without one, transfers have been seen
	// to stop for a minute on a busy machine.
	b.exchange = bitswap.New(ctx, bsnet.NewFromIpfsHost(h), nil, served{b.store},
		bitswap.SetSimulateDontHavesOnTimeout(false))
	m := &node{backend: b, Contents: member.Contents{Backend: b, Name: name, Title: listen, Redial: redial, Ref: valid,
		Runs: func() error { return context.Cause(ctx) }}}
	return m, func() {
		m.Pause()
		b.exchange.Close()
		h.Close()
	}, nil
}

func valid(ref system.Ref) error { return member.CID(name, ref) }

// Publish implements member.Node. New content was hashed when it was written, so it is not read
// again.
func (m *node) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, []byte, error) {
	ref, err := m.Contents.Publish(ctx, title, size, r)
	return ref, nil, err
}

// Fetch implements member.Node.
func (m *node) Fetch(ctx context.Context, ref system.Ref, t member.Task) error {
	return m.Contents.Fetch(ctx, ref, t.From)
}

// ReadBack implements member.Node. It writes the node's own blocks, verifying each, up to the first
// missing one.
func (m *node) ReadBack(w http.ResponseWriter, r *http.Request, ref system.Ref) error {
	if _, err := m.Progress(r.Context(), ref); err != nil {
		return err
	}
	id, err := cid.Decode(string(ref))
	if err != nil {
		return err
	}
	dag := m.backend.store.graph()
	root, err := dag.Get(r.Context(), id)
	if ipld.IsNotFound(err) {
		return fmt.Errorf("%s: nothing of it is here: %w", ref, system.ErrNotFound)
	}
	if err != nil {
		return err
	}
	file, err := unixfsio.NewDagReader(r.Context(), root, dag)
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatUint(file.Size(), 10))
	if _, err := io.Copy(w, file); err != nil {
		panic(http.ErrAbortHandler) // the header has been sent: abort the answer
	}
	return nil
}

// Store implements member.Backend. It imports the content.
func (b backend) Store(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	imp := b.imp
	// The exchange gives new blocks to the peers that wait for them.
	imp.blocks = blockservice.New(b.store, b.exchange, blockservice.WriteThrough(true))
	body := &io.LimitedReader{R: r, N: size + 1}
	root, err := imp.add(ctx, body)
	if err == nil && body.N != 1 { // the importer takes an interrupted body for a short one
		err = fmt.Errorf("%d bytes instead of %d", size+1-body.N, size)
	}
	return system.Ref(root.String()), err // blocks of a failed import are removed with the deployment
}

// Remove implements member.Backend. It removes blocks from the leaves up, so that the rest can
// still be found after an interruption.
func (b backend) Remove(ctx context.Context, ref system.Ref) error {
	root, err := cid.Decode(string(ref))
	if err != nil {
		return err
	}
	var blocks []cid.Cid // each after a block that links to it
	seen := cid.NewSet()
	err = merkledag.Walk(ctx, merkledag.GetLinksWithDAG(b.store.graph()), root, func(id cid.Cid) bool {
		first := seen.Visit(id)
		if first {
			blocks = append(blocks, id)
		}
		return first
	}, merkledag.IgnoreMissing()) // blocks below a missing one are fetched after it, so there are none
	for _, id := range slices.Backward(blocks) {
		if err == nil {
			err = b.store.DeleteBlock(ctx, id)
		}
	}
	return err
}

// Apart implements member.Backend. It returns all peers, because Connect to a connected peer does
// nothing.
func (b backend) Apart(_ context.Context, peers []string) ([]string, error) { return peers, nil }

// Connect implements member.Backend. It clears the backoff of an earlier failure, because of which
// the library would refuse to try again.
func (b backend) Connect(ctx context.Context, address string) error {
	at, err := peer.AddrInfoFromString(address)
	if err != nil {
		return err
	}
	if s, ok := b.host.Network().(*libp2pswarm.Swarm); ok {
		s.Backoff().Clear(at.ID)
	}
	return b.host.Connect(ctx, *at)
}

// Part implements member.Backend.
func (b backend) Part(context.Context) (err error) {
	for _, p := range b.host.Network().Peers() {
		err = errors.Join(err, b.host.Network().ClosePeer(p))
	}
	return err
}

// Count implements member.Backend.
func (b backend) Count(context.Context) (member.Counts, error) {
	s, err := b.exchange.Stat()
	if err != nil {
		return member.Counts{}, err
	}
	c := member.Counts{Received: int64(s.DataReceived), Sent: int64(s.DataSent), Held: -1}
	for _, p := range b.host.Network().Peers() {
		if b.host.Network().Connectedness(p) == network.Connected {
			c.Peers++
		}
	}
	return c, nil
}

// Fetch gets all blocks, from the node's store or else from the swarm, as merkledag.FetchGraph
// does, and counts them: it returns nil once all blocks are present and valid.
func (b backend) Fetch(ctx context.Context, c *member.Content) error {
	root, err := cid.Decode(string(c.Ref))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var now int64
	dag := merkledag.NewSession(ctx, merkledag.NewDAGService(blockservice.New(b.store, b.exchange)))
	links := func(ctx context.Context, id cid.Cid) ([]*ipld.Link, error) {
		node, err := dag.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		size, own, err := payload(node)
		if err != nil {
			return nil, fmt.Errorf("block %s: %w", id, err)
		}
		if id.Equals(root) {
			c.SetSize(size, 0)
		}
		mu.Lock()
		defer mu.Unlock()
		now += own
		c.Blocks(now)
		return node.Links(), nil
	}
	return merkledag.Walk(ctx, links, root, cid.NewSet().Visit, merkledag.Concurrent())
}

// payload returns the number of file bytes below a node, and in the node itself.
func payload(node ipld.Node) (size, own int64, err error) {
	switch node := node.(type) {
	case *merkledag.RawNode:
		n := int64(len(node.RawData()))
		return n, n, nil
	case *merkledag.ProtoNode:
		file, err := unixfs.FSNodeFromBytes(node.Data())
		if err != nil {
			return 0, 0, err
		}
		return int64(file.FileSize()), int64(len(file.Data())), nil
	}
	return 0, 0, errors.New("no part of a file")
}

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

// keyVariable is the environment variable that passes a node the key of its swarm.
const keyVariable = "PLIMSOLL_SWARM_KEY"

// newSwarm returns the kind of the nodes of a new swarm, which share a new key. A publisher returns
// the CID, which follows from the content and option chunk.
func newSwarm() *member.Swarm {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return &member.Swarm{
		Name: name,
		Ref:  valid,
		Env:  []string{keyVariable + "=" + hex.EncodeToString(key)},
		Address: func(listen string) (string, error) {
			private, err := identity(key, listen)
			if err != nil {
				return "", err
			}
			id, err := peer.IDFromPrivateKey(private)
			if err != nil {
				return "", err
			}
			return member.Multiaddr(netip.MustParseAddrPort(listen)) + "/p2p/" + id.String(), nil
		},
	}
}

// identity returns the private key of the node that listens at an address, in the swarm with key.
func identity(key []byte, listen string) (crypto.PrivKey, error) {
	seed := sha256.Sum256(append(key[:len(key):len(key)], listen...))
	return crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}
