package boxo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ipfs/boxo/bitswap"
	"github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/ipld/merkledag"
	unixfsio "github.com/ipfs/boxo/ipld/unixfs/io"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pswarm "github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const (
	// blocksDir is where a node has its blocks, in its directory.
	blocksDir = "blocks"
	// redial is how often the known peers of an incomplete content are
	// dialled again when they are not connected.
	redial = 2 * time.Second
	// reconnect is how long a peer may take to answer.
	reconnect = 5 * time.Second
)

// node is a member of a swarm, and what it has.
type node struct {
	store    store
	imp      importer
	host     host.Host
	exchange *bitswap.Bitswap
	ctx      context.Context
	wg       sync.WaitGroup

	mu    sync.Mutex
	tasks map[cid.Cid]*download
}

// task is a content to fetch from peers, multiaddresses with their ids.
type task = member.Task[string]

func openNode(ctx context.Context, key []byte, listen string, imp importer, dir string) (*node, func(), error) {
	blocks := filepath.Join(dir, blocksDir)
	if err := os.MkdirAll(blocks, 0o755); err != nil {
		return nil, nil, err
	}
	h, err := join(key, listen)
	if err != nil {
		return nil, nil, err
	}
	m := &node{store: store{blocks}, imp: imp, host: h, tasks: map[cid.Cid]*download{}}
	// Nothing is found but by connections: what is wanted is asked of all peers. To take
	// silence for a No serves to ask another node; where there is none, a transfer on a
	// busy machine has been seen to stop for a minute.
	m.exchange = bitswap.New(ctx, bsnet.NewFromIpfsHost(h), nil, served{m.store},
		bitswap.SetSimulateDontHavesOnTimeout(false))
	ctx, cancel := context.WithCancel(ctx)
	m.ctx = ctx
	end := func() {
		for _, d := range m.tasks {
			d.Stop()
		}
		cancel()
		m.wg.Wait()
		m.exchange.Close()
		h.Close()
	}
	return m, end, nil
}

// of is a content that this node has or fetches.
func (m *node) of(ref string) (*download, error) {
	root, err := cid.Decode(ref)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, there := m.tasks[root]
	if !there {
		return nil, fmt.Errorf("%s: %w", ref, system.ErrNotFound)
	}
	return d, nil
}

// Publish implements member.Node: an import.
func (m *node) Publish(ctx context.Context, _ string, size int64, r io.Reader) (any, error) {
	imp := m.imp
	// Those who wait for a block are given it.
	imp.blocks = blockservice.New(m.store, m.exchange, blockservice.WriteThrough(true))
	n := &counter{r: r}
	root, err := imp.add(ctx, n)
	if err == nil && n.n != size { // the importer takes a body that broke off for a short one
		err = fmt.Errorf("%d bytes instead of %d", n.n, size)
	}
	if err != nil {
		return nil, err // what was stored of it goes with the deployment
	}
	// What is new was hashed as it was written, and is not read again.
	d := m.take(root, task{}, func(d *download) { d.imported(size) })
	select { // a task that was there has to find it
	case <-d.done:
		return root.String(), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Fetch implements member.Node.
func (m *node) Fetch(ref string, raw json.RawMessage) error {
	root, err := cid.Decode(ref)
	if err != nil {
		return err
	}
	var t task
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	m.take(root, t, (*download).begin)
	return nil
}

// take begins a task with begin, or adds peers to one that is there.
func (m *node) take(root cid.Cid, t task, begin func(*download)) *download {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, there := m.tasks[root]
	if !there {
		d = &download{node: m, root: root, size: -1}
	}
	d.from = member.Merge(d.from, t.From)
	if !there {
		m.tasks[root] = d
		begin(d)
	}
	for _, a := range t.From {
		m.wg.Go(func() { m.dial(a) }) // tried again while it is not complete
	}
	return d
}

// dial connects to a peer, if it is not connected. That it was not there a moment
// ago does not matter: the library would refuse to try again.
func (m *node) dial(address string) error {
	at, err := peer.AddrInfoFromString(address)
	if err != nil {
		return err
	}
	if at.ID == m.host.ID() || m.host.Network().Connectedness(at.ID) == network.Connected {
		return nil
	}
	if s, ok := m.host.Network().(*libp2pswarm.Swarm); ok {
		s.Backoff().Clear(at.ID)
	}
	ctx, cancel := context.WithTimeout(m.ctx, reconnect)
	defer cancel()
	return m.host.Connect(ctx, *at)
}

// Progress implements member.Node.
func (m *node) Progress(ref string) (f system.Progress, err error) {
	d, err := m.of(ref)
	if err != nil {
		return f, err
	}
	return d.fetched()
}

// ReadBack implements member.Node: from the node's own blocks, each checked, up
// to the first that is not there.
func (m *node) ReadBack(w http.ResponseWriter, r *http.Request, ref string) error {
	d, err := m.of(ref)
	if err != nil {
		return err
	}
	dag := merkledag.NewDAGService(blockservice.New(m.store, offline.Exchange(m.store)))
	root, err := dag.Get(r.Context(), d.root)
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
		panic(http.ErrAbortHandler) // the head is out: cut the answer short
	}
	return nil
}

// Forget implements member.Node: it drops a content and its blocks. When none is left, the
// connections are closed: the next content begins with new ones.
func (m *node) Forget(ref string) error {
	d, err := m.of(ref)
	if err != nil {
		return err
	}
	d.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tasks, d.root)
	blocks, err := m.store.below(m.ctx, d.root)
	if err != nil {
		return err
	}
	// From the leaves up, so that what is left when this is broken off is still found.
	for _, c := range slices.Backward(blocks) {
		if err := m.store.DeleteBlock(m.ctx, c); err != nil {
			return err
		}
	}
	if len(m.tasks) == 0 {
		for _, p := range m.host.Network().Peers() {
			if err := m.host.Network().ClosePeer(p); err != nil {
				return err
			}
		}
	}
	return nil
}
