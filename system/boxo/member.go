package boxo

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/multiformats/go-multiaddr"
	"golang.org/x/time/rate"

	"github.com/plimsoll-project/plimsoll/system"
)

// redial is how often the peers that an incomplete content was told of are
// dialled again when they are not connected.
const redial = 2 * time.Second

// member is a node of a swarm of any size: what it was told and what it has.
type member struct {
	dir      string // blocks, and tasks in tasksDir
	store    checked
	imp      importer
	host     host.Host
	exchange *bitswap.Bitswap
	ctx      context.Context
	wg       sync.WaitGroup

	mu    sync.Mutex
	tasks map[cid.Cid]*download
	known []string // peers for every content
}

// spread is what a node is told to fetch, and what it keeps on disk to go on with.
type spread struct {
	From []string // multiaddresses of peers, with their ids
}

const (
	blocksDir = "blocks"
	tasksDir  = "tasks"
)

func openMember(ctx context.Context, f swarmFlags, imp importer, dir string, limit int64) (*member, func(), error) {
	for _, d := range []string{blocksDir, tasksDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, nil, err
		}
	}
	h, err := f.join()
	if err != nil {
		return nil, nil, err
	}
	m := &member{dir: dir, store: checked{near{filepath.Join(dir, blocksDir)}}, imp: imp, host: h, tasks: map[cid.Cid]*download{}}
	net := bsnet.NewFromIpfsHost(h)
	if limit > 0 {
		net = paced{net, rate.NewLimiter(rate.Limit(limit), burst)}
	}
	// Nobody is found but by connections: what is wanted is asked of all peers.
	m.exchange = bitswap.New(ctx, net, nil, m.store.near, bitswap.SetSimulateDontHavesOnTimeout(false))
	ctx, cancel := context.WithCancel(ctx)
	m.ctx = ctx
	end := func() {
		cancel()
		m.wg.Wait()
		m.exchange.Close()
		h.Close()
	}
	if err := m.resume(); err != nil {
		end()
		return nil, nil, err
	}
	return m, end, nil
}

// resume takes up what an earlier process left.
func (m *member) resume() error {
	entries, err := os.ReadDir(filepath.Join(m.dir, tasksDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		root, err := cid.Decode(e.Name())
		if err != nil {
			continue // not ours
		}
		b, err := os.ReadFile(filepath.Join(m.dir, tasksDir, e.Name()))
		if err != nil {
			return err
		}
		var t spread
		if err := json.Unmarshal(b, &t); err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		if _, err := m.take(root, t); err != nil {
			return err
		}
	}
	return nil
}

// of is a content that this node has or fetches.
func (m *member) of(ref string) (*download, error) {
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
func (m *member) Publish(ctx context.Context, _ string, size int64, r io.Reader) (any, error) {
	n := &counter{r: r}
	imp, adding := m.imp, &adding{checked: m.store}
	// Those who wait for a block are told of it.
	imp.blocks = blockservice.New(adding, m.exchange, blockservice.WriteThrough(true))
	root, err := imp.add(ctx, n)
	if err == nil && n.n != size {
		err = fmt.Errorf("%d bytes instead of %d", n.n, size)
	}
	if err != nil {
		return nil, errors.Join(err, adding.undo())
	}
	d, err := m.take(root, spread{})
	if err != nil {
		return nil, err
	}
	select { // what was written is read and counted: not later, when others fetch
	case <-d.done:
		return root.String(), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

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
func (m *member) Fetch(ref string, raw json.RawMessage) error {
	root, err := cid.Decode(ref)
	if err != nil {
		return err
	}
	var t spread
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	_, err = m.take(root, t)
	return err
}

// take begins a task, or adds peers to one that is there.
func (m *member) take(root cid.Cid, t spread) (*download, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, there := m.tasks[root]
	if !there {
		d = &download{member: m, root: root, size: -1}
	}
	for _, a := range t.From {
		if !slices.Contains(d.from, a) {
			d.from = append(d.from, a)
		}
	}
	if err := m.save(d); err != nil {
		return nil, err
	}
	if !there {
		m.tasks[root] = d
		d.begin()
	}
	for _, a := range t.From {
		m.wg.Go(func() { m.dial(a) }) // tried again while it is not complete
	}
	return d, nil
}

// save writes a task, whole or not at all.
func (m *member) save(d *download) error {
	b, err := json.Marshal(spread{From: d.from})
	if err != nil {
		return err
	}
	path := filepath.Join(m.dir, tasksDir, d.root.String())
	if err := os.WriteFile(path+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Connect implements member.Node: a peer for every content.
func (m *member) Connect(address string) error {
	if err := m.dial(address); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.known, address) {
		m.known = append(m.known, address)
	}
	return nil
}

// dial connects to a peer, if it is not connected. That it was not there a moment
// ago does not matter: the library would refuse to try again.
func (m *member) dial(address string) error {
	at, err := addressOf(address)
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

// addressOf reads the address of a peer: a multiaddress with its id.
func addressOf(a string) (*peer.AddrInfo, error) {
	at, err := multiaddr.NewMultiaddr(a)
	if err != nil {
		return nil, err
	}
	return peer.AddrInfoFromP2pAddr(at)
}

// Progress implements member.Node.
func (m *member) Progress(ref string) (f system.Progress, err error) {
	d, err := m.of(ref)
	if err != nil {
		return f, err
	}
	return d.fetched()
}

// ReadBack implements member.Node: from the node's own blocks, each checked, up
// to the first that is not there.
func (m *member) ReadBack(w http.ResponseWriter, r *http.Request, ref string) error {
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

// Forget implements member.Node: it drops a content and its blocks, but for
// those of another. When none is left, the connections are closed: the next
// content begins with new ones.
func (m *member) Forget(ref string) error {
	d, err := m.of(ref)
	if err != nil {
		return err
	}
	d.stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tasks, d.root)
	if err := os.Remove(filepath.Join(m.dir, tasksDir, d.root.String())); err != nil {
		return err
	}
	keep := cid.NewSet()
	for other := range m.tasks {
		below, err := below(m.ctx, m.store.near, other)
		if err != nil {
			return err
		}
		for _, c := range below {
			keep.Add(c)
		}
	}
	blocks, err := below(m.ctx, m.store.near, d.root)
	if err != nil {
		return err
	}
	// From the leaves up, so that what is left when this is broken off is still found.
	for _, c := range slices.Backward(blocks) {
		if keep.Has(c) {
			continue
		}
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
